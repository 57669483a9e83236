//! Columns of text, as wide as their widest cell.

use std::io::{self, Write};

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A head and rows of as many cells.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    head: [(&'static str, Side); COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

/// A text whose line breaks and other control characters are escaped: names of files may have any.
pub(crate) fn one_line(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(head: [(&'static str, Side); COLUMNS]) -> Self {
        Self { head, rows: Vec::new() }
    }

    /// Adds a row. Line breaks and other control characters inside a cell would break the table: they are escaped.
    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| one_line(&cell)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes head and rows, two blanks between columns, none at the end of a line.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = self.head.map(|(title, _)| title.to_owned());
        let mut widths = [0; COLUMNS];
        for cells in std::iter::once(&head).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for cells in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, (_, side)), width) in cells.iter().zip(self.head).zip(widths) {
                match side {
                    Side::Left => line.push_str(&format!("{cell:<width$}  ")),
                    Side::Right => line.push_str(&format!("{cell:>width$}  ")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// `12,345,678`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit that leaves at least one, with one decimal; units of 2^10.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("NAME", Side::Left), ("ROWS", Side::Right), ("WHY", Side::Left)]);
        table.row(["a".into(), "12,345".into(), "two\nlines".into()]);
        table.row(["wéather".into(), "1".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "NAME       ROWS  WHY\na        12,345  two\\nlines\nwéather       1\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn figures_are_easy_to_read() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KB"),
            (1536, "1.5 KB"),
            (134_217_728, "128.0 MB"),
            (1 << 40, "1.0 TB"),
            (u64::MAX, "16384.0 PB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((plural(1, "file"), plural(1200, "file")), ("1 file".into(), "1,200 files".into()));
    }
}
