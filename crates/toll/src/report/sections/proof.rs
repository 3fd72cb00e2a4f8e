//! Turns the proofs of path into lines and a table. Judges nothing.

use crate::analysis::findings::{CallRate, Claim, Findings, ProofSummary, SpansOfLoads, Topic};

use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, words};
use crate::report::figures::{rounded, share};
use crate::report::values::in_first_order;

/// Of claims that the same cases make more are only counted.
const MOST_ALIKE: usize = 6;

/// Proof of path: how many arms are proven, and the claims behind it.
pub(in crate::report) fn proof(findings: &Findings) -> Section {
    let text = "An arm counts only if the traffic provably took the path that its variant claims. The arms of all rounds are counted; the claims are those of the last.";
    let mut pieces = vec![Piece::Text(text.into())];
    pieces.extend(spans(findings));
    pieces.extend(calls(findings));
    pieces.extend((!findings.proofs.is_empty()).then(|| {
        let table = if findings.staircases.is_empty() { all_claims } else { side_by_side };
        Piece::Table(table(&findings.proofs))
    }));
    Section::new("proof", "Proof of path", pieces).saying(answer(findings))
}

/// `30 of 30 paths proven`, or what failed.
fn answer(findings: &Findings) -> String {
    let (proven, all) = findings.extent.proven;
    let failed: Vec<&str> =
        findings.proofs.iter().filter(|p| p.proven < p.arms).map(|p| p.variant.as_str()).collect();
    let claims: usize = findings.proofs.iter().map(|p| p.claims.len()).sum();
    if failed.is_empty() {
        format!("{proven} of {all} paths proven, {claims} claims")
    } else {
        format!("{proven} of {all} paths proven; not all of {}", failed.join(", "))
    }
}

/// What each claim expected and what was seen.
pub(in crate::report) fn claims(findings: &Findings) -> Section {
    let table = Piece::Table(all_claims(&findings.proofs));
    Section::new("claims", "Claims of the proofs, as expected and as seen", vec![table])
}

fn all_claims(proofs: &[ProofSummary]) -> Table {
    let columns = vec![words("claim"), words("expected"), words("seen"), words("holds")];
    Table { columns, groups: proofs.iter().map(proof_group).collect() }
}

/// A row a claim, a column a variant: cases of one study share most of their claims, so how they differ is seen.
fn side_by_side(proofs: &[ProofSummary]) -> Table {
    let row = |title: String, cells: Vec<Cell>| -> Vec<Cell> {
        std::iter::once(title.into()).chain(cells).collect()
    };
    let proven = proofs.iter().map(|of| format!("{}\u{a0}of\u{a0}{}", of.proven, of.arms));
    let mut rows = vec![row("arms proven".into(), proven.map(Cell::from).collect())];
    for (who, claims) in alike(proofs) {
        let cells = |claim: &str| proofs.iter().map(|proof| holds(proof, claim)).collect();
        let failed = claims.iter().filter(|claim| fails(proofs, claim)).count();
        let shown = claims.len().min(MOST_ALIKE.max(failed));
        rows.extend(claims[..shown].iter().map(|claim| row((*claim).to_owned(), cells(claim))));
        let more = |has: &bool| if *has { Cell::toned("yes", Tone::Same) } else { Cell::absent() };
        let rest = claims.len() - shown;
        let title = format!("{rest} more of these cases");
        rows.extend((rest > 0).then(|| row(title, who.iter().map(more).collect())));
    }
    let heads = proofs.iter().map(|proof| words(&proof.variant));
    Table::new(std::iter::once(words("claim")).chain(heads).collect(), rows)
}

/// Which of the cases make a claim, and the claims that just these make: those that fail, then those that lead.
type Alike<'a> = (Vec<bool>, Vec<&'a str>);

fn alike(proofs: &[ProofSummary]) -> Vec<Alike<'_>> {
    let all = proofs.iter().flat_map(|proof| &proof.claims);
    let mut alike: Vec<Alike<'_>> = Vec::new();
    for claim in in_first_order(all.clone().map(|of| of.claim.as_str())) {
        let who: Vec<bool> =
            proofs.iter().map(|proof| proof.claims.iter().any(|of| of.claim == claim)).collect();
        match alike.iter_mut().find(|(of, _)| *of == who) {
            Some((_, claims)) => claims.push(claim),
            None => alike.push((who, vec![claim])),
        }
    }
    for (_, claims) in &mut alike {
        let topic = |claim: &str| all.clone().find(|of| of.claim == claim).map(|of| of.topic);
        claims.sort_by_key(|claim| (!fails(proofs, claim), topic(claim)));
    }
    // What most cases claim stands first.
    alike.sort_by_key(|(who, _)| std::cmp::Reverse(who.iter().filter(|has| **has).count()));
    alike
}

