//! Turns text with `{{placeholders}}` into pieces, and pieces into bytes, request by request.

use rand_chacha::ChaCha8Rng;

use crate::LoadError;

use super::nearest::nearest;
use super::random;
use super::rows::{Cells, Columns, Place};

/// What placeholders become in one request.
#[derive(Debug)]
pub(super) struct Values {
    /// Which request it is; all of its placeholders see the same.
    pub number: u64,
    /// Bytes of its body.
    pub body_bytes: usize,
    /// The columns that templates use.
    pub cells: Vec<Cells>,
    /// Where random numbers come from; each placeholder draws its own.
    pub rng: ChaCha8Rng,
}

/// Bytes with gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Counter,
    /// An integer from `low` to `low + width`.
    Random {
        low: i64,
        width: u64,
    },
    Cell(usize),
    BodyBytes,
}

impl Template {
    /// Bytes without gaps.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Template {
        Template { pieces: vec![Piece::Literal(bytes.into())] }
    }

    /// The length of the request's body.
    pub fn body_bytes() -> Template {
        Template { pieces: vec![Piece::BodyBytes] }
    }

    /// Takes the placeholders out of `text`, which stands at `place`.
    ///
    /// # Errors
    /// When one of them is unknown, not closed, or cannot be filled.
    pub fn parse(text: &str, place: Place, columns: &mut Columns) -> Result<Template, LoadError> {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(at) = opening(rest) {
            template.push(&rest[..at]);
            let begin = &rest[at + 2..];
            let end = begin.find("}}").ok_or_else(|| unclosed(begin))?;
            template.pieces.push(placeholder(begin[..end].trim(), place, columns)?);
            rest = &begin[end + 2..];
        }
        template.push(rest);
        Ok(template)
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        match self.pieces.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Piece::Literal(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Literal(bytes.into())),
        }
    }

    /// Adds another template.
    pub fn append(&mut self, other: &Template) {
        for piece in &other.pieces {
            match piece {
                Piece::Literal(bytes) => self.push(bytes),
                gap => self.pieces.push(gap.clone()),
            }
        }
    }

    /// The bytes, when there are no gaps.
    pub fn constant(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(&[]),
            [Piece::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Appends the bytes for one request to `out`.
    pub fn render(&self, values: &mut Values, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Counter => write(out, values.number),
                Piece::Random { low, width } => {
                    write(out, random::within(&mut values.rng, *low, *width));
                }
                Piece::Cell(at) => out.extend_from_slice(values.cells[*at].of(values.number)),
                Piece::BodyBytes => write(out, values.body_bytes),
            }
        }
    }
}

fn write(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Where the next placeholder is opened. Of three braces the first is text: JSON may put one before a value.
fn opening(text: &str) -> Option<usize> {
    let first = text.find("{{")?;
    let braces = text[first..].bytes().take_while(|b| *b == b'{').count();
    Some(first + braces - 2)
}

fn unclosed(begin: &str) -> LoadError {
    LoadError::UnclosedPlaceholder { begin: begin.chars().take(20).collect() }
}

fn placeholder(name: &str, place: Place, columns: &mut Columns) -> Result<Piece, LoadError> {
    match name.split_once('.') {
        None if name == "counter" => Ok(Piece::Counter),
        None if name == "random" => Ok(Piece::Random { low: 0, width: u64::from(u32::MAX) }),
        Some(("random", range)) => {
            draw(range).map_err(|problem| LoadError::BadRange { placeholder: name.into(), problem })
        }
        Some(("csv", column)) => columns.place(column, place).map(Piece::Cell),
        _ => Err(unknown(name, columns)),
    }
}

fn draw(range: &str) -> Result<Piece, &'static str> {
    let integers = range.split_once('.').map(|(low, high)| (low.parse(), high.parse()));
    match integers {
        Some((Ok(low), Ok(high))) if low <= high => {
            Ok(Piece::Random { low, width: i64::abs_diff(low, high) })
        }
        Some((Ok(_), Ok(_))) => Err("its lower end is above its upper end"),
        _ => Err("its ends are not two integers"),
    }
}

