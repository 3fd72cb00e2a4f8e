//! The words of a report, explained. Only words that the report uses.

use crate::analysis::findings::{Findings, View};

use crate::report::document::{Piece, Section, Table, words};

/// What the words of the report mean.
pub(in crate::report) fn reading(findings: &Findings) -> Section {
    let rows = [
        (
            "round",
            "Every variant started afresh, all side by side, the baseline twice. What differs from start to start shows only over rounds, so the round is the unit.",
        ),
        (
            "cycle, slice",
            "Within a round the load goes round the variants in slices of a fraction of a second, in shuffled order and back: one cycle. What the machine does from second to second meets all of them alike.",
        ),
        ("change", "Variant against baseline within a round, then over the rounds."),
        (
            "interval",
            "Where the true change lies at the stated level, judged by how much the rounds differ. It comes from the rounds, never from single requests.",
        ),
        (
            "verdict",
            "Of headline metrics only, and from two rounds on: higher, lower, no difference larger than the bound that the study states, or cannot tell. All else is an interval; grey where it holds zero.",
        ),
        (
            "baseline against itself",
            "The second arm of the baseline against its first: a check, which should show nothing.",
        ),
        (
            "excused",
            "A cycle that the machine disturbed is left out, for all variants alike, by a rule that looks at no result.",
        ),
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
        ("steal", "Share of the cores' time that the hypervisor gave to others."),
    ];
    let rows = rows.into_iter().chain(of_some(findings));
    let rows = rows.map(|(word, meaning)| vec![word.into(), meaning.into()]).collect();
    let table = Table::new(vec![words(""), words("")], rows);
    Section::new("reading", "How to read this", vec![Piece::Table(table)])
}

/// Words that only studies of agents, JVMs, virtual users and staircases need.
fn of_some(findings: &Findings) -> impl Iterator<Item = (&'static str, &'static str)> {
    let users = findings.loads.iter().any(|load| load.view == View::Users);
    let jvms = findings.loads.iter().any(|load| !load.jvms.is_empty());
    let stairs = !findings.staircases.is_empty();
    let rows = [
        (
            stairs,
            "step before",
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
            "capacity",
            "What a variant carries flat out. Near it latency says how long the queue is, not what a request costs.",
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
