//! The words of a report, explained. Only words that the report uses.

use crate::analysis::findings::{Findings, View};

use super::content::section;
use super::table::{Piece, Section, Table, words};

/// What the words of the report mean.
pub(super) fn reading(findings: &Findings) -> Section {
    let rows = [
        (
            "block",
            "Every variant once, in shuffled order. The block is the unit: all differences are taken within one.",
        ),
        ("change", "Variant minus baseline, paired within blocks, then averaged."),
        (
            "interval",
            "Where the true change lies at the stated level, judged by how much the blocks differ. It comes from the blocks, never from single requests.",
        ),
        (
            "noise floor",
            "The change that the baseline shows against itself in this run. A change below it may be nothing but noise.",
        ),
        (
            "higher, lower",
            "The interval excludes zero and the change stands above the noise floor.",
        ),
        (
            "no difference larger than",
            "The whole interval lies within the bound that the study states.",
        ),
        ("cannot tell", "Neither of these. More blocks may narrow the interval."),
        (
            "at equal rate",
            "Requests arrive on the same schedule for every variant, whether or not earlier ones are done. Latency counts from the scheduled instant.",
        ),
        (
            "flat out",
            "A fixed number of connections, each sending its next request when the last one is answered. A slower variant then gets less load, so this view answers how much a variant carries, not what it costs.",
        ),
        (
            "CPU per request",
            "CPU time of application and data plane divided by completed requests. Plain CPU use misleads when rates differ; it is shown only as a view, with how far the rates are apart.",
        ),
        (
            "steal, calibration",
            "Signs of a disturbed machine: CPU time that the hypervisor gave to others, and how much slower a fixed piece of work ran than at its fastest.",
        ),
    ];
    let rows = rows.into_iter().chain(of_some(findings));
    let rows = rows.map(|(word, meaning)| vec![word.into(), meaning.into()]).collect();
    let table = Table::new(vec![words(""), words("")], rows);
    section("reading", "How to read this", vec![Piece::Table(table)])
}

/// Words that only studies of agents, JVMs, virtual users and staircases need.
fn of_some(findings: &Findings) -> impl Iterator<Item = (&'static str, &'static str)> {
    let users = findings.loads.iter().any(|load| load.view == View::Users);
    let jvms = findings.loads.iter().any(|load| !load.jvms.is_empty());
    let stairs = !findings.staircases.is_empty();
    let rows = [
        (
            stairs,
            "carries less, more",
            "Throughput over all steps of the staircase: within a block the geometric mean of the steps' ratios. Judged as higher and lower are.",
        ),
        (
            stairs,
            "case before",
            "The variant that stands before in the study, to which this one adds one thing.",
        ),
        (
            stairs,
            "data plane",
            "The proxies that the mesh puts in the way: sidecars, egress gateway, SNI proxy.",
        ),
        (
            users,
            "virtual users",
            "Users who send some requests at once, wait for the answers, pause, and begin again. Their number rises and falls as the load says; the measured window is all of it.",
        ),
        (
            users,
            "knee",
            "The highest rate that a variant carries without a queue. Past it latency says how long the queue is, not what a request costs.",
        ),
        (
            !findings.span_costs.is_empty(),
            "span",
            "What an agent records of one step of a request: a call that came in, a call or a query that went out.",
        ),
        (
            jvms,
            "CPU load",
            "CPU time of the process by the time of all cores, as the JVM counts it. It falls with the rate, so CPU per request leads.",
        ),
        (
            jvms,
            "heap after collection",
            "What the heap held right after the last collection of each pool: what is still in use. The old generation's part dates from its own last collection, which may be long ago. Heap used counts garbage too, and so mirrors when collections happen.",
        ),
    ];
    rows.into_iter().filter(|(used, ..)| *used).map(|(_, word, meaning)| (word, meaning))
}
