//! Turns a file of requests in one of vegeta's two forms into targets: plain HTTP heads, or JSON lines.
//!
//! Sources: vegeta's README (`-targets`, `-format`) and `lib/targets.go`. New here are weights; the line that
//! gives one is a comment to vegeta, so a file serves both.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Deserialize;
use toll_load::{Body, Target};

/// What every target has in common, from the command line.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// Headers that are added to its own.
    pub headers: Vec<(String, String)>,
    /// The body of a target without one.
    pub body: Body,
    /// Whether `{{…}}` is filled in.
    pub template: bool,
}

/// Reads a file that is named in another.
pub type Read<'a> = &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>;

/// A line that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    /// From one.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// How it should be.
    pub help: &'static str,
}

const HTTP_HELP: &str = "a target is a line `METHOD URL`, then lines `name: value`, then `@FILE` for its body; \
                         a line `# weight: 3` before it gives it three shares";
const JSON_HELP: &str = "a target is one line {\"method\": …, \"url\": …, \"header\": {\"name\": [\"value\"]}, \
                         \"body\": BASE64, \"weight\": 3}";

/// All targets of the text. Its first character tells its form.
///
/// # Errors
/// When a line is of neither form, or a body's file cannot be read.
pub fn parse(text: &str, common: &Common, read: Read) -> Result<Vec<Target>, BadLine> {
    if text.trim_start().starts_with('{') {
        json_lines(text, common)
    } else {
        HttpForm { common, read, weight: 1, targets: Vec::new(), ended: true }.parse(text)
    }
}

/// One object of the JSON form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTarget {
    method: String,
    url: String,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    body: String,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

fn json_lines(text: &str, common: &Common) -> Result<Vec<Target>, BadLine> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(text, line)| {
            let bad = |problem| BadLine { line, problem, help: JSON_HELP };
            let target = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
            json_target(target, common).map_err(bad)
        })
        .collect()
}

fn json_target(json: JsonTarget, common: &Common) -> Result<Target, String> {
    let body = BASE64_STANDARD
        .decode(json.body)
        .map_err(|error| format!("the body is no base64: {error}"))?;
    let own = json
        .header
        .into_iter()
        .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
    Ok(Target {
        url: json.url,
        method: json.method,
        headers: common.headers.iter().cloned().chain(own).collect(),
        body: if body.is_empty() { common.body.clone() } else { Body(body) },
        template: common.template,
        weight: positive(json.weight)?,
        expect: vec![],
    })
}

fn positive(weight: u32) -> Result<u32, String> {
    if weight == 0 { Err("a weight is 1 or more".into()) } else { Ok(weight) }
}

/// The plain form, line by line.
struct HttpForm<'a> {
    common: &'a Common,
    read: Read<'a>,
    /// Of the next target.
    weight: u32,
    targets: Vec<Target>,
    /// Whether the last target takes no more lines.
    ended: bool,
}

impl HttpForm<'_> {
    fn parse(mut self, text: &str) -> Result<Vec<Target>, BadLine> {
        for (text, line) in text.lines().zip(1..) {
            let bad = |problem| BadLine { line, problem, help: HTTP_HELP };
            self.line(text.trim()).map_err(bad)?;
        }
        Ok(self.targets)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            self.ended = true;
        } else if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment)?;
        } else if let Some((method, url)) = request_line(line) {
            self.begin(method, url);
        } else {
            self.within(line)?;
        }
        Ok(())
    }

    fn comment(&mut self, comment: &str) -> Result<(), String> {
        if let Some(weight) = comment.trim().strip_prefix("weight:") {
            let weight = weight.trim().parse().map_err(|_| "a weight is a whole number")?;
            self.weight = positive(weight)?;
        }
        Ok(())
    }

    fn begin(&mut self, method: &str, url: &str) {
        self.targets.push(Target {
            url: url.into(),
            method: method.into(),
            headers: self.common.headers.clone(),
            body: self.common.body.clone(),
            template: self.common.template,
            weight: std::mem::replace(&mut self.weight, 1),
            expect: vec![],
        });
        self.ended = false;
    }

    /// A line below the first of a target.
    fn within(&mut self, line: &str) -> Result<(), String> {
        let target = self.targets.last_mut().filter(|_| !self.ended);
        let target = target.ok_or_else(|| format!("`{line}` is no METHOD URL"))?;
        if let Some(file) = line.strip_prefix('@') {
            let body = (self.read)(Path::new(file));
            target.body = Body(body.map_err(|error| format!("cannot read {file}: {error}"))?);
            self.ended = true;
            return Ok(());
        }
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is no header"))?;
        target.headers.push((name.trim().into(), value.trim().into()));
        Ok(())
    }
}

/// `METHOD URL`; a header's name ends with its colon, a method never has one.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    is_method.then_some((method, url.trim()))
}

#[cfg(test)]
mod tests;
