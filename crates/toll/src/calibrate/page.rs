//! Turns a calibration into its page: sections as a report has them, for a terminal and as one HTML file.

use super::Calibration;
use super::equal::Equal;
use super::marks::{Mark, State};
use super::order::Order;
use super::planted::Found;
use super::words::{Change, change, name_of, percent, signed};
use crate::report::{self, Cell, Column, Piece, Section, Table, Tone, heads, row};

/// The page for a terminal of 80 columns, no longer than 60 lines.
pub fn terminal(calibration: &Calibration) -> String {
    report::brief(&title(calibration), &answer(calibration), &sections(calibration))
}

/// The page as one HTML document that needs nothing else.
pub fn html(calibration: &Calibration) -> String {
    report::page(&title(calibration), &answer(calibration), &sections(calibration))
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

/// What to know, then the table.
fn section(
    id: &str,
    title: &str,
    text: impl Into<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
) -> Section {
    let table = Piece::Table(Table::new(columns, rows));
    Section::new(id, title, vec![Piece::Text(text.into()), table])
}

fn marks(marks: &[Mark]) -> Section {
    let of = |Mark { what, wanted, figure, state }: &Mark| {
        let tone = match state {
            State::Passed => Tone::Better,
            State::Failed => Tone::Worse,
            State::NotEnoughData => Tone::Unknown,
        };
        row(what, [figure.into(), wanted.into(), Cell::toned(state.words(), tone)])
    };
    let text = "shares of intervals and reports; bias in standard errors";
    let rows = marks.iter().map(of).collect();
    section("marks", "Pass marks", text, heads("", ["is", "wanted", ""]), rows)
}

fn equal(equal: &Equal) -> Section {
    let range = |[low, high]: [f64; 2]| format!("{:.0} to {:.0} %", low * 100.0, high * 100.0);
    let mut rows: Vec<Vec<Cell>> = equal
        .metrics
        .iter()
        .map(|of| {
            let name = format!("{}: intervals that hold zero", name_of(of.metric));
            let width = format!("+-{}", percent(of.half_width));
            let share = percent(of.inside.share);
            row(name, [share, range(of.by_chance), width, percent(of.detectable)])
        })
        .collect();
    let (share, by_chance) = (percent(equal.false_reports.share), range(equal.false_by_chance));
    let none = String::new;
    rows.push(row("reports with a false verdict", [share, by_chance, none(), none()]));
    let Equal { rounds, rounds_of_a_study, studies, .. } = equal;
    let text = format!("{studies} studies of {rounds_of_a_study} rounds out of {rounds}");
    section("equal", "Equal arms", text, heads("", ["share", "by chance", "width", "finds"]), rows)
}

fn order(orders: &[Order]) -> Section {
    let of = |what: &str, of: &dyn Fn(&Order) -> Option<Change>| {
        row(what, orders.iter().map(|order| of(order).map_or("-".into(), |c| change(&c))))
    };
    let mut rows = vec![
        of("back against there", &|order| order.back),
        of("last against first", &|order| order.last),
        of("ends against middle", &|order| order.ends),
    ];
    let guards = orders.first().map_or(&[][..], |order| &order.carry_over);
    for (at, guard) in guards.iter().enumerate() {
        let what = format!("after itself, {:.0} ms", guard.guard_s * 1e3);
        rows.push(of(&what, &|order| order.carry_over.get(at).and_then(|of| of.change)));
    }
    let text = "`after itself` by guard: against slices that follow another arm";
    let columns = heads("", orders.iter().map(|order| name_of(order.metric)));
    section("order", "Order of slices", text, columns, rows)
}

fn planted(calibration: &Calibration) -> Section {
    let of = |found: &Found| {
        let what = format!("{}: {}", name_of(found.truth.metric), found.describes);
        let planted = found.planted.map_or("-".into(), signed);
        let right = match (found.right, found.halves.filter(|_| found.variant == "proxy")) {
            (_, Some([one, other])) => {
                format!("{:+.1}, {:+.1}", one.value * 100.0, other.value * 100.0)
            }
            (Some(right), None) => format!("{:.0} % right", right.share * 100.0),
            (None, None) => "-".into(),
        };
        row(what, [planted, change(&found.found), right])
    };
    // Of what must not move, the marks say enough.
    let must_move =
        |found: &&Found| found.truth.size != Some(0.0) || found.truth.multiple.is_some();
    let rows = calibration.planted.iter().filter(must_move).map(of).collect();
    let text =
        format!("{} rounds; of the proxy, its odd and even ones", calibration.planted_rounds);
    let columns = heads("", ["planted", "found", "8 rounds"]);
    section("planted", "Planted effects", text, columns, rows)
}
