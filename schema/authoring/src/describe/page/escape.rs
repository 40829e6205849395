//! Escapes text for HTML: text from files is shown as it is, and never parsed as a tag.

use std::fmt;

use annals_def::notation::to_base64;
use sha2::{Digest, Sha256};

/// Text between tags, or between the double quotes of an attribute.
pub(super) struct Text<'t>(pub(super) &'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || is_odd(c)) {
            let (before, from) = rest.split_at(at);
            let character = from.chars().next().expect("invariant: found there");
            f.write_str(before)?;
            f.write_str(match character {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                _ => "\u{fffd}",
            })?;
            rest = &from[character.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Control characters, and those that change the direction of text: they would make the display misleading.
fn is_odd(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with code between back-quotes.
pub(super) struct Prose<'t>(pub(super) &'t str);

impl fmt::Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.0.split('`').collect();
        for (at, part) in parts.iter().enumerate() {
            let is_code = at % 2 == 1 && at + 1 < parts.len();
            match is_code {
                true => write!(f, "<code>{}</code>", Text(part))?,
                false if at % 2 == 1 => write!(f, "`{}", Text(part))?,
                false => Text(part).fmt(f)?,
            }
        }
        Ok(())
    }
}

/// Names joined to an anchor: letters, digits, `_`, `.` and `-` as they are, other characters as their number.
pub(super) struct Anchor<'t>(pub(super) &'t [&'t str]);

impl fmt::Display for Anchor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(":")?;
            }
            for c in name.chars() {
                match c {
                    c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') => write!(f, "{c}")?,
                    c => write!(f, "~{:x}~", u32::from(c))?,
                }
            }
        }
        Ok(())
    }
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
        let text = Text("<a href=\"x\" title='y'>&amp;\u{0}\u{202e}z\n").to_string();
        assert_eq!(
            text,
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;\u{fffd}\u{fffd}z\n"
        );
        assert_eq!(
            Prose("add `<b>`, or `c").to_string(),
            "add <code>&lt;b&gt;</code>, or `c"
        );
        assert_eq!(Anchor(&["type", "a\"b c.d"]).to_string(), "type:a~22~b~20~c.d");
    }
}
