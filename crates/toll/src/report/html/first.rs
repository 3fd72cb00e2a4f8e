//! The first screen of the page: question, answer, what stands proven, one table with a row a variant, two pictures and
//! what it costs at a round rate. Made to be taken in at 1280 x 800.

use maud::{Markup, html};

use super::palette::Palette;
use super::{drawing, tone_class};
use crate::report::first::{Change, Figure, Head, Row, Screen, Sheet};

/// An answer of more letters is set smaller.
const LONG: usize = 170;
/// With more rows than this they are set close.
const FEW_ROWS: usize = 3;
/// Intervals that reach further than so many times the largest change are cut: they would hide the others.
const MOST: f64 = 2.0;

pub(super) fn screen(screen: &Screen, palette: &Palette) -> Markup {
    let is_long = screen.answer.chars().count() > LONG;
    html! {
        header.bar {
            b { "toll" } span { (screen.study) } span { (screen.began) }
            span.machine { (screen.machine) }
        }
        div #answer {
            p.question { (screen.question) }
            h1 class=[is_long.then_some("long")] { (screen.answer) }
            ul.badges {
                @for badge in &screen.badges { li class=(tone_class(badge.tone)) { (badge.text) } }
            }
            @if let Some(sheet) = &screen.sheet { (table(sheet)) }
            (pictures(screen, palette))
        }
    }
}

fn pictures(screen: &Screen, palette: &Palette) -> Markup {
    let [latency, payers] = &screen.pictures;
    html! {
        div.two {
            div { @if let Some(chart) = latency { (drawing::figure(chart, palette)) } }
            div {
                @if let Some(chart) = payers { (drawing::figure(chart, palette)) }
                div.cost {
                    @if let Some((at, cost)) = &screen.cost { p { b { (at) ":" } " " (cost) } }
                    @for line in &screen.further { p { (line) } }
                }
            }
        }
    }
}

fn table(sheet: &Sheet) -> Markup {
    let reaches: Vec<(f64, f64)> = (0..sheet.columns.len()).map(|at| reach(sheet, at)).collect();
    let close = if sheet.rows.len() > FEW_ROWS { "sheet close" } else { "sheet" };
    // The description takes the width that the metrics leave.
    let share = format!("width:{}%", 46usize.saturating_sub(sheet.columns.len() * 4).max(20));
    html! {
        table class=(close) {
            thead { tr {
                th scope="col" style=(share) { (sheet.at_load) }
                @for head in &sheet.columns { th scope="col" { (title(head)) } }
            } }
            tbody { @for row in &sheet.rows { (table_row(row, sheet, &reaches)) } }
        }
    }
}

fn title(head: &Head) -> String {
    format!("{}, {}", head.title, head.unit)
}

fn table_row(row: &Row, sheet: &Sheet, reaches: &[(f64, f64)]) -> Markup {
    html! {
        tr {
            th scope="row" {
                b { (row.name) } @if row.is_baseline { " " i { "baseline" } }
                small title=(row.describes) { (row.describes) }
            }
            @if let Some(why) = &row.missing {
                td.missing colspan=(sheet.columns.len()) { (why) }
            } @else {
                @for ((cell, head), reach) in row.cells.iter().zip(&sheet.columns).zip(reaches) {
                    td data-title=(title(head)) { @if let Some(figure) = cell { (shown(figure, *reach)) } }
                }
            }
        }
    }
}

fn shown(figure: &Figure, reach: (f64, f64)) -> Markup {
    html! {
        b.value { (figure.value) }
        @if let Some(change) = &figure.change {
            " " span class=(format!("change {}", tone_class(change.tone))) { (change.figure) }
            div class=(format!("interval {}", tone_class(change.tone))) {
                (whisker(change, reach))
                span.range { (change.range) }
            }
        }
    }
}

/// How far a column's changes reach, zero among them; what reaches much further than the largest is cut.
fn reach(sheet: &Sheet, at: usize) -> (f64, f64) {
    let changes = || {
        let figures = sheet.rows.iter().filter_map(move |row| row.cells[at].as_ref());
        figures.filter_map(|figure| figure.change.as_ref())
    };
    let finite = |v: &f64| v.is_finite();
    let furthest = changes().map(|c| c.at.abs()).filter(finite).fold(0.0, f64::max) * MOST;
    let ends =
        changes().flat_map(|c| [c.at, c.ends.map_or(c.at, |e| e.0), c.ends.map_or(c.at, |e| e.1)]);
    let (low, high) =
        ends.filter(finite).fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = (low.max(-furthest), high.min(furthest));
    let pad = (high - low).max(1e-9) * 0.06;
    (low - pad, high + pad)
}

/// A dot for the change and a line for its interval over the zero of the column; an arrow where it is cut.
fn whisker(change: &Change, (low, high): (f64, f64)) -> Markup {
    let place = |value: f64| ((value - low) / (high - low) * 100.0).clamp(0.0, 100.0);
    let left = |value: f64| format!("left:{:.1}%", place(value));
    let (from, to) = change.ends.unwrap_or((change.at, change.at));
    let cut = match (from < low, to > high) {
        (true, true) => "line cut-left cut-right",
        (true, false) => "line cut-left",
        (false, true) => "line cut-right",
        (false, false) => "line",
    };
    html! {
        span.whisker aria-hidden="true" {
            i.zero style=(left(0.0)) {}
            i class=(cut) style=(format!("{};width:{:.1}%", left(from), place(to) - place(from))) {}
            @if change.at.is_finite() { i.dot style=(left(change.at)) {} }
        }
    }
}
