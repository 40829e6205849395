//! Comments of a file: which of them document an element.

use std::ops::Range;

use crate::{
    compile::is_allowance,
    source::{Comment, Document},
};

/// Maximum bytes of the documentation of one declaration.
const MAX_DOCUMENTATION: usize = 4_000;

/// The delimiters of a comment.
const BEGIN: &str = "<!--";
const END: &str = "-->";

/// The documentation of the element whose name begins at an offset: the comments directly above it, on lines of their
/// own without an empty line between; else the comment behind its start tag on the same line.
pub(super) fn documentation(document: &Document<'_>, name_start: u32) -> Option<String> {
    let text = document.text();
    // The `<` before the name.
    let tag = (name_start as usize).checked_sub(1)?;
    let comments = document.comments();
    let (before, behind) = comments.split_at(comments.partition_point(|comment| comment.begin < name_start));
    let mut above = Vec::new();
    let mut below = tag;
    for comment in before.iter().rev() {
        let place = place(comment);
        if !is_right_above(text, &place, below) {
            break;
        }
        below = place.start;
        above.extend(said(comment.text));
    }
    above.reverse();
    let documentation = match above.is_empty() {
        false => above.join("\n"),
        true => behind
            .first()
            .filter(|comment| !text[tag..place(comment).end].contains('\n'))
            .and_then(|comment| said(comment.text))?,
    };
    Some(shortened(documentation))
}

/// The range of a comment, in bytes of the file's text.
fn place(comment: &Comment<'_>) -> Range<usize> {
    let begin = comment.begin as usize;
    begin..begin + BEGIN.len() + comment.text.len() + END.len()
}

/// Whether the text at a place begins its line, with at most one line end between it and what is below.
fn is_right_above(text: &str, place: &Range<usize>, below: usize) -> bool {
    let between = &text[place.end..below];
    let line = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    between.trim().is_empty() && between.matches('\n').count() <= 1 && text[line..place.start].trim().is_empty()
}

/// The text of a comment: its lines, trimmed. `None` if it contains commented-out elements, or is an allowance.
fn said(content: &str) -> Option<String> {
    let content = content.trim();
    if content.is_empty() || content.starts_with('<') || is_allowance(content) {
        return None;
    }
    let lines: Vec<&str> = content.lines().map(str::trim).collect();
    Some(lines.join("\n"))
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_DOCUMENTATION {
        text.truncate(text.floor_char_boundary(MAX_DOCUMENTATION));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{
        diagnostic::Findings,
        source::{FileId, parse},
    };

    fn of(text: &str) -> Option<String> {
        let text = format!("<root>\n{text}\n</root>");
        let document = parse(FileId(0), &text, &mut Findings::default());
        let name = text.find("<hp").expect("there") + 1;
        documentation(&document, u32::try_from(name).expect("short"))
    }

    #[test]
    fn comments_right_above_or_beside_belong_to_an_element() {
        let cases = [
            ("<a>\n\t<!-- Life. -->\n\t<hp> </hp></a>", Some("Life.")),
            ("<!-- One. --><!-- Two. --> <hp/>", None),
            (
                "<!-- One. -->\n<!-- Two.\n     Three. -->\n<hp/>",
                Some("One.\nTwo.\nThree."),
            ),
            ("<!-- Far. -->\n\n<hp/>", None),
            ("<mp/> <!-- Of another. -->\n<hp/>", None),
            ("<hp> INT8 </hp> <!-- Life. -->\n", Some("Life.")),
            ("<hp> <!-- Life. --> <Type/> </hp>", Some("Life.")),
            ("<!-- <mp> INT8 </mp> -->\n<hp/>", None),
            ("<!-- Life. -->\n<!-- allow D0701: no -->\n<hp/>", Some("Life.")),
            (
                "<!-- allow players to see it -->\n<hp/>",
                Some("allow players to see it"),
            ),
            ("<hp> <!-- not closed", None),
            ("<hp>\n<!-- Of what is in it. --></hp>", None),
            ("<![CDATA[\n<!-- Not this. ]]> -->\n<hp/>", None),
            ("<hp> <![CDATA[<!-- Not this. -->]]> </hp>", None),
            ("<hp note=\"<!-- Not this. -->\"/>", None),
            ("-->\n<hp/>", None),
            ("<!---->\n<hp/>", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text).as_deref(), expected, "{text}");
        }
    }
}
