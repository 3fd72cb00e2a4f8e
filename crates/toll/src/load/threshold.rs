//! Conditions under which a load has failed: `p99>20ms`, `error-rate>1%`, `rate<1000`. Pure.
//!
//! A threshold of k6 says what must hold; a condition here says what must not.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use toll_load::{Histogram, PhaseReport};

use super::counts::{error_share, errors, requests, throughput};
use super::figures;
use super::quantity::{duration, plain_number, shown};

/// A condition as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    limit: Limit,
    relation: Relation,
}

/// What is looked at, and the value that it is held against.
#[derive(Debug, Clone, PartialEq)]
enum Limit {
    Time(Clock, Statistic, Duration),
    Count(Count, f64),
    /// Requests that failed or were answered with an error, per cent.
    ErrorRate(f64),
}

/// Which of the times of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Latency,
    Service,
    SendLag,
}

/// A figure of many times.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    /// Per cent.
    Quantile(f64),
    Mean,
    Min,
    Max,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Rate,
    Errors,
    Non2xx,
    Unsent,
}

/// How the figure lies to its limit when the load has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// The longer sign first: `>=` begins with `>`.
const RELATIONS: [(&str, Relation); 4] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
];
const COUNTS: [(&str, Count); 4] = [
    ("rate", Count::Rate),
    ("errors", Count::Errors),
    ("non-2xx", Count::Non2xx),
    ("unsent", Count::Unsent),
];
const CLOCKS: [(&str, Clock); 3] =
    [("service-", Clock::Service), ("send-lag-", Clock::SendLag), ("", Clock::Latency)];
const ERROR_RATE: &str = "error-rate";

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = RELATIONS.iter().find_map(|(sign, relation)| {
            let (name, limit) = text.split_once(sign)?;
            Some((name.trim(), *relation, limit.trim()))
        });
        let (name, relation, limit) =
            found.ok_or("a condition has one of > >= < <=, for instance p99>20ms")?;
        Ok(Self { limit: Limit::parse(name, limit)?, relation })
    }
}

impl Limit {
    fn parse(name: &str, limit: &str) -> Result<Self, String> {
        if name == ERROR_RATE {
            return per_cent(limit).map(Self::ErrorRate).ok_or(format!(
                "`{limit}` is no share of the requests: write {ERROR_RATE}>1% or {ERROR_RATE}>0.01"
            ));
        }
        if let Some((_, count)) = COUNTS.iter().find(|(known, _)| *known == name) {
            let bare = limit.strip_suffix("/s").filter(|_| *count == Count::Rate).unwrap_or(limit);
            let number = plain_number(bare);
            return number
                .map(|number| Self::Count(*count, number))
                .ok_or(format!("`{limit}` is no number"));
        }
        let (clock, statistic) = timed(name).ok_or_else(|| unknown(name))?;
        if plain_number(limit).is_some() {
            return Err(format!("`{limit}` needs a unit: {limit}ms or {limit}s"));
        }
        Ok(Self::Time(clock, statistic, duration(limit)?))
    }
}

