//! Turns the short texts of the command line (`30s`, `300/m`, `30s:100,1m:10`) into quantities. Pure.
//!
//! Durations are those of Go's tools (`1m30s`); rates those of vegeta (`50/1s`); stages those of k6 (`30s:100`).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use toll_load::{Part, Profile, Resolve, Stage};

/// The longest duration that the engine takes: a week.
const LONGEST: Duration = Duration::from_secs(604_800);
/// Rates that the engine takes, per second.
const RATES: (f64, f64) = (1e-6, 1e7);
/// Addresses in a range at most: each gives about 28,000 connections.
const ADDRESSES: u32 = 1024;

/// The largest unit first, so that a duration is shown in the coarsest one that is exact.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A quantity over time as typed, `30s:100,1m:100,10s:0`: the time to get to each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Ramp(Vec<(Duration, f64)>);

/// Client counts, each held for as long: `1,5,10,20x5m`.
#[derive(Debug, Clone, PartialEq)]
pub struct Staircase {
    counts: Vec<u32>,
    each: Duration,
}

/// Local addresses, single ones and ranges: `127.0.0.2-127.0.0.9,10.0.0.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalAddresses(pub Vec<IpAddr>);

/// A number with a unit, or several of them: `300us`, `1.5s`, `1m30s`; a bare number is seconds.
///
/// # Errors
/// When the text is no duration, or one of more than a week.
pub fn duration(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "not a duration: write it as 30s, 500ms, 2m or 1m30s";
    if let Some(seconds) = plain_number(text) {
        return bounded(seconds * 1e9);
    }
    let mut rest = text;
    let mut total_ns = 0.0;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(is_letter).ok_or(WRONG)?);
        let (unit, tail) = tail.split_at(tail.find(|c| !is_letter(c)).unwrap_or(tail.len()));
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(WRONG)?;
        total_ns += plain_number(number).ok_or(WRONG)? * *scale as f64;
        rest = tail;
    }
    if text.is_empty() { Err(WRONG.into()) } else { bounded(total_ns) }
}

/// A duration above zero.
///
/// # Errors
/// As [`duration`], and when it is zero.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("it must be longer than nothing".into()) } else { Ok(duration) }
}

/// The text that [`duration`] reads as this, in the coarsest unit that is exact.
pub fn shown(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let fits = |(_, scale): &&(&str, u128)| ns != 0 && ns.is_multiple_of(*scale);
    let (unit, scale) = UNITS.iter().find(fits).unwrap_or(&("s", 1_000_000_000));
    format!("{}{unit}", ns / scale)
}

/// A whole number above zero.
///
/// # Errors
/// When it is none.
pub fn at_least_one<N: std::str::FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    match text.parse::<N>() {
        Ok(number) if number != N::default() => Ok(number),
        Ok(_) => Err("it must be 1 or more".into()),
        Err(_) => Err("not a whole number of 1 or more".into()),
    }
}

/// Arrivals per second: `1000`, `1000/s`, `300/m`, `50/100ms`.
///
/// # Errors
/// When the text is no rate, or one that the engine does not take.
pub fn rate(text: &str) -> Result<f64, String> {
    const WRONG: &str = "not a rate: write it as 1000, 1000/s, 300/m or 50/100ms";
    let (count, per) = text.split_once('/').unwrap_or((text, "s"));
    let count = plain_number(count).ok_or(WRONG)?;
    let per = if per.starts_with(is_letter) { format!("1{per}") } else { per.into() };
    let seconds = duration(&per).map_err(|_| WRONG)?.as_secs_f64();
    in_range(count / seconds)
}

/// One of several engines: `1/3` is the first of three.
///
/// # Errors
/// When the text is no such pair.
pub fn part(text: &str) -> Result<Part, String> {
    const WRONG: &str = "not a part: the second of three is written 2/3";
    let (number, of) = text.split_once('/').ok_or(WRONG)?;
    let (number, of): (u32, u32) =
        (number.parse().map_err(|_| WRONG)?, of.parse().map_err(|_| WRONG)?);
    if (1..=of).contains(&number) { Ok(Part { index: number - 1, of }) } else { Err(WRONG.into()) }
}

