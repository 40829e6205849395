//! Escapes text for HTML: text from files is shown as it is, and never parsed as a tag.

use annals_def::notation::to_base64;
use maud::{Markup, Render, html};
use sha2::{Digest, Sha256};

/// Text between tags, or between the double quotes of an attribute.
pub(super) struct Text<'t>(pub(super) &'t str);

impl Render for Text<'_> {
    fn render_to(&self, out: &mut String) {
        let shown: String = self.0.chars().map(|c| if is_odd(c) { '\u{fffd}' } else { c }).collect();
        shown.render_to(out);
    }
}

/// Control characters, and those that change the direction of text: they would make the display misleading.
fn is_odd(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with code between back-quotes.
pub(super) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 && at + 1 < parts.len() {
                code { (Text(part)) }
            } @else {
                @if at % 2 == 1 { "`" }
                (Text(part))
            }
        }
    }
}

/// Names joined to an anchor: letters, digits, `_`, `.` and `-` as they are, other characters as their number.
pub(super) fn anchor(names: &[&str]) -> String {
    let escaped = names
        .iter()
        .map(|name| name.chars().map(anchor_character).collect::<String>());
    escaped.collect::<Vec<_>>().join(":")
}

fn anchor_character(c: char) -> String {
    match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') => c.to_string(),
        c => format!("~{:x}~", u32::from(c)),
    }
}

/// A link to an element of the page.
pub(super) fn link(anchor: &str, text: &str) -> Markup {
    html! { a href={ "#" (anchor) } { (Text(text)) } }
}

/// The hash with which a page's policy allows one script or style sheet.
pub(super) fn source_hash(content: &str) -> String {
    format!("'sha256-{}'", to_base64(&Sha256::digest(content.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_as_a_tag() {
        let text = Text("<a href=\"x\">&amp;\u{0}\u{202e}z\n").render().0;
        assert_eq!(text, "&lt;a href=&quot;x&quot;&gt;&amp;amp;\u{fffd}\u{fffd}z\n");
        assert_eq!(prose("add `<b>`, or `c").0, "add <code>&lt;b&gt;</code>, or `c");
        assert_eq!(anchor(&["type", "a\"b c.d"]), "type:a~22~b~20~c.d");
    }
}
