//! The claims about agents and the spans that they send, each of them broken.

use std::path::Path;

use super::*;
use crate::claim::Asked;
use crate::deployment::{AgentKind, Compilers, JavaAgent, Petclinic, PetclinicPart, Service};
use crate::evidence::{Link, TraceGroup};
use crate::fixture::graphs::in_pods;
use crate::planes::agent::claims::prove as prove_agent;

const JAR: &str = "/cache/otel.jar";

const COUNT: &str = "collector: every request left 10 spans: 1 of gateway, 9 of vets";
const FOREIGN: &str = "collector: no other service sent spans";
const WHOLE: &str = "collector: traces came whole";
const GATEWAY_LINKS: &str = "gateway: its spans in a trace: 1 at the root";
const VETS_LINKS: &str = "vets: its spans in a trace: 1 below gateway, 8 below vets";

/// Without an agent.
const PLAIN: Jvm = Jvm { named: vec![], open: vec![], instruments: false };

/// Parent and service of spans, and how many.
type Shape<'a> = &'a [(Option<&'a str>, &'a str, u64)];

/// What one request leaves.
const RIGHT: Shape<'_> =
    &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 8)];

/// What a Petclinic in pods shows when all is well.
struct Traced {
    deployment: Deployment,
    traffic: Traffic,
    before: PathSnapshot,
    after: PathSnapshot,
    spans: Option<SpanWindow>,
}

impl Traced {
    fn by_an_agent() -> Self {
        let jvm = Jvm { named: vec![JAR.into()], open: vec![JAR.into()], instruments: true };
        let settings = BTreeMap::new();
        let agent = JavaAgent { kind: AgentKind::OpenTelemetry, settings, spans: BTreeMap::new() };
        Self::of(DataPlane::Agent(agent), &jvm, came(&[(RIGHT, REQUESTS)]))
    }

    fn by_nobody() -> Self {
        Self::of(DataPlane::Bare, &PLAIN, came(&[]))
    }

    fn of(data_plane: DataPlane, jvm: &Jvm, spans: SpanWindow) -> Self {
        let jvms = ["gateway", "vets"].map(|pod| (pod.to_owned(), vec![jvm.clone()]));
        let alone = Occupants { own: true, foreign: Vec::new() };
        let snapshot = PathSnapshot {
            occupants: BTreeMap::from([("vets".into(), alone)]),
            rules: BTreeMap::from([("vets".into(), String::new())]),
            jvms: jvms.into(),
            ..snapshot(Walk { server: None, report: None }, BTreeMap::new())
        };
        Self {
            deployment: Deployment { data_plane, ..petclinic() },
            traffic: Traffic { asked: vec![asked(REQUESTS, 9)], ..TRAFFIC },
            before: snapshot.clone(),
            after: snapshot,
            spans: Some(spans),
        }
    }

