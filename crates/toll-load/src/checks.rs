//! Judges from a finished phase whether the load generator was fit to measure with (docs/method.md rule 9). Pure.

use crate::occupancy::STRATUM_NS;
use crate::setup::is_plain;
use crate::{
    Check, ConnectionPlan, Histogram, LoadModel, LoadPlan, PhaseReport, Protocol, Reuse, Stop,
};

/// Share of its one core above which the engine's own queueing shows in what it measures.
const HIGHEST_CPU_SHARE: f64 = 0.85;
/// Disagreement with Little's law that is accepted, besides what sampling explains.
const LITTLE_TOLERANCE: f64 = 0.05;
/// Standard errors of the sampled mean that are taken for chance.
const STANDARD_ERRORS: f64 = 4.0;

/// All checks that apply to the plan's load model.
pub(crate) fn check(plan: &LoadPlan, measure: &PhaseReport) -> Vec<Check> {
    let mut checks = vec![own_cpu(measure, plan.threads), errors(measure)];
    let sampled = measure.mean_in_flight;
    let chance = sampling_error(plan, measure);
    match &plan.model {
        LoadModel::Closed { clients, .. } => {
            let clients = clients.highest().round() as u32;
            // Each of them always has one request in flight.
            if is_steady(plan) {
                checks.push(connections_used(measure, clients.into(), plan.stop));
                checks.push(littles_law(measure, f64::from(clients), 0.0));
            } else {
                checks.push(littles_law(measure, sampled, chance));
            }
        }
        LoadModel::Open { .. } => {
            checks.push(send_lag(measure));
            checks.push(schedule(measure));
            checks.push(littles_law(measure, sampled, chance));
        }
    }
    checks
}

/// Whether a closed loop has the same number of clients, connections and requests in flight from begin to end.
fn is_steady(plan: &LoadPlan) -> bool {
    let LoadModel::Closed { clients, iteration } = &plan.model else { return false };
    let constant = clients.stages.iter().all(|s| [s.from, s.to] == [clients.highest(); 2]);
    let alone = plan.part.of == 1 && plan.targets.len() == 1;
    let ConnectionPlan { protocol, reuse, .. } = plan.connection;
    let lasting = protocol == Protocol::Http1 && reuse == Reuse::KeepAlive;
    constant && alone && lasting && is_plain(*iteration)
}

/// How much of a quantile of latency may be the engine's own lateness.
#[derive(Clone, Copy)]
struct LagLimit {
    quantile: f64,
    /// Lateness that is always accepted, microseconds.
    floor_us: f64,
}

/// Latency = send lag + service time, so a quantile of latency is moved by about the same quantile of lag;
/// a tenth of it is accepted. The floors are what a healthy engine shows when it shares a core with the
/// service it measures: its median send is on time (it polls), while one in a hundred is delayed by a timer
/// slice of another process or by a burst of answers. At 200 us in p99 the scheduler has begun to queue the
/// engine behind others for milliseconds, which would pass for latency of the service.
///
/// Of few requests the 99th percentile is the one that was sent latest. An idle virtual machine may sleep through a
/// timer now and then, so that one says nothing of the engine: the two latest are never judged.
const LAG_LIMITS: [LagLimit; 2] =
    [LagLimit { quantile: 0.5, floor_us: 20.0 }, LagLimit { quantile: 0.99, floor_us: 200.0 }];

impl LagLimit {
    const SHARE: f64 = 0.1;
    /// Requests that are left out of the judgement, the latest of all.
    const NEVER_JUDGED: f64 = 2.0;

    /// With so few requests that hardly any lies beyond the quantile, the highest that leaves out the latest.
    fn of_requests(self, requests: u64) -> Self {
        // Half a request more: ranks are rounded up.
        let highest = 1.0 - (Self::NEVER_JUDGED + 0.5) / requests.max(1) as f64;
        Self { quantile: self.quantile.min(highest.max(0.5)), ..self }
    }

    fn limit_us(&self, latency: &Histogram) -> f64 {
        (Self::SHARE * latency.quantile_us(self.quantile)).max(self.floor_us)
    }

    fn describe(&self, value_us: f64) -> String {
        format!("p{:.0} {value_us:.0} us", self.quantile * 100.0)
    }
}

fn send_lag(measure: &PhaseReport) -> Check {
    let limits = LAG_LIMITS.map(|limit| limit.of_requests(measure.send_lag.count()));
    let lag = |limit: &LagLimit| measure.send_lag.quantile_us(limit.quantile);
    let bound = |limit: &LagLimit| limit.limit_us(&measure.latency);
    let list = |value: &dyn Fn(&LagLimit) -> f64| {
        limits.iter().map(|l| l.describe(value(l))).collect::<Vec<_>>().join(", ")
    };
    Check {
        name: Check::SEND_LAG.into(),
        holds: limits.iter().all(|limit| lag(limit) <= bound(limit)),
        seen: format!(
            "{}, {} of {} requests waited for a connection",
            list(&lag),
            measure.waited_for_connection,
            measure.sent
        ),
        bound: format!("at most {}", list(&bound)),
        advice: if measure.waited_for_connection > 0 {
            "allow more connections, or lower the rate".into()
        } else {
            "give the generator a core of its own, or lower the rate".into()
        },
    }
}

