//! Puts a result where it was asked for: files, stdout, and rows while the load still runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toll_load::{LoadPlan, Sample};

use super::output::{ReportForm, RowForm, RowWriter};
use super::{Finished, LoadFault};

/// The forms by name.
const FORMS: [(&str, Form); 9] = [
    ("hey", Form::Report(ReportForm::Hey)),
    ("wrk", Form::Report(ReportForm::Wrk)),
    ("k6", Form::Report(ReportForm::K6)),
    ("vegeta", Form::Report(ReportForm::Vegeta)),
    ("jmeter-csv", Form::Rows(RowForm::JmeterCsv)),
    ("csv", Form::Rows(RowForm::Csv)),
    ("json", Form::Report(ReportForm::Json)),
    ("hdr", Form::Report(ReportForm::Hdr)),
    ("prometheus", Form::Report(ReportForm::Prometheus)),
];

/// A form, and the file to write it to; stdout without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChoice {
    form: Form,
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Of the whole, at the end.
    Report(ReportForm),
    /// Of each request, as they come.
    Rows(RowForm),
}

/// What stdout is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Stdout {
    /// Nobody asked for it.
    Free,
    /// This text.
    Text(String),
    /// Rows stand on it.
    Taken,
}

/// What became of the outputs.
#[derive(Debug)]
pub struct Delivered {
    /// What stdout is for.
    pub stdout: Stdout,
    /// The first file that could not be written, now or during the load.
    pub failure: Option<LoadFault>,
}

/// Outputs that are open.
pub struct Outputs<'a> {
    choices: &'a [OutputChoice],
    rows: Vec<OpenRows<'a>>,
    failure: Option<LoadFault>,
}

/// Rows that are being written.
struct OpenRows<'a> {
    /// Where to; stdout without one.
    path: Option<&'a Path>,
    writer: RowWriter<Box<dyn Write>>,
}

impl FromStr for OutputChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("the file's name is missing after `=`".into()),
            Some((name, file)) => (name, Some(file.into())),
            None => (text, None),
        };
        let form = FORMS.iter().find(|(known, _)| *known == name);
        let (_, form) = form.ok_or_else(|| unknown(name))?;
        Ok(Self { form: *form, file })
    }
}

fn unknown(name: &str) -> String {
    let names = FORMS.map(|(name, _)| name);
    let distance = |known: &&&str| strsim::damerau_levenshtein(known, name);
    match names.iter().min_by_key(distance).filter(|nearest| distance(nearest) <= 2) {
        Some(nearest) => format!("no form is called `{name}`: did you mean `{nearest}`?"),
        None => format!("no form is called `{name}`: there are {}", names.join(", ")),
    }
}

impl<'a> Outputs<'a> {
    /// Makes sure before the load that every result will find its place, and begins the rows.
    ///
    /// # Errors
    /// When two forms want stdout, or a file cannot be written.
    pub fn open(choices: &'a [OutputChoice], plan: &LoadPlan) -> Result<Self, LoadFault> {
        if choices.iter().filter(|choice| choice.file.is_none()).count() > 1 {
            return Err(LoadFault::TwoOnStdout);
        }
        let mut rows = Vec::new();
        for choice in choices {
            let path = choice.file.as_deref();
            let opened = match choice.form {
                Form::Report(_) => path.map_or(Ok(()), probe),
                Form::Rows(form) => {
                    begin_rows(form, path, plan).map(|writer| rows.push(OpenRows { path, writer }))
                }
            };
            opened.map_err(|source| unwritable(path, source))?;
        }
        Ok(Self { choices, rows, failure: None })
    }

    /// Whether single requests are asked for.
    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Writes rows. A write that fails is reported at the end: the load goes on.
    pub fn take(&mut self, samples: &[Sample]) {
        for OpenRows { path, writer } in &mut self.rows {
            let written = writer.rows(samples);
            keep_first(&mut self.failure, *path, written);
        }
    }

    /// Writes the reports. A file that cannot be written keeps neither the others nor stdout from theirs: the load
    /// is over, and what it measured would be lost.
    pub fn deliver(mut self, finished: Finished<'_>) -> Delivered {
        for OpenRows { path, writer } in &mut self.rows {
            let written = writer.flush();
            keep_first(&mut self.failure, *path, written);
        }
        let mut stdout = Stdout::Free;
        for OutputChoice { form, file } in self.choices {
            match (form, file) {
                (Form::Report(form), Some(path)) => {
                    let written = fs::write(path, form.render(finished));
                    keep_first(&mut self.failure, Some(path), written);
                }
                (Form::Report(form), None) => stdout = Stdout::Text(form.render(finished)),
                (Form::Rows(_), Some(_)) => {}
                (Form::Rows(_), None) => stdout = Stdout::Taken,
            }
        }
        Delivered { stdout, failure: self.failure }
    }
}