    /// With these traces instead.
    fn came(self, traces: &[(Shape<'_>, u64)]) -> Self {
        Self { spans: Some(came(traces)), ..self }
    }

    fn jvms_after(mut self, pod: &str, change: impl FnOnce(&mut Vec<Jvm>)) -> Self {
        change(self.after.jvms.get_mut(pod).unwrap());
        self
    }

    fn proof(&self) -> Proof {
        let Self { deployment, traffic, before, after, spans } = self;
        let window = Window {
            deployment,
            traffic,
            before,
            after,
            spans: spans.as_ref(),
            issued: None,
            spread: Spread::InTurn,
        };
        let capture = Capture::Transparent(Bypass::Uid(1337));
        let topology = in_pods(deployment, capture);
        match deployment.data_plane {
            DataPlane::Agent(_) => prove_agent(&window, &topology, Path::new(JAR)),
            _ => prove_none(&window, &topology),
        }
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }

    fn seen_by(&self, claim: &str) -> String {
        let proof = self.proof();
        proof.claims.iter().find(|c| c.claim == claim).expect("the claim is made").seen.clone()
    }
}

/// Requests that leave a span of the gateway and so many of the vets.
fn asked(requests: u64, vets: u64) -> Asked {
    let spans = [("gateway".to_owned(), 1), ("vets".to_owned(), vets)].into();
    let path = format!("/vets?spans={vets}");
    Asked { method: "GET".into(), path, requests, acknowledged: requests, spans }
}

/// `gateway:8080` hands to `vets:8081`; both leave their spans at `collector:4318`.
fn petclinic() -> Deployment {
    let service = |name: &str, port: u16, calls: &[&str], program: Program| Service {
        name: name.into(),
        port,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        program,
        ..chain().services[0].clone()
    };
    let jvm =
        |part| Program::Petclinic(Petclinic { part, heap_mib: 256, compilers: Compilers::Both });
    Deployment {
        entry: "gateway".into(),
        services: vec![
            service("gateway", 8080, &["vets"], jvm(PetclinicPart::Gateway)),
            service("vets", 8081, &[], jvm(PetclinicPart::Vets)),
            service("collector", 4318, &[], Program::Collector),
        ],
        ..chain()
    }
}

fn came(traces: &[(Shape<'_>, u64)]) -> SpanWindow {
    let mut window = SpanWindow::default();
    for (shape, traces) in traces {
        let link = |(parent, service, count): &(Option<&str>, &str, u64)| Link {
            parent: parent.map(str::to_owned),
            service: (*service).to_owned(),
            count: *count,
        };
        for (_, service, count) in *shape {
            *window.spans.entry((*service).to_owned()).or_default() += count * traces;
        }
        window.traces.push(TraceGroup { links: shape.iter().map(link).collect(), traces: *traces });
    }
    window
}

#[test]
fn an_agent_proves_that_it_traced_every_request() {
    let proof = Traced::by_an_agent().proof();
    assert!(proof.holds());
    insta::assert_snapshot!("agent", listing(&proof));
    let of = |service: &str, expected| {
        let service = service.to_owned();
        crate::ServiceSpans { service, expected, arrived: expected }
    };
    let services = vec![of("gateway", 1000), of("vets", 9000)];
    assert_eq!(proof.spans, Some(crate::Spans { services, requests: 1000, whole: 1000 }));
}

#[test]
fn an_application_without_an_agent_proves_that_nobody_traced_it() {
    let proof = Traced::by_nobody().proof();
    assert!(proof.holds());
    insta::assert_snapshot!("no_agent", listing(&proof));
    assert_eq!(proof.spans, None);
}

#[test]
fn one_span_fails_the_bare_path() {
    let seen = Traced::by_nobody().came(&[(&[(None, "vets", 1)], 1)]);
    assert_eq!(seen.failed(), ["collector: no span came"]);
    assert_eq!(seen.seen_by("collector: no span came"), "1 of vets");
}

#[test]
fn an_agent_in_a_jvm_fails_the_bare_path_whether_it_was_named_or_put_in_later() {
    let claim = "vets pod: no Java agent is in its JVM";
    let late = |jvms: &mut Vec<Jvm>| {
        jvms[0].open.push(JAR.into());
        jvms[0].instruments = true;
    };
    let seen = Traced::by_nobody().jvms_after("vets", late);
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(seen.seen_by(claim), "no agent before the load, otel.jar after it");
    let named = |jvms: &mut Vec<Jvm>| jvms[0].named.push(JAR.into());
    assert_eq!(Traced::by_nobody().jvms_after("vets", named).failed(), [claim]);
}

#[test]
fn an_agent_that_no_option_names_fails_the_bare_path() {
    let claim = "vets pod: no Java agent is in its JVM";
    let hidden = |jvms: &mut Vec<Jvm>| jvms[0].instruments = true;
    let seen = Traced::by_nobody().jvms_after("vets", hidden);
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(
        seen.seen_by(claim),
        "no agent before the load, an agent that no option names after it"
    );
}

#[test]
fn beside_an_agent_it_is_said_that_a_further_one_could_hide() {
    let proof = Traced::by_an_agent().proof();
    assert!(proof.left_out.contains(&LeftOut::FurtherAgents));
    let bare = Traced::by_nobody().proof();
    assert!(!bare.left_out.contains(&LeftOut::FurtherAgents));
}

#[test]
fn a_collector_that_was_not_asked_proves_nothing() {
    let unasked = |seen: Traced| Traced { spans: None, ..seen }.failed();
    assert_eq!(unasked(Traced::by_nobody()), ["collector: no span came"]);
    assert_eq!(unasked(Traced::by_an_agent()), ["collector: spans came"]);
}

#[test]
fn one_jvm_without_the_agent_fails() {
    let claim = "gateway pod: the agent is in its JVM";
    let seen = Traced::by_an_agent().jvms_after("gateway", |jvms| jvms.push(PLAIN));
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(seen.seen_by(claim), "otel.jar before the load, otel.jar; no agent after it");
    let none = Traced::by_an_agent().jvms_after("gateway", Vec::clear);
    assert_eq!(none.failed(), [claim]);
}

#[test]
fn an_agent_that_is_named_but_not_open_and_one_beside_another_fail() {
    let claim = ["vets pod: the agent is in its JVM"];
    let closed = Traced::by_an_agent().jvms_after("vets", |jvms| jvms[0].open.clear());
    assert_eq!(closed.failed(), claim);
    let idle = Traced::by_an_agent().jvms_after("vets", |jvms| jvms[0].instruments = false);
    assert_eq!(idle.failed(), claim);
    let two = Traced::by_an_agent().jvms_after("vets", |jvms| {
        jvms[0].named.push("/opt/other.jar".into());
        jvms[0].open.push("/opt/other.jar".into());
    });
    assert_eq!(two.failed(), claim);
}

#[test]
fn a_span_that_is_missing_everywhere_leaves_no_trace_whole() {
    let rest = &[(Some("?"), "vets", 1), (Some("vets"), "vets", 8)];
    let seen = Traced::by_an_agent().came(&[(rest, REQUESTS)]);
    assert_eq!(seen.failed(), [COUNT, WHOLE]);
    assert_eq!(seen.seen_by(COUNT), "0 of 1000 of gateway");
}

#[test]
fn a_span_below_another_service_than_its_own_fails() {
    let astray = &[(None, "gateway", 1), (Some("gateway"), "vets", 2), (Some("vets"), "vets", 7)];
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS - 1), (astray, 1)]);
    assert_eq!(seen.failed(), [VETS_LINKS]);
    assert_eq!(seen.seen_by(VETS_LINKS), "1 traces have others");
}

#[test]
fn a_call_that_does_not_carry_its_context_begins_a_trace_of_its_own_and_fails() {
    let split: [Shape<'_>; 2] =
        [&[(None, "gateway", 1)], &[(None, "vets", 1), (Some("vets"), "vets", 8)]];
    let seen = Traced::by_an_agent().came(&[(split[0], REQUESTS), (split[1], REQUESTS)]);
    assert_eq!(seen.failed(), [WHOLE, VETS_LINKS]);
}

#[test]
fn a_parent_that_is_not_among_spans_of_which_none_is_missing_is_a_wrong_one() {
    let lost = &[(None, "gateway", 1), (Some("?"), "vets", 1), (Some("vets"), "vets", 8)];
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS - 1), (lost, 1)]);
    assert_eq!(seen.failed(), [VETS_LINKS]);
}