fn timed(name: &str) -> Option<(Clock, Statistic)> {
    CLOCKS.iter().find_map(|(prefix, clock)| {
        let statistic = name.strip_prefix(prefix)?;
        Some((*clock, Statistic::parse(statistic)?))
    })
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` is not measured; there are p50, p99, p99.9 (any percentile), mean, min, max, each \
         also as service-p99 or send-lag-p99, and rate, errors, error-rate, non-2xx, unsent"
    )
}

/// `1%`, or a share: `0.01`. A bare `1` is refused: who types it means 1 %, and as a share nothing is above it.
fn per_cent(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(number) => plain_number(number.trim_end()).filter(|per_cent| *per_cent <= 100.0),
        None => plain_number(text).filter(|share| *share < 1.0).map(|share| share * 100.0),
    }
}

impl Statistic {
    /// `p99`, or as k6 writes it: `p(99)`.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" | "avg" => Some(Self::Mean),
            "min" => Some(Self::Min),
            "max" => Some(Self::Max),
            "med" => Some(Self::Quantile(50.0)),
            _ => {
                let number = text.strip_prefix('p')?;
                let bare = number.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                let number = plain_number(bare.unwrap_or(number))?;
                (number <= 100.0).then_some(Self::Quantile(number))
            }
        }
    }

    fn of(self, times: &Histogram) -> f64 {
        match self {
            Self::Quantile(per_cent) => times.quantile_us(per_cent / 100.0),
            Self::Mean => times.mean_us(),
            Self::Min => times.min_us(),
            Self::Max => times.max_us(),
        }
    }
}

impl Threshold {
    /// What was seen, when the condition is met.
    pub fn crossed(&self, measure: &PhaseReport) -> Option<String> {
        let (seen, limit, text) = match &self.limit {
            Limit::Time(clock, statistic, limit) => {
                let seen_us = statistic.of(clock.times(measure));
                (seen_us, limit.as_nanos() as f64 / 1e3, figures::time(seen_us))
            }
            Limit::Count(count, limit) => {
                let seen = count.of(measure);
                (seen, *limit, figures::number(seen))
            }
            Limit::ErrorRate(limit) => {
                // Multiplied, not divided: 35 of 125 are exactly 28 %.
                let (bad, all) = (errors(measure) as f64, requests(measure).max(1) as f64);
                (bad * 100.0, *limit * all, figures::share(error_share(measure)))
            }
        };
        self.relation.holds(seen.total_cmp(&limit)).then_some(text)
    }
}

impl Clock {
    fn times(self, measure: &PhaseReport) -> &Histogram {
        match self {
            Self::Latency => &measure.latency,
            Self::Service => &measure.service_time,
            Self::SendLag => &measure.send_lag,
        }
    }
}

impl Count {
    fn of(self, measure: &PhaseReport) -> f64 {
        let non_2xx = || measure.statuses.iter().filter(|(code, _)| !(200..300).contains(*code));
        match self {
            Self::Rate => throughput(measure),
            Self::Errors => errors(measure) as f64,
            Self::Non2xx => non_2xx().map(|(_, count)| count).sum::<u64>() as f64,
            Self::Unsent => measure.unsent as f64,
        }
    }
}

impl Relation {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Above => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Below => order.is_lt(),
            Self::AtMost => order.is_le(),
        }
    }
}

/// The text that reads as this.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = name_of(&RELATIONS, self.relation);
        match &self.limit {
            Limit::Time(clock, statistic, limit) => {
                write!(f, "{}{statistic}{sign}{}", name_of(&CLOCKS, *clock), shown(*limit))
            }
            Limit::Count(count, limit) => write!(f, "{}{sign}{limit}", name_of(&COUNTS, *count)),
            Limit::ErrorRate(limit) => write!(f, "{ERROR_RATE}{sign}{limit}%"),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantile(per_cent) => write!(f, "p{per_cent}"),
            Self::Mean => f.write_str("mean"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
        }
    }
}

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], wanted: T) -> &'static str {
    let found = names.iter().find(|(_, known)| *known == wanted);
    found.expect("every value has a name in its table").0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toll_load::ErrorKind;

    use super::*;

    fn threshold(text: &str) -> Threshold {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_metric_can_be_written() {
        for (text, shown) in [
            ("p99>20ms", "p99>20ms"),
            (" p99 >= 20ms ", "p99>=20ms"),
            ("p(99.9)>1s", "p99.9>1s"),
            ("med<1us", "p50<1us"),
            ("avg>1.5s", "mean>1500ms"),
            ("min<=3ns", "min<=3ns"),
            ("service-p99>20ms", "service-p99>20ms"),
            ("send-lag-max>1ms", "send-lag-max>1ms"),
            ("errors>0", "errors>0"),
            ("error-rate>1%", "error-rate>1%"),
            ("error-rate>0.01", "error-rate>1%"),
            ("error-rate>=100%", "error-rate>=100%"),
            ("rate<1000/s", "rate<1000"),
            ("non-2xx>0", "non-2xx>0"),
            ("unsent>0", "unsent>0"),
        ] {
            assert_eq!(threshold(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_advice() {
        for (text, advice) in [
            ("p99", "one of > >= < <="),
            ("p99=20ms", "one of > >= < <="),
            ("p99>20", "20ms or 20s"),
            ("p99>fast", "write it as 30s"),
            ("p101>20ms", "any percentile"),
            ("latency>20ms", "any percentile"),
            ("service-errors>1", "any percentile"),
            ("error-rate>200%", "error-rate>1%"),
            ("error-rate>1", "error-rate>1%"),
            ("error-rate>5", "error-rate>1%"),
            ("errors>few", "no number"),
        ] {
            let said = text.parse::<Threshold>().expect_err(text);
            assert!(said.contains(advice), "{text}: {said}");
        }
    }

    fn measured() -> PhaseReport {
        let mut measure = PhaseReport { end_ns: 2_000_000_000, ..PhaseReport::default() };
        (1..=100).for_each(|ms| measure.latency.record_ns(ms * 1_000_000));
        (measure.done, measure.completed) = (100, 100);
        measure.statuses = [(200, 90), (503, 10)].into();
        measure.errors = [(ErrorKind::Timeout, 25)].into();
        measure
    }

    #[test]
    fn a_condition_tells_what_was_seen_when_it_is_met() {
        for (text, seen) in [
            ("p99>98ms", Some("99.0 ms")),
            ("p99>99.1ms", None),
            ("mean>=50ms", Some("50.5 ms")),
            ("min<2ms", Some("1.00 ms")),
            ("rate<51", Some("50")),
            ("rate<50", None),
            ("errors>34", Some("35")),
            ("error-rate>=28%", Some("28 %")),
            ("error-rate>28%", None),
            ("non-2xx>0", Some("10")),
            ("service-max>0s", None),
        ] {
            assert_eq!(threshold(text).crossed(&measured()).as_deref(), seen, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_condition_that_is_shown_reads_as_itself(
            limit in prop_oneof![
                (0_usize..3, 0_u32..=1000, 0_u64..1_000_000_000_000).prop_map(|(clock, tenths, ns)| {
                    let quantile = Statistic::Quantile(f64::from(tenths) / 10.0);
                    Limit::Time(CLOCKS[clock].1, quantile, Duration::from_nanos(ns))
                }),
                (0_usize..4, 0.0..1e9).prop_map(|(count, limit)| Limit::Count(COUNTS[count].1, limit)),
                (0.0..=100.0).prop_map(Limit::ErrorRate),
            ],
            relation in 0_usize..4,
        ) {
            let before = Threshold { limit, relation: RELATIONS[relation].1 };
            prop_assert_eq!(before.to_string().parse::<Threshold>(), Ok(before));
        }
    }
}
