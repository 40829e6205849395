//! The comments of a file: which of them says something about an element.

use crate::compile::is_allowance;

/// Longest documentation of one thing that is kept, bytes.
const MAX_DOCUMENTATION: usize = 4_000;

/// What begins and ends a comment.
const BEGIN: &str = "<!--";
const END: &str = "-->";

/// What is said about the element whose name begins at an offset: the comments that stand right above it, each on lines of
/// its own, without an empty line between; else the comment behind its start tag on the same line.
pub(super) fn documentation(text: &str, name_start: usize) -> Option<String> {
    let tag = name_start.checked_sub(1)?;
    let mut above = Vec::new();
    let mut before = text.get(..tag)?;
    while let Some((rest, content)) = comment_above(before) {
        before = rest;
        above.extend(said(content));
    }
    above.reverse();
    let documentation = match above.is_empty() {
        false => above.join("\n"),
        true => beside(&text[tag..])?,
    };
    Some(shortened(documentation))
}

/// The comment that ends a text, if it begins its line and at most one line end follows it; and what is before it.
fn comment_above(before: &str) -> Option<(&str, &str)> {
    let body = before.trim_end();
    let between = &before[body.len()..];
    if between.matches('\n').count() > 1 {
        return None;
    }
    let body = body.strip_suffix(END)?;
    let begin = body.rfind(BEGIN)?;
    let line = body[..begin].rfind('\n').map_or(0, |at| at + 1);
    let begins_its_line = body[line..begin].trim().is_empty();
    begins_its_line.then(|| (&body[..begin], &body[begin + BEGIN.len()..]))
}

/// The comment behind a start tag, on its line.
fn beside(tag: &str) -> Option<String> {
    let line = tag.lines().next()?;
    let begin = line.find(BEGIN)?;
    let rest = &tag[begin + BEGIN.len()..];
    said(&rest[..rest.find(END)?])
}

/// What a comment says: its lines without the blanks around them. Nothing if it holds what is commented out, or is only
/// an allowance.
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

    fn of(text: &str) -> Option<String> {
        documentation(text, text.find("<hp").expect("there") + 1)
    }

    #[test]
    fn comments_right_above_or_beside_belong_to_an_element() {
        let cases = [
            ("<a>\n\t<!-- Life. -->\n\t<hp> </hp>", Some("Life.")),
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
            ("-->\n<hp/>", None),
            ("<!---->\n<hp/>", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text).as_deref(), expected, "{text}");
        }
    }
}