#[test]
fn three_percent_dropped_are_stated_and_hold() {
    let parts: [Shape<'_>; 3] = [
        &[(None, "gateway", 1)],
        &[(Some("?"), "vets", 1), (Some("vets"), "vets", 8)],
        &[(None, "gateway", 1), (Some("?"), "vets", 3)],
    ];
    let traces = [(RIGHT, REQUESTS - 48), (parts[0], 20), (parts[1], 10), (parts[2], 18)];
    let seen = Traced::by_an_agent().came(&traces);
    assert_eq!(seen.failed(), [""; 0]);
    assert_eq!(seen.seen_by(COUNT), "9702 of 10000 arrived, 3.0 % dropped");
    assert_eq!(seen.seen_by(WHOLE), "952 of 1000");
    assert_eq!(seen.proof().left_out[0], LeftOut::MissingSpans { missing: 298, refused: 0 });
}

#[test]
fn one_dropped_span_of_many_is_not_rounded_away() {
    let part = &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 7)];
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS - 1), (part, 1)]);
    assert_eq!(seen.seen_by(COUNT), "9999 of 10000 arrived, less than 0.1 % dropped");
}

#[test]
fn sixty_percent_dropped_fail() {
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS * 4 / 10)]);
    assert_eq!(seen.failed(), [COUNT]);
    assert_eq!(seen.seen_by(COUNT), "400 of 1000 of gateway, 3600 of 9000 of vets");
}