/// An address for a name, as curl has it: `HOST:PORT:ADDRESS`.
///
/// # Errors
/// When the text is no such triple.
pub fn resolve(text: &str) -> Result<Resolve, String> {
    const WRONG: &str = "write it as HOST:PORT:ADDRESS, for instance api.test:443:127.0.0.1";
    let mut pieces = text.splitn(3, ':');
    let mut piece = || pieces.next().filter(|piece| !piece.is_empty()).ok_or(WRONG);
    let (host, port, address) = (piece()?, piece()?, piece()?);
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    Ok(Resolve {
        host: host.into(),
        port: port.parse().map_err(|_| WRONG)?,
        address: bare.parse().map_err(|_| WRONG)?,
    })
}

/// Stages of client counts.
///
/// # Errors
/// When the text is no such list.
pub fn client_stages(text: &str) -> Result<Ramp, String> {
    let count = |text: &str| text.parse::<u32>().ok().map(f64::from);
    ramp(text, count, "write the stages as TIME:CLIENTS, for instance 30s:100,1m:100,10s:0")
}

/// Stages of arrival rates.
///
/// # Errors
/// When the text is no such list.
pub fn rate_stages(text: &str) -> Result<Ramp, String> {
    // Zero is no rate to hold, but one to end with.
    let rate = |text: &str| rate(text).ok().or(plain_number(text).filter(|number| *number == 0.0));
    ramp(text, rate, "write the stages as TIME:RATE, for instance 30s:1000,1m:1000,10s:0")
}

fn ramp(
    text: &str,
    value: impl Fn(&str) -> Option<f64>,
    wrong: &'static str,
) -> Result<Ramp, String> {
    let stage = |text: &str| {
        let (time, to) = text.split_once(':').ok_or(wrong)?;
        Ok((duration(time).map_err(|_| wrong)?, value(to).ok_or(wrong)?))
    };
    let stages: Vec<_> = text.split(',').map(stage).collect::<Result<_, &str>>()?;
    if stages.iter().all(|(time, _)| time.is_zero()) {
        return Err("all stages together last no time".into());
    }
    if stages.iter().all(|(_, to)| *to == 0.0) {
        return Err("the stages never rise above zero".into());
    }
    Ok(Ramp(stages))
}

/// A staircase.
///
/// # Errors
/// When the text is none.
pub fn steps(text: &str) -> Result<Staircase, String> {
    const WRONG: &str = "write the steps as COUNT,COUNT,…xTIME, for instance 1,5,10,20x5m";
    let (counts, each) = text.split_once('x').ok_or(WRONG)?;
    let counts: Vec<u32> =
        counts.split(',').map(at_least_one).collect::<Result<_, _>>().map_err(|_| WRONG)?;
    Ok(Staircase { counts, each: some_time(each).map_err(|_| WRONG)? })
}

/// Local addresses.
///
/// # Errors
/// When a piece is neither an address nor a range of IPv4 addresses.
pub fn local_addresses(text: &str) -> Result<LocalAddresses, String> {
    let pieces = text.split(',').map(|piece| match piece.split_once('-') {
        Some((first, last)) => address_range(first, last),
        None => piece.parse().map(|address| vec![address]).map_err(|_| no_address(piece)),
    });
    Ok(LocalAddresses(pieces.collect::<Result<Vec<_>, _>>()?.concat()))
}

fn address_range(first: &str, last: &str) -> Result<Vec<IpAddr>, String> {
    let number = |text: &str| text.parse::<Ipv4Addr>().map(u32::from).map_err(|_| no_address(text));
    let (first, last) = (number(first)?, number(last)?);
    if last < first || last - first >= ADDRESSES {
        return Err(format!("a range goes up, and holds at most {ADDRESSES} addresses"));
    }
    Ok((first..=last).map(|number| Ipv4Addr::from(number).into()).collect())
}

fn no_address(text: &str) -> String {
    format!("`{text}` is not an address: write 127.0.0.2, or 127.0.0.2-127.0.0.9")
}

impl Ramp {
    /// The profile that begins at `from`. A stage of no length is a jump.
    pub fn profile(&self, from: f64) -> Profile {
        let mut at = from;
        let mut stages = Vec::new();
        for (time, to) in &self.0 {
            if !time.is_zero() {
                stages.push(Stage { duration_s: time.as_secs_f64(), from: at, to: *to });
            }
            at = *to;
        }
        Profile { stages }
    }
}

impl Staircase {
    /// The profile that holds each count in turn.
    pub fn profile(&self) -> Profile {
        let held = |count: &u32| Stage {
            duration_s: self.each.as_secs_f64(),
            from: f64::from(*count),
            to: f64::from(*count),
        };
        Profile { stages: self.counts.iter().map(held).collect() }
    }
}

