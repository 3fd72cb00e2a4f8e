//! Renders a finished load in the forms that scripts around other load generators parse.
//!
//! A form keeps the tool's labels, columns, order and units; what toll's figures mean differently stands in the
//! form's own header. For all of them:
//! - Figures are those of the measured phase; warm-up is left out.
//! - Latency runs from the instant that a request was due, so waiting for a busy connection is part of it. It is
//!   that of complete answers, where some tools mix in the time that failed requests took.
//! - A refused connection is a failed attempt, not a failed request: the request waits for another connection.
//! - Where toll has no such number stands what the tool prints when it has none.
//!
//! Prints nothing and reads nothing but its arguments.

mod csv;
mod hdr;
mod hey;
mod jmeter;
mod json;
mod k6;
mod prometheus;
#[cfg(test)]
mod tests;
mod vegeta;
mod wrk;

use std::io::{self, Write};

use toll_load::{LoadPlan, PhaseReport, Sample};

use super::Finished;
use super::counts::{self, share};

/// A form of the whole result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportForm {
    /// hey's text.
    Hey,
    /// wrk's text with `--latency`.
    Wrk,
    /// k6's end-of-test summary in full.
    K6,
    /// vegeta's text report.
    Vegeta,
    /// Plan, report and a flat summary.
    Json,
    /// HdrHistogram's percentile distribution.
    Hdr,
    /// Prometheus' text exposition.
    Prometheus,
}

impl ReportForm {
    /// The text, its last line ended.
    pub fn render(self, load: Finished<'_>) -> String {
        match self {
            ReportForm::Hey => hey::render(load),
            ReportForm::Wrk => wrk::render(load),
            ReportForm::K6 => k6::render(load),
            ReportForm::Vegeta => vegeta::render(load),
            ReportForm::Json => json::render(load),
            ReportForm::Hdr => hdr::render(load),
            ReportForm::Prometheus => prometheus::render(load),
        }
    }
}

/// A form with a row for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// JMeter's result file.
    JmeterCsv,
    /// Toll's own columns.
    Csv,
}

/// Writes a row for each request, as the samples come.
#[derive(Debug)]
pub struct RowWriter<W> {
    out: W,
    columns: Columns,
}

#[derive(Debug)]
enum Columns {
    Jmeter(jmeter::Labels),
    Csv,
}

impl<W: Write> RowWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// What `out` refuses.
    pub fn new(form: RowForm, plan: &LoadPlan, mut out: W) -> io::Result<RowWriter<W>> {
        let (header, columns) = match form {
            RowForm::JmeterCsv => (jmeter::HEADER, Columns::Jmeter(jmeter::Labels::new(plan))),
            RowForm::Csv => (csv::HEADER, Columns::Csv),
        };
        writeln!(out, "{header}")?;
        Ok(RowWriter { out, columns })
    }

    /// Writes the samples' rows, in their order.
    ///
    /// # Errors
    /// What `out` refuses.
    pub fn rows(&mut self, samples: &[Sample]) -> io::Result<()> {
        for sample in samples {
            match &self.columns {
                Columns::Jmeter(labels) => labels.write(sample, &mut self.out)?,
                Columns::Csv => csv::write(sample, &mut self.out)?,
            }
        }
        Ok(())
    }

    /// Hands all rows on.
    ///
    /// # Errors
    /// What `out` refuses.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What several forms ask of a load.
impl Finished<'_> {
    fn measured(&self) -> &PhaseReport {
        &self.report.measure
    }

    /// Length of the measured phase, seconds.
    fn seconds(&self) -> f64 {
        counts::seconds(self.measured())
    }

    /// Requests that failed; attempts to connect are not requests.
    fn failed(&self) -> u64 {
        counts::failed(self.measured())
    }

    /// Requests that came to an end, answered or failed.
    fn requests(&self) -> u64 {
        counts::ended(self.measured())
    }

    /// Requests that came to an end per second. Answers count when they came within the phase: one that an
    /// overloaded service gave later adds nothing to its throughput.
    fn requests_per_s(&self) -> f64 {
        self.per_second((self.measured().completed + self.failed()) as f64)
    }

    /// Complete answers that say that something went wrong.
    fn refused(&self) -> u64 {
        counts::refused(self.measured())
    }

    fn per_second(&self, amount: f64) -> f64 {
        counts::per_second(self.measured(), amount)
    }
}