fn fails(proofs: &[ProofSummary], claim: &str) -> bool {
    proofs.iter().flat_map(|proof| &proof.claims).any(|of| of.claim == claim && !of.holds)
}

fn holds(proof: &ProofSummary, claim: &str) -> Cell {
    proof.claims.iter().find(|of| of.claim == claim).map_or_else(Cell::absent, verdict)
}

fn verdict(claim: &Claim) -> Cell {
    if claim.holds { Cell::toned("yes", Tone::Same) } else { Cell::toned("no", Tone::Worse) }
}

/// How often the user's programs call each other, a line a call; none where the study says it.
fn calls(findings: &Findings) -> Option<Piece> {
    let line = |call: &CallRate| {
        let CallRate { variant, caller, callee, .. } = call;
        let seen = call.per_request.map_or_else(
            || "as often as it likes: neither a proxy nor the callee counts it".to_owned(),
            |rate| format!("{:.3} times a request, as counted", rate.value),
        );
        let tone = if call.differs() { Tone::Worse } else { Tone::Neutral };
        Cell::toned(format!("{variant}: {caller} calls {callee} {seen}"), tone)
    };
    let lines: Vec<Cell> = findings.calls.iter().map(line).collect();
    (!lines.is_empty()).then_some(Piece::List(lines))
}

/// What arrived at the collector, a line a variant; none in a study without agents.
fn spans(findings: &Findings) -> Option<Piece> {
    findings.proofs.iter().find(|proof| !proof.spans.is_empty())?;
    Some(Piece::List(findings.proofs.iter().filter_map(span_line).collect()))
}

/// `agent: 10 of 10 spans a request (gateway 1, vets 9) under same-rate, vus-320; 2 of 2 under spans-1; 0.0 %
/// dropped`.
fn span_line(proof: &ProofSummary) -> Option<Cell> {
    let Some((first, others)) = proof.spans.split_first() else { return no_span(proof) };
    let services = &first.spans.services;
    let services = services
        .iter()
        .map(|s| format!("{} {}", s.service, a_request(s.arrived, first.spans.requests)));
    let mut said = format!(
        "{}: {} spans a request ({}) under {}",
        proof.variant,
        of_expected(first),
        services.collect::<Vec<_>>().join(", "),
        first.loads.join(", ")
    );
    for of in others {
        said += &format!("; {} under {}", of_expected(of), of.loads.join(", "));
    }
    let [expected, arrived] = sums(&proof.spans);
    let dropped = (1.0 - arrived as f64 / expected as f64).max(0.0);
    let tone = if arrived == expected { Tone::Same } else { Tone::Unknown };
    Some(Cell::toned(format!("{said}; {} dropped", share(dropped)), tone))
}

/// Of a variant without an agent only the claim tells that the collector stood by and got nothing.
fn no_span(proof: &ProofSummary) -> Option<Cell> {
    let none = |claim: &Claim| claim.holds && claim.topic == Topic::Spans;
    let ProofSummary { variant, arms, proven, .. } = proof;
    let said = format!("{variant}: 0 spans in {proven} of {arms} arms");
    proof.claims.iter().any(none).then(|| Cell::toned(said, Tone::Same))
}

/// `9.61 of 10`, what arrived of what a request should leave.
fn of_expected(of: &SpansOfLoads) -> String {
    let [expected, arrived] =
        sums(std::slice::from_ref(of)).map(|count| a_request(count, of.spans.requests));
    format!("{arrived} of {expected}")
}

/// Spans that should have arrived, and that did.
fn sums(of: &[SpansOfLoads]) -> [u64; 2] {
    let services = || of.iter().flat_map(|of| &of.spans.services);
    [services().map(|s| s.expected).sum(), services().map(|s| s.arrived).sum()]
}

/// Whole where every request left the same number; where some were dropped the mean has decimals.
fn a_request(count: u64, requests: u64) -> String {
    match count.checked_rem(requests) {
        Some(0) => (count / requests).to_string(),
        _ => rounded(count as f64 / requests as f64),
    }
}

fn proof_title(proof: &ProofSummary) -> String {
    format!("{}: {} of {} arms proven", proof.variant, proof.proven, proof.arms)
}

fn proof_group(proof: &ProofSummary) -> Group {
    let row = |of: &Claim| {
        vec![Cell::from(&of.claim), (&of.expected).into(), (&of.seen).into(), verdict(of)]
    };
    Group { title: Some(proof_title(proof)), rows: proof.claims.iter().map(row).collect() }
}
