//! Display of untrusted text, so that it cannot pass for anything else.

use std::fmt::Write as _;

/// Untrusted text on one line, without invisible characters: those that would end the line or reverse its direction are
/// escaped as `\u{...}`.
#[must_use]
pub fn shown(written: &str) -> String {
    let mut shown = String::with_capacity(written.len());
    for c in written.chars() {
        if c == '\\' || is_unseen(c) {
            // Writing into a string does not fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Control characters, and those that are invisible or change the direction of others. The list is part of the format
/// of files that are passed on, so it is fixed and does not grow with Unicode.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0..=0x1f | 0x7f..=0x9f | 0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xfff0..=0xfffb | 0x1_bca0..=0x1_bca3 | 0x1_d173..=0x1_d17a | 0xe_0000..=0xe_0fff)
}
