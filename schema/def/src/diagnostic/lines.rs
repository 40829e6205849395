//! Converts offsets to lines and columns, fast for many places of one file.

use super::SourceSpan;
use crate::source::{SourceFile, Span};

/// Bytes between counted positions: finding a column scans at most this many.
const STRIDE: usize = 1_024;

/// Maximum characters kept of a line; a line can be a whole file.
const EXCERPT: usize = 160;

/// Characters kept before the place in a line that is cut.
const BEFORE: usize = 40;

/// The line starts of a file, and its character counts.
pub(crate) struct Lines<'s> {
    file: &'s SourceFile<'s>,
    /// The offset of each line's first byte.
    starts: Vec<usize>,
    /// Number of characters that begin before each multiple of [`STRIDE`].
    counts: Vec<usize>,
}

impl<'s> Lines<'s> {
    pub(crate) fn of(file: &'s SourceFile<'s>) -> Self {
        let breaks = file.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let mut counts = vec![0];
        for block in file.text.as_bytes().chunks(STRIDE) {
            counts.push(counts[counts.len() - 1] + begun(block));
        }
        Self { file, starts, counts }
    }

    /// The place of a span, with an excerpt of its line.
    pub(crate) fn source_span(&self, span: Span) -> SourceSpan {
        let text = &*self.file.text;
        let start = text.floor_char_boundary(span.start as usize);
        let line = self.starts.partition_point(|&line| line <= start) - 1;
        let line_start = self.starts[line];
        let line_end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let end = text.floor_char_boundary(span.end as usize).clamp(start, line_end);
        let column = self.characters(start) - self.characters(line_start);
        let width = self.characters(start + text[start..end].trim_end().len()) - self.characters(start);
        let is_long = self.characters(line_end) - self.characters(line_start) > EXCERPT;
        let from = if is_long { column.saturating_sub(BEFORE) } else { 0 };
        let first = back(text, start, column - from);
        SourceSpan {
            file: self.file.path.to_owned(),
            line: number(line + 1),
            column: number(column + 1),
            width: number(width.max(1)),
            text: text[first..line_end]
                .chars()
                .take(EXCERPT)
                .collect::<String>()
                .trim_end_matches('\r')
                .to_owned(),
            text_column: number(from + 1),
            is_cut: is_long && text[first..line_end].chars().nth(EXCERPT).is_some(),
        }
    }

    /// The line and column of an offset, from 1.
    pub(crate) fn position(&self, offset: u32) -> (u32, u32) {
        let start = self.file.text.floor_char_boundary(offset as usize);
        let line = self.starts.partition_point(|&line| line <= start) - 1;
        let column = self.characters(start) - self.characters(self.starts[line]);
        (number(line + 1), number(column + 1))
    }

    /// Number of characters that begin before an offset.
    fn characters(&self, offset: usize) -> usize {
        let block = offset / STRIDE;
        self.counts[block] + begun(&self.file.text.as_bytes()[block * STRIDE..offset])
    }
}

/// The offset `characters` characters before another.
fn back(text: &str, offset: usize, characters: usize) -> usize {
    match characters {
        0 => offset,
        _ => text[..offset]
            .char_indices()
            .nth_back(characters - 1)
            .map_or(0, |(at, _)| at),
    }
}

/// Number of characters that begin in these bytes of UTF-8.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
