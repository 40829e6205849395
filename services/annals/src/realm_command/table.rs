//! Tables of text.

use std::io::{self, Write};

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Writes rows below headings, in columns as wide as their longest text.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write<const N: usize>(
    out: &mut impl Write,
    headings: [(&str, Align); N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let first = headings.map(|(heading, _)| heading.to_owned());
    let lines = || std::iter::once(&first).chain(rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for line in lines() {
        let columns = line.iter().zip(&widths).zip(&headings);
        let columns = columns.map(|((text, width), (_, align))| match align {
            Align::Left => format!("{text:width$}"),
            Align::Right => format!("{text:>width$}"),
        });
        writeln!(out, "{}", columns.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
