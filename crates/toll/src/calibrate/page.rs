//! Turns a calibration into its page, for a terminal and as one HTML file that needs nothing else.

use maud::{Markup, html as markup};

use super::Calibration;
use super::equal::Equal;
use super::marks::{Mark, State};
use super::order::Order;
use super::planted::Found;
use super::words::{Change, change, name_of, percent, signed};
use crate::report;

/// A part of the page.
struct Section {
    title: &'static str,
    /// What to know before the table.
    text: String,
    head: Vec<&'static str>,
    /// The first cell of each is words, the others are figures.
    rows: Vec<Vec<String>>,
}

/// The page for a terminal of 80 columns, no longer than 60 lines.
pub fn terminal(calibration: &Calibration) -> String {
    let mut lines = vec![title(calibration), answer(calibration), String::new()];
    for section in sections(calibration) {
        lines.push(section.title.to_uppercase());
        if !section.text.is_empty() {
            lines.push(format!("  {}", section.text));
        }
        lines.extend(table(&section));
    }
    lines.join("\n")
}

/// The page as one HTML document.
pub fn html(calibration: &Calibration) -> String {
    let title = title(calibration);
    let body = markup! {
        header #answer { h1 { (title) } p.answer { (answer(calibration)) } }
        main {
            @for section in sections(calibration) {
                section {
                    h2 { (section.title) }
                    @if !section.text.is_empty() { p { (section.text) } }
                    (html_table(&section))
                }
            }
        }
    };
    report::document(&title, &body)
}

fn title(calibration: &Calibration) -> String {
    format!("toll calibrated on {}", calibration.study)
}

fn answer(calibration: &Calibration) -> String {
    let count = |state| calibration.marks.iter().filter(|mark| mark.state == state).count();
    let all = calibration.marks.len();
    if all == 0 {
        return "Too few rounds to judge anything: take more time.".into();
    }
    let open = match count(State::NotEnoughData) {
        0 => String::new(),
        open => format!(", {open} not decided for want of data"),
    };
    format!(
        "{} of {all} marks passed, {} failed{open}.",
        count(State::Passed),
        count(State::Failed)
    )
}

fn sections(calibration: &Calibration) -> Vec<Section> {
    let marks = (!calibration.marks.is_empty()).then(|| marks(&calibration.marks));
    let equal = calibration.equal.as_ref().map(equal);
    let order = calibration.equal.is_some().then(|| order(&calibration.order));
    let planted = (!calibration.planted.is_empty()).then(|| planted(calibration));
    [marks, equal, order, planted].into_iter().flatten().collect()
}

fn marks(marks: &[Mark]) -> Section {
    let row = |mark: &Mark| {
        let Mark { what, wanted, figure, state } = mark;
        vec![what.clone(), figure.clone(), wanted.clone(), state.words().into()]
    };
    Section {
        title: "Pass marks",
        text: "shares of intervals and reports; bias in standard errors".into(),
        head: vec!["", "is", "wanted", ""],
        rows: marks.iter().map(row).collect(),
    }
}

fn equal(equal: &Equal) -> Section {
    let range = |[low, high]: [f64; 2]| format!("{:.0} to {:.0} %", low * 100.0, high * 100.0);
    let mut rows: Vec<Vec<String>> = equal
        .metrics
        .iter()
        .map(|of| {
            vec![
                format!("{}: intervals that hold zero", name_of(of.metric)),
                percent(of.inside.share),
                range(of.by_chance),
                format!("+-{}", percent(of.half_width)),
                percent(of.detectable),
            ]
        })
        .collect();
    rows.push(vec![
        "reports with a false verdict".into(),
        percent(equal.false_reports.share),
        range(equal.false_by_chance),
        String::new(),
        String::new(),
    ]);
    let Equal { rounds, rounds_of_a_study, studies, .. } = equal;
    Section {
        title: "Equal arms",
        text: format!("{studies} studies of {rounds_of_a_study} rounds out of {rounds}"),
        head: vec!["", "share", "by chance", "width", "finds"],
        rows,
    }
}

fn order(orders: &[Order]) -> Section {
    let row = |what: String, of: &dyn Fn(&Order) -> Option<Change>| {
        let cells = orders.iter().map(|order| of(order).map_or("-".into(), |c| change(&c)));
        std::iter::once(what).chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![
        row("back against there".into(), &|order| order.back),
        row("last against first".into(), &|order| order.last),
        row("ends against middle".into(), &|order| order.ends),
    ];
    let guards = orders.first().map_or(&[][..], |order| &order.carry_over);
    for (at, guard) in guards.iter().enumerate() {
        let what = format!("after itself, {:.0} ms", guard.guard_s * 1e3);
        rows.push(row(what, &|order| order.carry_over.get(at).and_then(|of| of.change)));
    }
    Section {
        title: "Order of slices",
        text: "`after itself` by guard: against slices that follow another arm".into(),
        head: std::iter::once("").chain(orders.iter().map(|order| name_of(order.metric))).collect(),
        rows,
    }
}

fn planted(calibration: &Calibration) -> Section {
    let row = |found: &Found| {
        let what = format!("{}: {}", name_of(found.truth.metric), found.describes);
        let planted = found.planted.map_or("-".into(), signed);
        let right = match (found.right, found.halves.filter(|_| found.variant == "proxy")) {
            (_, Some([one, other])) => {
                format!("{:+.1}, {:+.1}", one.value * 100.0, other.value * 100.0)
            }
            (Some(right), None) => format!("{:.0} % right", right.share * 100.0),
            (None, None) => "-".into(),
        };
        vec![what, planted, change(&found.found), right]
    };
    // Of what must not move, the marks say enough.
    let must_move =
        |found: &&Found| found.truth.size != Some(0.0) || found.truth.multiple.is_some();
    let shown = calibration.planted.iter().filter(must_move);
    Section {
        title: "Planted effects",
        text: format!("{} rounds; of the proxy, its odd and even ones", calibration.planted_rounds),
        head: vec!["", "planted", "found", "8 rounds"],
        rows: shown.map(row).collect(),
    }
}

/// Words to the left, figures to the right.
fn table(section: &Section) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        std::iter::once(section.head.iter().map(|t| (*t).to_owned()).collect())
            .chain(section.rows.iter().cloned())
            .collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..section.head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("  {cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).filter(|line| !line.is_empty()).collect()
}

fn html_table(section: &Section) -> Markup {
    markup! {
        div.scroll role="region" tabindex="0" aria-label=(section.title) {
            table {
                thead { tr { @for title in &section.head { th scope="col" { (title) } } } }
                tbody {
                    @for row in &section.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th.words scope="row" { (cell) } }
                                @else { td.figures class=(tone(cell)) { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tone(cell: &str) -> &'static str {
    let is = |state: State| cell == state.words();
    if is(State::Failed) {
        "worse"
    } else if is(State::Passed) {
        "better"
    } else if is(State::NotEnoughData) {
        "unknown"
    } else {
        ""
    }
}