#[test]
fn an_eleventh_span_fails() {
    let more = &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 9)];
    let seen = Traced::by_an_agent().came(&[(more, REQUESTS)]);
    assert_eq!(seen.failed(), [COUNT, WHOLE, VETS_LINKS]);
    let twice = &[(None, "gateway", 2), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 8)];
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS - 1), (twice, 1)]);
    assert_eq!(seen.failed(), [COUNT, GATEWAY_LINKS]);
}

#[test]
fn a_trace_of_another_service_fails() {
    let seen = Traced::by_an_agent().came(&[(RIGHT, REQUESTS), (&[(None, "visits", 3)], 2)]);
    assert_eq!(seen.failed(), [FOREIGN]);
    assert_eq!(seen.seen_by(FOREIGN), "6 of visits");
}

#[test]
fn without_a_number_of_spans_it_is_claimed_only_that_some_came() {
    let mut seen = Traced::by_an_agent();
    seen.traffic.asked[0].spans.clear();
    let proof = seen.proof();
    assert!(proof.holds());
    assert_eq!((proof.claims[0].claim.as_str(), proof.spans), ("collector: spans came", None));
    assert_eq!(proof.left_out[0], LeftOut::SpanCounts);
    assert_eq!(seen.came(&[]).failed(), ["collector: spans came"]);
}

/// What a request leaves whose gateway makes a span of its call, too, as EaseAgent's does.
const ELEVEN: Shape<'_> = &[
    (None, "gateway", 1),
    (Some("gateway"), "gateway", 1),
    (Some("gateway"), "vets", 1),
    (Some("vets"), "vets", 8),
];

/// As [`ELEVEN`] has it, and the traces that came.
fn leaving_eleven(traces: &[(Shape<'_>, u64)]) -> Traced {
    let mut seen = Traced::by_an_agent().came(traces);
    seen.traffic.asked[0].spans.insert("gateway".into(), 2);
    seen
}

#[test]
fn an_agent_whose_gateway_leaves_two_spans_a_request_is_proved_by_its_own_counts() {
    let seen = leaving_eleven(&[(ELEVEN, REQUESTS)]);
    let proof = seen.proof();
    assert!(proof.holds(), "{}", listing(&proof));
    let count = "collector: every request left 11 spans: 2 of gateway, 9 of vets";
    assert_eq!(proof.claims[0].claim, count);
    assert_eq!(
        seen.seen_by("gateway: its spans in a trace: 1 at the root, 1 below gateway"),
        "in every trace"
    );
}

#[test]
fn where_eleven_spans_are_held_to_ten_leave_no_trace_whole() {
    let seen = leaving_eleven(&[(RIGHT, REQUESTS)]);
    assert_eq!(seen.failed(), [WHOLE]);
    let counted = seen.proof().spans.unwrap();
    assert_eq!((counted.services[0].expected, counted.services[0].arrived), (2000, 1000));
    assert_eq!(Traced::by_an_agent().came(&[(ELEVEN, REQUESTS)]).failed().len(), 3);
}

/// What a request of the second load leaves.
const LARGER: Shape<'_> =
    &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 18)];

