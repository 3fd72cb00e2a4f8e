//! Numbers as a person reads them: three significant digits, the unit that fits, thousands set apart. Pure.

/// `402 us`, `1.21 ms`, `12.0 s`, from microseconds.
pub fn time(us: f64) -> String {
    // The bounds are where three digits would round up to the next unit.
    match us {
        us if us < 0.9995 => format!("{} us", short(us)),
        us if us < 999.5 => format!("{} us", digits(us)),
        us if us < 999_500.0 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} s", digits(us / 1e6)),
    }
}

/// `300 us`, `1.5 ms`: a time that is a round number.
pub fn round_time(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{} us", short(us)),
        us if us < 999_500.0 => format!("{} ms", short(us / 1e3)),
        us => format!("{} s", short(us / 1e6)),
    }
}

/// `10 s`, `1 min 30 s`, from seconds: a length that someone chose.
pub fn length(seconds: f64) -> String {
    if seconds < 120.0 {
        return if seconds < 1.0 { time(seconds * 1e6) } else { format!("{} s", short(seconds)) };
    }
    let whole = seconds.round() as u64;
    match (whole / 60, whole % 60) {
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// `0:05`, `12:30`: time left.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    format!("{}:{:02}", whole / 60, whole % 60)
}

/// `98.1 MB`.
pub fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut scaled = bytes;
    let mut unit = 0;
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1e3;
        unit += 1;
    }
    let shown = if unit == 0 { short(scaled) } else { digits(scaled) };
    format!("{shown} {}", UNITS[unit])
}

/// `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `12,345`, `3.21`: a count or a rate.
pub fn number(value: f64) -> String {
    if value >= 99.95 || value.fract() == 0.0 { count(value.round() as u64) } else { digits(value) }
}

/// `28 %`, `0.12 %`; a share that is not quite nothing, or not quite all, does not look like it.
pub fn share(share: f64) -> String {
    let per_cent = share * 100.0;
    match per_cent {
        p if p > 0.0 && p < 0.01 => "<0.01 %".into(),
        p if p < 100.0 && p > 99.99 => ">99.99 %".into(),
        p => format!("{} %", short(p)),
    }
}

/// `82.9 %`, `<0.1 %`: one decimal, so that the points of a column stand in line.
pub fn share_in_column(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1 %".into(),
        p => format!("{p:.1} %"),
    }
}

/// Three significant digits, zeros included.
fn digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// At most two decimals, without zeros at the end.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_unit_that_fits() {
        for (us, shown) in [
            (0.0, "0 us"),
            (0.25, "0.25 us"),
            (1.0, "1.00 us"),
            (402.3, "402 us"),
            (999.7, "1.00 ms"),
            (12_345.0, "12.3 ms"),
            (999_700.0, "1.00 s"),
            (3_600_000_000.0, "3600 s"),
        ] {
            assert_eq!(time(us), shown);
        }
    }

    #[test]
    fn lengths_are_told_as_they_were_chosen() {
        for (seconds, shown) in [
            (0.5, "500 ms"),
            (10.0, "10 s"),
            (90.0, "90 s"),
            (2.5, "2.5 s"),
            (300.0, "5 min"),
            (150.0, "2 min 30 s"),
        ] {
            assert_eq!(length(seconds), shown);
        }
    }

    #[test]
    fn counts_bytes_and_shares_are_short() {
        assert_eq!(
            (count(1), count(1_234), count(1_234_567)),
            ("1".into(), "1,234".into(), "1,234,567".into())
        );
        assert_eq!(
            (bytes(12.0), bytes(999.9), bytes(98_100_000.0)),
            ("12 B".into(), "1.00 kB".into(), "98.1 MB".into())
        );
        assert_eq!(
            (share(0.28), share(0.000_001), share(0.999_999)),
            ("28 %".into(), "<0.01 %".into(), ">99.99 %".into())
        );
        assert_eq!(
            (number(12_345.6), number(3.214), number(0.0)),
            ("12,346".into(), "3.21".into(), "0".into())
        );
        assert_eq!(
            (round_time(1500.0), round_time(30.0), round_time(2e6)),
            ("1.5 ms".into(), "30 us".into(), "2 s".into())
        );
        assert_eq!(
            (share_in_column(0.8291), share_in_column(1e-6)),
            ("82.9 %".into(), "<0.1 %".into())
        );
        assert_eq!((clock(5.2), clock(750.0)), ("0:05".into(), "12:30".into()));
    }
}