/// An older result stays as it is until there is a new one.
fn probe(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path).map(drop)
}

fn begin_rows(
    form: RowForm,
    path: Option<&Path>,
    plan: &LoadPlan,
) -> io::Result<RowWriter<Box<dyn Write>>> {
    let out: Box<dyn Write> = match path {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    RowWriter::new(form, plan, out)
}

/// A reader that closed the pipe has what it wanted.
fn keep_first(failure: &mut Option<LoadFault>, path: Option<&Path>, written: io::Result<()>) {
    let Err(source) = written else { return };
    if failure.is_none() && source.kind() != io::ErrorKind::BrokenPipe {
        *failure = Some(unwritable(path, source));
    }
}

fn unwritable(path: Option<&Path>, source: io::Error) -> LoadFault {
    LoadFault::Unwritable { path: path.unwrap_or(Path::new("stdout")).to_owned(), source }
}

#[cfg(test)]
mod tests {
    use toll_load::{LoadModel, LoadReport, Stop, Target};

    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan::new(Target::get("http://a/"), LoadModel::closed(1), Stop::AfterRequests(1))
    }

    fn choice(text: &str) -> OutputChoice {
        text.parse().unwrap()
    }

    fn fault(choices: &[&str]) -> LoadFault {
        let choices: Vec<_> = choices.iter().map(|text| choice(text)).collect();
        Outputs::open(&choices, &plan()).err().unwrap()
    }

    #[test]
    fn a_form_goes_to_stdout_or_to_a_file() {
        let json = Form::Report(ReportForm::Json);
        assert_eq!(choice("json"), OutputChoice { form: json, file: None });
        let jtl = Form::Rows(RowForm::JmeterCsv);
        assert_eq!(
            choice("jmeter-csv=a=b.jtl"),
            OutputChoice { form: jtl, file: Some("a=b.jtl".into()) }
        );
        assert!("json=".parse::<OutputChoice>().unwrap_err().contains("missing"));
    }

    #[test]
    fn an_unknown_form_is_refused_with_the_nearest_one() {
        let refused = |text: &str| text.parse::<OutputChoice>().unwrap_err();
        assert!(refused("jsn").contains("did you mean `json`?"));
        assert!(refused("spreadsheet").contains("there are hey, wrk"));
    }

    #[test]
    fn only_one_form_fits_on_stdout() {
        assert!(matches!(fault(&["json", "csv"]), LoadFault::TwoOnStdout));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_the_load() {
        for form in ["json", "csv"] {
            let fault = fault(&[&format!("{form}=/nonexistent/folder/out")]);
            assert!(matches!(fault, LoadFault::Unwritable { .. }), "{form}");
        }
    }

    #[test]
    fn reports_and_rows_find_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let choices = [
            choice(&format!("csv={}", path("rows"))),
            choice(&format!("hey={}", path("hey"))),
            choice("json"),
        ];
        let (plan, report) = (plan(), LoadReport::default());
        let outputs = Outputs::open(&choices, &plan).unwrap();
        assert!(outputs.has_rows());
        let delivered = outputs.deliver(Finished { plan: &plan, report: &report });
        assert!(delivered.failure.is_none());
        assert!(matches!(delivered.stdout, Stdout::Text(json) if json.starts_with('{')));
        assert_eq!(fs::read_to_string(path("rows")).unwrap().lines().count(), 1);
        assert!(fs::read_to_string(path("hey")).unwrap().contains("Summary"));
    }

    #[test]
    fn a_full_disk_takes_nothing_from_the_other_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let hey = folder.path().join("hey");
        let choices = [choice("json=/dev/full"), choice(&format!("hey={}", hey.display()))];
        let (plan, report) = (plan(), LoadReport::default());
        let outputs = Outputs::open(&choices, &plan).unwrap();
        let delivered = outputs.deliver(Finished { plan: &plan, report: &report });
        assert_eq!(delivered.stdout, Stdout::Free);
        let fault = delivered.failure.unwrap();
        assert!(fault.to_string().starts_with("cannot write /dev/full"), "{fault}");
        assert!(!fault.is_usage());
        assert!(fs::read_to_string(hey).unwrap().contains("Summary"));
    }
}
