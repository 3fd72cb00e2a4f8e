//! Turns the columns of [`Rows`] that templates use into cells as they are sent: checked and encoded once, so
//! that a request only copies them. What no template uses is not kept.

use crate::{LoadError, Rows};

use super::nearest::nearest;

/// Where a placeholder stands, which decides what may take its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Path and query: what a request target cannot hold is percent-encoded.
    Path,
    /// The value of a header: nothing that would end it.
    Header,
    /// Anything, as it is.
    Body,
}

/// The columns used so far, each for one kind of place.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    rows: &'a Rows,
    used: Vec<(usize, Place)>,
    cells: Vec<Cells>,
}

impl<'a> Columns<'a> {
    /// No column of `rows` is used.
    ///
    /// # Errors
    /// When a row has not one value for each column.
    pub fn new(rows: &'a Rows) -> Result<Columns<'a>, LoadError> {
        let columns = rows.columns.len();
        match rows.rows.iter().position(|row| row.len() != columns) {
            Some(at) => {
                Err(LoadError::RowLength { row: at + 1, values: rows.rows[at].len(), columns })
            }
            None => Ok(Columns { rows, used: Vec::new(), cells: Vec::new() }),
        }
    }

    /// Where the cells of a column will be for one kind of place.
    ///
    /// # Errors
    /// When there is no such column, no row, or a value that cannot stand there.
    pub fn place(&mut self, name: &str, place: Place) -> Result<usize, LoadError> {
        let column = self.find(name)?;
        if let Some(known) = self.used.iter().position(|used| *used == (column, place)) {
            return Ok(known);
        }
        self.cells.push(Cells::new(self.rows, column, place)?);
        self.used.push((column, place));
        Ok(self.used.len() - 1)
    }

    /// Names of all columns.
    pub fn names(&self) -> &'a [String] {
        &self.rows.columns
    }

    /// The cells that templates use, where [`Columns::place`] said that they are.
    pub fn into_cells(self) -> Vec<Cells> {
        self.cells
    }

    fn find(&self, name: &str) -> Result<usize, LoadError> {
        if self.rows.rows.is_empty() {
            return Err(LoadError::NoRows { column: name.into() });
        }
        let unknown = || LoadError::UnknownColumn {
            column: name.into(),
            columns: self.names().to_vec(),
            nearest: nearest(name, self.names().iter().cloned()),
        };
        self.names().iter().position(|column| column == name).ok_or_else(unknown)
    }
}

/// One column, ready to be copied: its cells one after the other.
#[derive(Debug)]
pub(super) struct Cells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    fn new(rows: &Rows, column: usize, place: Place) -> Result<Cells, LoadError> {
        let mut cells = Cells { bytes: Vec::new(), ends: Vec::with_capacity(rows.rows.len()) };
        for (at, row) in rows.rows.iter().enumerate() {
            let value = row[column].as_bytes();
            match place {
                Place::Path => percent_encode(value, &mut cells.bytes),
                Place::Header if value.iter().any(|b| ends_a_header(*b)) => {
                    return Err(LoadError::BadCell {
                        column: rows.columns[column].clone(),
                        row: at + 1,
                        problem: "has a line break, which a header cannot carry",
                    });
                }
                Place::Header | Place::Body => cells.bytes.extend_from_slice(value),
            }
            cells.ends.push(cells.bytes.len());
        }
        Ok(cells)
    }

    /// The cell that request `number` uses.
    pub fn of(&self, number: u64) -> &[u8] {
        let row = (number % self.ends.len() as u64) as usize;
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[begin..self.ends[row]]
    }
}

/// Characters that would end a header's value, or that receivers must refuse (RFC 9110, 5.5).
pub(super) fn ends_a_header(b: u8) -> bool {
    matches!(b, b'\r' | b'\n' | 0)
}

/// Slashes, question marks and what is encoded already stay as they are, so that a cell may hold a whole path.
fn percent_encode(value: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (at, b) in value.iter().enumerate() {
        if is_target_byte(*b) || (*b == b'%' && is_encoded(&value[at + 1..])) {
            out.push(*b);
        } else {
            out.extend([b'%', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
        }
    }
}

/// What path and query may hold besides `%` (RFC 3986, 3.3 and 3.4).
fn is_target_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&b)
}

fn is_encoded(after: &[u8]) -> bool {
    matches!(after, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[&str]) -> Rows {
        Rows {
            columns: vec!["name".into()],
            rows: values.iter().map(|value| vec![(*value).into()]).collect(),
        }
    }

    fn cells(values: &[&str], place: Place) -> Result<Vec<String>, LoadError> {
        let rows = rows(values);
        let mut columns = Columns::new(&rows)?;
        let at = columns.place("name", place)?;
        let cells = &columns.into_cells()[at];
        let text = |number| String::from_utf8(cells.of(number).to_vec()).unwrap();
        Ok((0..values.len() as u64).map(text).collect())
    }

    #[test]
    fn a_path_takes_no_character_that_is_not_allowed_in_a_request_target() {
        for (value, sent) in [
            ("a-b_c.d~e", "a-b_c.d~e"),
            ("/items/7?x=1&y=2", "/items/7?x=1&y=2"),
            ("a b", "a%20b"),
            ("100%", "100%25"),
            ("a%20b", "a%20b"),
            ("%2", "%252"),
            ("a#b", "a%23b"),
            ("\u{e9}", "%C3%A9"),
            ("a\r\nb", "a%0D%0Ab"),
            ("{}\"<>\\^`|", "%7B%7D%22%3C%3E%5C%5E%60%7C"),
            ("", ""),
        ] {
            assert_eq!(cells(&[value], Place::Path).unwrap(), [sent]);
        }
    }

    #[test]
    fn a_header_takes_no_line_break() {
        for value in ["a\r\nb: c", "a\nb", "a\0b"] {
            match cells(&["fine", value], Place::Header) {
                Err(LoadError::BadCell { column, row, .. }) => {
                    assert_eq!((&*column, row), ("name", 2))
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(cells(&[value], Place::Body).unwrap(), [value]);
        }
    }

    #[test]
    fn cells_of_any_length_come_back_in_turn() {
        assert_eq!(cells(&["", "ab", "", "c"], Place::Body).unwrap(), ["", "ab", "", "c"]);
        let rows = rows(&["a", "b"]);
        let mut columns = Columns::new(&rows).unwrap();
        columns.place("name", Place::Body).unwrap();
        let cells = columns.into_cells();
        assert_eq!([0, 1, 2, 3].map(|number| cells[0].of(number)), [b"a", b"b", b"a", b"b"]);
    }

    #[test]
    fn a_row_must_have_one_value_for_each_column() {
        let mut rows = rows(&["a", "b"]);
        rows.rows[1].push("c".into());
        let error = Columns::new(&rows).unwrap_err();
        assert_eq!(error.to_string(), "row 2 has 2 values for 1 columns");
    }

    #[test]
    fn a_misspelt_column_is_answered_with_the_nearest() {
        let rows = Rows {
            columns: vec!["user".into(), "token".into()],
            rows: vec![vec!["a".into(), "b".into()]],
        };
        let error = Columns::new(&rows).unwrap().place("usr", Place::Body).unwrap_err();
        assert_eq!(error.to_string(), "there is no column `usr`");
        let help = "did you mean `user`? the columns are user, token";
        assert_eq!(error.help().unwrap(), help);
    }
}