fn unknown(name: &str, columns: &Columns) -> LoadError {
    let cells = columns.names().iter().map(|column| format!("csv.{column}"));
    let all = ["counter", "random"].into_iter().map(String::from).chain(cells);
    LoadError::UnknownPlaceholder { placeholder: name.into(), nearest: nearest(name, all) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Rows;
    use crate::requests::random::Use;

    fn rows() -> Rows {
        Rows {
            columns: vec!["user".into(), "first name".into()],
            rows: vec![vec!["ann".into(), "Ann B".into()], vec!["bob".into(), "Bob C".into()]],
        }
    }

    fn rendered(text: &str, number: u64) -> Result<String, LoadError> {
        let rows = rows();
        let mut columns = Columns::new(&rows)?;
        let template = Template::parse(text, Place::Body, &mut columns)?;
        let rng = random::stream(1, Use::Values, 0);
        let mut values = Values { number, body_bytes: 0, cells: columns.into_cells(), rng };
        let mut out = Vec::new();
        template.render(&mut values, &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn placeholders_become_the_values_of_their_request() {
        for (text, number, becomes) in [
            ("", 0, ""),
            ("plain } text {", 0, "plain } text {"),
            ("{{counter}}", 0, "0"),
            ("{{counter}}", u64::MAX, "18446744073709551615"),
            ("a{{ counter }}b{{counter}}", 12, "a12b12"),
            ("{{csv.user}}-{{csv.first name}}", 3, "bob-Bob C"),
            ("{{random.-7.-7}}{{random.0.0}}", 0, "-70"),
            (r#"{"a":{"n":{{counter}}}}"#, 5, r#"{"a":{"n":5}}"#),
            ("{{{csv.user}}}", 0, "{ann}"),
        ] {
            assert_eq!(rendered(text, number).unwrap(), becomes, "{text}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_says_why_and_what_to_do() {
        for (text, error, help) in [
            ("{{conter}}", "there is no placeholder `{{conter}}`", "did you mean `{{counter}}`?"),
            (
                "{{cvs.user}}",
                "there is no placeholder `{{cvs.user}}`",
                "did you mean `{{csv.user}}`?",
            ),
            (
                "{{zzzzzzzzz}}",
                "there is no placeholder `{{zzzzzzzzz}}`",
                "there are counter, random",
            ),
            ("{{}}", "there is no placeholder `{{}}`", "there are counter, random"),
            ("a{{counter", "the placeholder `{{counter` is not closed", "close it with }}"),
            (
                "{{random.9.1}}",
                "cannot draw `{{random.9.1}}`: its lower end is above its upper end",
                "write {{random.LOW.HIGH}} with two integers",
            ),
            (
                "{{random.1}}",
                "cannot draw `{{random.1}}`: its ends are not two integers",
                "write {{random.LOW.HIGH}} with two integers",
            ),
            (
                "{{random.a.b}}",
                "cannot draw `{{random.a.b}}`: its ends are not two integers",
                "write {{random.LOW.HIGH}} with two integers",
            ),
            ("{{csv.usr}}", "there is no column `usr`", "did you mean `user`?"),
        ] {
            let found = rendered(text, 0).unwrap_err();
            assert_eq!(found.to_string(), error);
            assert!(found.help().unwrap().starts_with(help), "{:?}", found.help());
        }
    }

    #[test]
    fn a_column_needs_rows() {
        let none = Rows::default();
        let mut columns = Columns::new(&none).unwrap();
        let error = Template::parse("{{csv.user}}", Place::Body, &mut columns).unwrap_err();
        assert_eq!(error.to_string(), "`{{csv.user}}` needs rows, and there are none");
    }

    proptest! {
        #[test]
        fn text_without_two_braces_stays_as_it_is(text in "([^{]|\\{[^{])*") {
            prop_assert_eq!(rendered(&text, 0).unwrap(), text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "([{}a.]|\\{\\{|\\}\\}|counter|random|csv|\u{e9})*") {
            let _ = rendered(&text, 0);
        }

        #[test]
        fn a_random_number_lies_within_its_range(low: i64, high: i64) {
            let (low, high) = (low.min(high), low.max(high));
            let number: i64 =
                rendered(&format!("{{{{random.{low}.{high}}}}}"), 0).unwrap().parse().unwrap();
            prop_assert!((low..=high).contains(&number));
        }
    }

    #[test]
    fn each_number_of_a_range_comes_up() {
        let mut rng = random::stream(3, Use::Values, 0);
        let mut seen = [false; 4];
        (0..200).for_each(|_| seen[(random::within(&mut rng, -1, 3) + 1) as usize] = true);
        assert_eq!(seen, [true; 4]);
    }
}
