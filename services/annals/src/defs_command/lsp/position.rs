//! Positions in a text: bytes here, lines and UTF-16 units in the protocol.

use std::ops::Range;

use lsp_types::Position;

/// Line starts of a text, as the protocol counts them: after `\n`, `\r\n` and `\r`.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let behind = (0..bytes.len()).filter(|&at| ends_line(at)).map(|at| at + 1);
        let starts = std::iter::once(0).chain(behind).collect();
        Self { text, starts }
    }

    /// The position of a byte offset; inside a character, that of the character.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let before = &self.text[self.starts[line]..offset];
        Position {
            line: number(line),
            character: number(before.encode_utf16().count()),
        }
    }

    /// The byte offset of a position; a position beyond the end of a line or of the text gives that end.
    pub(super) fn offset(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else {
            return self.text.len();
        };
        let next = self.starts.get(position.line as usize + 1);
        let line = &self.text[start..next.copied().unwrap_or(self.text.len())];
        let line = line.trim_end_matches(['\r', '\n']);
        let mut left = position.character as usize;
        for (at, c) in line.char_indices() {
            if left < c.len_utf16() {
                return start + at;
            }
            left -= c.len_utf16();
        }
        start + line.len()
    }

    pub(super) fn range(&self, range: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range {
            start: self.position(range.start),
            end: self.position(range.end),
        }
    }

    pub(super) fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_one_two_three_and_four_bytes_are_counted() {
        let text = "aé怪😀z\r\nb\rc\n";
        let lines = Lines::of(text);
        let cases = [
            (0, (0, 0)),
            (1, (0, 1)),
            (3, (0, 2)),
            (6, (0, 3)),
            (10, (0, 5)),
            (11, (0, 6)),
            (13, (1, 0)),
            (15, (2, 0)),
            (17, (3, 0)),
        ];
        for (offset, (line, character)) in cases {
            let position = Position { line, character };
            assert_eq!(lines.position(offset), position, "{offset}");
            assert_eq!(lines.offset(position), offset, "{position:?}");
        }
        let at = |line, character| lines.offset(Position { line, character });
        // Inside a surrogate pair, beyond the end of a line, beyond the last line.
        assert_eq!(at(0, 4), 6);
        assert_eq!(at(0, 99), 11);
        assert_eq!(at(9, 0), text.len());
        assert_eq!(lines.position(7), Position { line: 0, character: 3 });
    }
}