fn own_cpu(measure: &PhaseReport, threads: u32) -> Check {
    // What it spent looking for events in vain was there to be used.
    let needed_ns = measure.cpu_ns.saturating_sub(measure.spun_ns);
    let share = needed_ns as f64 / duration_ns(measure) / f64::from(threads);
    Check {
        name: "own-cpu".into(),
        holds: share < HIGHEST_CPU_SHARE,
        seen: format!(
            "{:.0} % of each event loop's core, {} involuntary switches",
            share * 100.0,
            measure.involuntary_switches
        ),
        bound: format!("below {:.0} % of a core", HIGHEST_CPU_SHARE * 100.0),
        advice: "lower the rate or the number of connections, or use a faster machine".into(),
    }
}

/// Little's law: requests in flight = throughput x time in flight. `expected` in flight were set (closed loop)
/// or sampled (open loop), give or take `uncertainty`.
fn littles_law(measure: &PhaseReport, expected: f64, uncertainty: f64) -> Check {
    let computed = in_flight_ns(measure) / duration_ns(measure);
    let tolerance = expected * LITTLE_TOLERANCE + uncertainty;
    Check {
        name: "littles-law".into(),
        holds: measure.done > 0 && (computed - expected).abs() <= tolerance,
        seen: format!("throughput x time in flight = {computed:.2} requests"),
        bound: format!("{expected:.2} +- {tolerance:.2} requests"),
        advice:
            "look for connections that stand idle or are often replaced, and for failed requests; \
                 a longer phase narrows the bound"
                .into(),
    }
}

/// How far a sampled mean may be off by chance. Independent requests in flight vary as a Poisson number does, those
/// that are sent several at once as several times one.
fn sampling_error(plan: &LoadPlan, measure: &PhaseReport) -> f64 {
    let at_once = match &plan.model {
        LoadModel::Closed { iteration, .. } => f64::from(iteration.requests),
        LoadModel::Open { .. } => 1.0,
    };
    let mean = measure.mean_in_flight;
    STANDARD_ERRORS * (at_once * mean * STRATUM_NS as f64 / duration_ns(measure)).sqrt()
}

/// Time in flight within the phase, summed over requests: of its own what lies before its end, of earlier ones what
/// lies behind its begin. Requests that come in bursts may all be in flight when the phase ends.
fn in_flight_ns(measure: &PhaseReport) -> f64 {
    let own_ns = measure.done as f64 * measure.service_time.mean_us() * 1e3;
    own_ns - measure.after_end_ns as f64 + measure.inherited_ns as f64
}

fn connections_used(measure: &PhaseReport, connections: u64, stop: Stop) -> Check {
    let expected = match stop {
        Stop::AfterSeconds(_) => connections,
        Stop::AfterRequests(requests) => connections.min(requests),
    };
    Check {
        name: "connections".into(),
        holds: measure.connections_used >= expected,
        seen: format!("{} connections carried requests", measure.connections_used),
        bound: format!("{expected} connections"),
        advice: "check the service's limit on connections and its accept queue".into(),
    }
}

fn schedule(measure: &PhaseReport) -> Check {
    Check {
        name: Check::SCHEDULE.into(),
        holds: measure.sent == measure.scheduled && measure.unsent == 0,
        seen: format!("{} sent, {} never sent", measure.sent, measure.unsent),
        bound: format!("{} sent", measure.scheduled),
        advice: "lower the rate, allow more connections, or give the generator more threads".into(),
    }
}

fn errors(measure: &PhaseReport) -> Check {
    let failures = measure.failures().into_iter();
    let seen: Vec<String> = failures.map(|(how, count)| format!("{count} x {how}")).collect();
    Check {
        name: Check::ERRORS.into(),
        holds: seen.is_empty(),
        seen: match seen.is_empty() {
            true => "none".into(),
            false => format!("{} of {} requests", seen.join(", "), measure.sent),
        },
        bound: "no failed request, no status but those that are expected, no grpc-status but 0"
            .into(),
        advice:
            "look into the logs of the service and its proxies; lower the rate if it is overloaded"
                .into(),
    }
}

fn duration_ns(measure: &PhaseReport) -> f64 {
    measure.end_ns.saturating_sub(measure.begin_ns).max(1) as f64
}

#[cfg(test)]
mod tests;