/// A number without sign and exponent, as people write one.
pub fn plain_number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse::<f64>().ok().filter(|number| plain && number.is_finite())
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn bounded(ns: f64) -> Result<Duration, String> {
    let duration = Duration::from_nanos(ns.round() as u64);
    if duration > LONGEST { Err("it may be a week at most".into()) } else { Ok(duration) }
}

fn in_range(rate_per_s: f64) -> Result<f64, String> {
    if rate_per_s == 0.0 {
        return Err("a rate of zero sends nothing; for as fast as possible leave it out".into());
    }
    if !(RATES.0..=RATES.1).contains(&rate_per_s) {
        return Err("the engine takes rates from 0.000001 to 10000000 per second".into());
    }
    Ok(rate_per_s)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_the_tools_of_the_field_read_them() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("3m", 180_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.5s", 1_500_000_000),
            ("250ms", 250_000_000),
            ("300us", 300_000),
            ("30", 30_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["", "s", "-3s", "3 parsecs", "1m30", "1e3s", "8d", "169h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_as_vegeta_reads_them() {
        for (text, per_s) in [
            ("1000", 1000.0),
            ("1000/s", 1000.0),
            ("300/m", 5.0),
            ("50/1s", 50.0),
            ("5/100ms", 50.0),
        ] {
            assert_eq!(rate(text), Ok(per_s), "{text}");
        }
        for text in ["", "0", "-1", "fast", "10/", "10/parsec", "10/0s", "1e9", "20000000"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn stages_ramp_from_one_value_to_the_next_and_a_stage_of_no_length_jumps() {
        let stages = |text: &str| -> Vec<_> {
            let profile = client_stages(text).unwrap().profile(1.0);
            profile.stages.iter().map(|s| (s.duration_s, s.from, s.to)).collect()
        };
        assert_eq!(stages("30s:100,1m:100"), [(30.0, 1.0, 100.0), (60.0, 100.0, 100.0)]);
        assert_eq!(stages("0s:20,5s:20"), [(5.0, 20.0, 20.0)]);
    }

    #[test]
    fn lists_that_make_no_load_are_refused() {
        for text in ["", "30s", "30s:", "30s:ten", "30s:0", "0s:10", "30s:1.5", "30s:10,"] {
            assert!(client_stages(text).is_err(), "{text}");
        }
        assert!(rate_stages("10s:0").is_err());
        for text in ["", "1,5", "x5m", "1,0x5m", "1,5x0s", "1,5x"] {
            assert!(steps(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_staircase_holds_each_count_as_long() {
        let profile = steps("1,5x2m").unwrap().profile();
        let held: Vec<_> = profile.stages.iter().map(|s| (s.duration_s, s.from, s.to)).collect();
        assert_eq!(held, [(120.0, 1.0, 1.0), (120.0, 5.0, 5.0)]);
    }

    #[test]
    fn parts_count_from_one_and_none_is_beyond_the_last() {
        assert_eq!(part("1/3"), Ok(Part { index: 0, of: 3 }));
        assert_eq!(part("3/3"), Ok(Part { index: 2, of: 3 }));
        for text in ["0/3", "4/3", "1", "1/0", "a/b"] {
            assert!(part(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_for_names_are_spelled_as_for_curl() {
        let v4 = resolve("api.test:443:127.0.0.1").unwrap();
        assert_eq!((v4.host.as_str(), v4.port, v4.address.is_ipv4()), ("api.test", 443, true));
        assert!(resolve("api.test:443:[::1]").unwrap().address.is_ipv6());
        for text in ["", "api.test:443", "api.test:x:127.0.0.1", "api.test:443:nowhere", ":1:::1"] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_addresses_are_single_ones_and_ranges() {
        let list = |text| local_addresses(text).map(|list| list.0.len());
        assert_eq!(list("127.0.0.2"), Ok(1));
        assert_eq!(list("127.0.0.2-127.0.0.9,::1"), Ok(9));
        for text in ["", "127.0.0.9-127.0.0.2", "10.0.0.0-10.255.0.0", "host"] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_that_is_shown_reads_as_itself(ns in 0_u64..604_800_000_000_000) {
            // Above 2^53 ns (104 days) a double could not hold it; a week is far below.
            let before = Duration::from_nanos(ns);
            prop_assert_eq!(duration(&shown(before)), Ok(before));
        }
    }
}