/// Loads of [`RIGHT`] and of [`LARGER`], and the traces that came of both.
fn two_loads(traces: &[(Shape<'_>, u64)]) -> Traced {
    let mut seen = Traced::by_an_agent().came(traces);
    // Not together: a load goes on after others.
    seen.traffic.asked = vec![asked(400, 9), asked(300, 19), asked(300, 9)];
    seen
}

#[test]
fn loads_that_leave_different_spans_are_judged_by_their_sum_and_by_the_shapes_of_both() {
    let seen = two_loads(&[(RIGHT, 700), (LARGER, 300)]);
    let proof = seen.proof();
    assert!(proof.holds(), "{}", listing(&proof));
    assert_eq!(
        proof.claims[0].claim,
        "collector: every request left 10 or 20 spans: 1 of gateway, 9 or 19 of vets"
    );
    let links = "vets: its spans in a trace: 1 below gateway, 8 or 18 below vets";
    assert_eq!(seen.seen_by(links), "in every trace");
    let spans = proof.spans.unwrap();
    let expected: Vec<u64> = spans.services.iter().map(|s| s.expected).collect();
    assert_eq!((expected, spans.whole), (vec![1000, 700 * 9 + 300 * 19], 1000));
}

#[test]
fn traces_of_one_load_that_look_like_those_of_another_are_not_whole() {
    let seen = two_loads(&[(RIGHT, 720), (LARGER, 280)]);
    assert_eq!(seen.failed(), [""; 0]);
    assert_eq!(seen.seen_by(WHOLE), "980 of 1000");
}

#[test]
fn more_large_traces_than_requests_of_the_large_load_fail_though_spans_are_missing_elsewhere() {
    let part = &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 4)];
    let more = &[(None, "gateway", 1), (Some("gateway"), "vets", 1), (Some("vets"), "vets", 9)];
    let seen = two_loads(&[(RIGHT, 400), (part, 290), (more, 10), (LARGER, 300)]);
    let links = "vets: its spans in a trace: 1 below gateway, 8 or 18 below vets";
    assert_eq!(seen.failed(), [links]);
    assert_eq!(seen.seen_by(links), "10 traces have others");
}

#[test]
fn if_one_load_does_not_say_its_spans_only_some_are_claimed() {
    let mut seen = two_loads(&[(RIGHT, 700), (LARGER, 300)]);
    seen.traffic.asked[1].spans.clear();
    let proof = seen.proof();
    assert_eq!((proof.claims[0].claim.as_str(), proof.spans), ("collector: spans came", None));
    // Unless it sent nothing.
    seen.traffic.asked[1].requests = 0;
    assert!(seen.proof().spans.is_some());
}

#[test]
fn behind_an_envoy_gateway_the_first_traced_service_is_the_root() {
    let mut seen = Traced::by_an_agent();
    let edge = Service {
        name: "edge".into(),
        calls: vec!["gateway".into()],
        ..chain().services[0].clone()
    };
    seen.deployment.services.insert(0, Service { program: Program::Gateway, ..edge });
    seen.deployment.entry = "edge".into();
    let proof = seen.proof();
    let links = proof.claims.iter().find(|c| c.claim == GATEWAY_LINKS);
    assert!(links.is_some_and(|claim| claim.holds), "{}", listing(&proof));
}

#[test]
fn behind_a_caller_that_leaves_no_spans_only_their_number_is_judged() {
    let mut seen = Traced::by_an_agent().came(&[(&[(None, "vets", 9)], REQUESTS)]);
    seen.traffic.asked[0].spans.remove("gateway");
    let proof = seen.proof();
    assert!(proof.holds(), "{}", listing(&proof));
    let (service, caller) = ("vets".into(), "gateway".into());
    assert_eq!(proof.left_out[0], LeftOut::SpanParents { service, caller });
}

#[test]
fn a_program_of_the_users_own_need_not_be_a_jvm() {
    for mut seen in [Traced::by_an_agent(), Traced::by_nobody()] {
        seen.deployment.services[1].program = Program::Command(UserProgram::of(["./vets"]));
        seen.before.jvms.remove("vets");
        seen.after.jvms.remove("vets");
        let why = LeftOut::NoJvm { pod: "vets".into() };
        let proof = seen.proof();
        assert!(proof.holds(), "{}", listing(&proof));
        assert!(proof.left_out.contains(&why));
        // Where nobody takes spans, nobody asks for agents.
        seen.deployment.services.pop();
        seen.deployment.data_plane = DataPlane::Bare;
        assert!(!seen.proof().left_out.contains(&why));
    }
}
