//! Turns Prometheus text into the values of the series that are wanted. Asks nobody, and knows no metric's type.
//!
//! Formats: text 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>) and OpenMetrics text, of
//! which exemplars are skipped. Names in quotation marks (Prometheus 3) cannot be wanted.

use std::collections::BTreeMap;

/// What parts the words of a line.
const BLANKS: [char; 2] = [' ', '\t'];

/// Why a text is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its answer is no sample in the Prometheus text format")]
pub(crate) struct NotASample {
    line: usize,
}

/// The finite values of the series whose names are `wanted`, all label sets of each.
///
/// A key is the series as the text has it, without blanks around the labels: `jvm_memory_used_bytes{area="heap"}`.
/// Labels stay in their order and values as they are escaped. Lines of other series are not looked at.
///
/// # Errors
/// [`NotASample`], for the first line of a wanted series that cannot be read.
pub(crate) fn select(text: &str, wanted: &[String]) -> Result<BTreeMap<String, f64>, NotASample> {
    let mut series = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let mut rest = Rest(line);
        rest.skip_blanks();
        let Some(name) = rest.name().filter(|name| wanted.iter().any(|wanted| wanted == name))
        else {
            continue;
        };
        let (key, value) = sample(name, rest).ok_or(NotASample { line: number })?;
        if value.is_finite() {
            series.insert(key, value);
        }
    }
    Ok(series)
}

/// What follows the name: labels, a value, perhaps a time, perhaps an exemplar.
fn sample(name: &str, mut rest: Rest<'_>) -> Option<(String, f64)> {
    let key = format!("{name}{}", rest.labels()?);
    let mut words = rest.0.split_ascii_whitespace();
    let value = words.next()?.parse().ok()?;
    match words.next() {
        None | Some("#") => return Some((key, value)),
        Some(time) => time.parse::<f64>().ok()?,
    };
    words.next().is_none_or(|word| word == "#").then_some((key, value))
}

/// What of a line has not been read yet.
#[derive(Debug, Clone, Copy)]
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches(BLANKS);
    }

    /// Blanks and then `mark`; none of them when there is no mark.
    fn skip(&mut self, mark: char) -> Option<()> {
        self.0 = self.0.trim_start_matches(BLANKS).strip_prefix(mark)?;
        Some(())
    }

    fn has_skipped(&mut self, mark: char) -> bool {
        self.skip(mark).is_some()
    }

    /// A metric's name; a label's has no colon, which does no harm here.
    fn name(&mut self) -> Option<&'a str> {
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let end = self.0.find(|c| !belongs(c)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        (!name.is_empty()).then_some(name)
    }

    /// The labels in braces; nothing when there are none.
    fn labels(&mut self) -> Option<String> {
        if !self.has_skipped('{') {
            // Without labels a blank parts the name from its value.
            return self.0.starts_with(BLANKS).then(String::new);
        }
        let mut labels: Vec<String> = Vec::new();
        while !self.has_skipped('}') {
            if !labels.is_empty() {
                self.skip(',')?;
                // The last label may have a comma behind it.
                if self.has_skipped('}') {
                    break;
                }
            }
            labels.push(self.label()?);
        }
        Some(if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) })
    }

    fn label(&mut self) -> Option<String> {
        self.skip_blanks();
        let name = self.name()?;
        self.skip('=')?;
        Some(format!("{name}={}", self.quoted()?))
    }

    /// With its quotation marks and escapes.
    fn quoted(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let whole = self.0;
        self.skip('"')?;
        let mut escaped = false;
        let end = self.0.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        self.0 = &self.0[end + 1..];
        Some(&whole[..whole.len() - self.0.len()])
    }
}

#[cfg(test)]
mod tests;
