//! Turns the results of the parts of one load into the result of the whole.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toll_load::{LoadPlan, LoadReport, Part};

use super::{LoadFault, figures};

/// Parts that begin further apart than this did not bear their load together, nanoseconds.
const TOGETHER_NS: u64 = 50_000_000;

/// The result of the whole.
#[derive(Debug)]
pub struct Merged {
    /// What the parts were parts of.
    pub plan: LoadPlan,
    /// Their reports, added up.
    pub report: LoadReport,
    /// What weakens it.
    pub notes: Vec<String>,
}

/// What `--output json` writes, as far as it is read here.
#[derive(Deserialize)]
struct Written {
    plan: LoadPlan,
    report: LoadReport,
}

/// Reads the files and merges them.
///
/// # Errors
/// When a file is no result, or the files are not the parts of one load.
pub fn merged(
    files: &[PathBuf],
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Merged, LoadFault> {
    let parts = files.iter().map(|path| written(path, &read)).collect::<Result<Vec<_>, _>>()?;
    let plan = whole(files, &parts)?;
    let reports: Vec<LoadReport> = parts.into_iter().map(|part| part.report).collect();
    let report = LoadReport::merge(&reports).expect("there is a report for each part");
    Ok(Merged { plan, report, notes: apart(&reports).into_iter().collect() })
}

/// Says when the parts ran one after the other: their sum is then a load that was never sent.
fn apart(reports: &[LoadReport]) -> Option<String> {
    let begins = || reports.iter().map(|report| report.measure_begin_unix_ns);
    let apart_ns = begins().max()?.abs_diff(begins().min()?);
    let apart = figures::time(apart_ns as f64 / 1e3);
    (apart_ns > TOGETHER_NS).then(|| {
        format!(
            "the parts did not run at the same time: their measured phases began up to {apart} apart; \
             give all of them one --start-at, and check that the machines' clocks agree"
        )
    })
}

fn written(
    path: &Path,
    read: &impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Written, LoadFault> {
    let unreadable =
        |source| LoadFault::Unreadable { what: "result", path: path.to_owned(), source };
    let bytes = read(path).map_err(unreadable)?;
    serde_json::from_slice(&bytes)
        .map_err(|source| LoadFault::NoResult { path: path.to_owned(), source })
}

/// The plan that the parts have in common.
fn whole(files: &[PathBuf], parts: &[Written]) -> Result<LoadPlan, LoadFault> {
    let without_part = |plan: &LoadPlan| LoadPlan { part: Part::default(), ..plan.clone() };
    let plan = without_part(&parts[0].plan);
    if let Some(at) = parts.iter().position(|other| without_part(&other.plan) != plan) {
        return Err(LoadFault::OtherLoad { first: files[0].clone(), path: files[at].clone() });
    }
    let mut indexes: Vec<(u32, u32)> =
        parts.iter().map(|part| (part.plan.part.index, part.plan.part.of)).collect();
    indexes.sort_unstable();
    let of = parts[0].plan.part.of;
    if indexes != (0..of).map(|index| (index, of)).collect::<Vec<_>>() {
        let parts = indexes.iter().map(|(index, of)| format!("{}/{of}", index + 1));
        return Err(LoadFault::WrongParts { seen: parts.collect::<Vec<_>>().join(", ") });
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use toll_load::{LoadModel, Stop, Target};

    use super::super::{Finished, output::ReportForm};
    use super::*;

    fn part(index: u32, of: u32, clients: u32) -> String {
        part_begun_at(0, index, of, clients)
    }

    fn part_begun_at(unix_ns: u64, index: u32, of: u32, clients: u32) -> String {
        let model = LoadModel::closed(clients);
        let plan = LoadPlan {
            part: Part { index, of },
            ..LoadPlan::new(Target::get("http://a/"), model, Stop::AfterRequests(10))
        };
        let mut report = LoadReport { measure_begin_unix_ns: unix_ns, ..LoadReport::default() };
        report.measure.done = u64::from(index) + 1;
        report.measure.latency.record_ns(1000 * u64::from(index + 1));
        ReportForm::Json.render(Finished { plan: &plan, report: &report })
    }

    fn merge(texts: &[String]) -> Result<Merged, LoadFault> {
        let names: Vec<PathBuf> = (1..=texts.len()).map(|n| format!("{n}.json").into()).collect();
        merged(&names, |path| {
            let at = names.iter().position(|name| name == path).unwrap();
            Ok(texts[at].clone().into_bytes())
        })
    }

    #[test]
    fn parts_in_any_order_make_the_whole() {
        let merged = merge(&[part(2, 3, 5), part(0, 3, 5), part(1, 3, 5)]).unwrap();
        assert_eq!(merged.plan.part, Part::default());
        let measure = &merged.report.measure;
        assert_eq!((measure.done, measure.latency.count()), (6, 3));
    }

    #[test]
    fn parts_that_ran_at_different_times_are_noted() {
        const BEGIN_NS: u64 = 1_795_262_401_000_000_000;
        let notes = |late_ns: u64| {
            let late = part_begun_at(BEGIN_NS + late_ns, 0, 2, 5);
            merge(&[late, part_begun_at(BEGIN_NS, 1, 2, 5)]).unwrap().notes.join("\n")
        };
        assert_eq!(notes(50_000_000), "");
        let told = notes(1_200_000_000);
        assert!(told.starts_with("the parts did not run at the same time: "), "{told}");
        assert!(told.contains("1.20 s apart"), "{told}");
    }

    #[test]
    fn what_is_not_one_whole_is_refused() {
        let fault = |texts: &[String]| merge(texts).unwrap_err().to_string();
        let wrong = "not the parts of one load: ";
        assert!(fault(&[part(0, 3, 5), part(1, 3, 5)]).contains(&format!("{wrong}1/3, 2/3")));
        assert!(fault(&[part(0, 2, 5), part(0, 2, 5)]).contains(&format!("{wrong}1/2, 1/2")));
        assert_eq!(
            fault(&[part(0, 2, 5), part(1, 2, 6)]),
            "2.json is the result of another load than 1.json"
        );
        assert!(fault(&["{}".into()]).contains("1.json is no result that can be merged"));
    }
}
