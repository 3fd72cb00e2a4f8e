//! Turns numbers into figures that a person reads: unit, rounding to three significant digits, sign.
//! The only place where toll rounds. Writes typographic signs (`µs`, `−`, `×`); a plain terminal maps them back.

use crate::analysis::findings::{Estimate, Metric};

const DIGITS: i32 = 3;
/// Past this many decimals a figure is noise in any unit used here.
const MOST_DECIMALS: i32 = 3;
/// Stands for a number that does not exist (no round, division by nothing).
const NO_FIGURE: &str = "n/a";

/// What a number counts, hence which units it may be shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Given in microseconds.
    Time,
    /// CPU time for one request, given in microseconds; stays in them for longer, since the sums run past 1 ms.
    CpuTime,
    /// Given in events per second.
    PerSecond,
    /// Given in bytes.
    Bytes,
    /// Given in bytes, shown in units of 2^20 of them.
    BinaryBytes,
    /// Given in units of 2^20 bytes, as `kubectl top` shows memory.
    Mebibytes,
    /// Given in thousandths of a core.
    Millicores,
    /// Given in percent.
    Percent,
    /// Differences of percentages.
    Points,
    /// Threads of a process.
    Threads,
    /// Pods, of which a line may count fractions.
    Pods,
}

impl Quantity {
    /// What `metric` counts.
    pub(super) fn of(metric: Metric) -> Self {
        match metric {
            Metric::Throughput => Self::PerSecond,
            Metric::Memory => Self::BinaryBytes,
            Metric::CpuPerRequest
            | Metric::ApplicationCpuPerRequest
            | Metric::MeshCpuPerRequest => Self::CpuTime,
            _ => Self::Time,
        }
    }

    /// Unit for numbers up to `largest`, and what one of it is worth.
    fn unit(self, largest: f64) -> (&'static str, f64) {
        match self {
            Self::Time if largest >= 1e6 => ("s", 1e6),
            Self::Time if largest >= 1e3 => ("ms", 1e3),
            Self::CpuTime if largest >= 1e4 => ("ms", 1e3),
            Self::Time | Self::CpuTime => ("µs", 1.0),
            Self::PerSecond => ("requests/s", 1.0),
            Self::Bytes => ("MB", 1e6),
            Self::BinaryBytes => ("MiB", 1_048_576.0),
            Self::Mebibytes => ("MiB", 1.0),
            Self::Millicores => ("mCPU", 1.0),
            Self::Percent => ("%", 1.0),
            Self::Points => ("points", 1.0),
            Self::Threads => ("threads", 1.0),
            Self::Pods => ("pods", 1.0),
        }
    }
}

/// One unit and one number of decimals, so that the figures of a column align and compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    unit: &'static str,
    worth: f64,
    decimals: i32,
}

impl Scale {
    /// The scale that gives `values` three significant digits; one decimal may be lost on the smallest.
    pub(super) fn of(quantity: Quantity, values: impl IntoIterator<Item = f64>) -> Self {
        let sizes: Vec<f64> = sizes(values).collect();
        let (unit, worth) = quantity.unit(sizes.iter().copied().fold(0.0, f64::max));
        Self { unit, worth, decimals: 0 }.with_decimals_for(sizes)
    }

    /// Whole numbers in the unit of small values, whatever their size.
    pub(super) fn whole(quantity: Quantity) -> Self {
        let (unit, worth) = quantity.unit(0.0);
        Self { unit, worth, decimals: 0 }
    }

    /// The same unit, with as many decimals as `values` need.
    pub(super) fn with_decimals_for(self, values: impl IntoIterator<Item = f64>) -> Self {
        let sizes: Vec<f64> = sizes(values).collect();
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let smallest = sizes.iter().copied().fold(largest, f64::min);
        let decimals = decimals(smallest / self.worth).min(decimals(largest / self.worth) + 1);
        Self { decimals, ..self }
    }

    /// The same decimals for what `quantity` counts: differences of percentages are points.
    pub(super) fn called(self, quantity: Quantity) -> Self {
        Self { unit: quantity.unit(0.0).0, ..self }
    }

    /// Unit of the figures, as it stands behind them.
    pub(super) fn unit(self) -> &'static str {
        self.unit
    }

    /// `value` in the unit of this scale, unrounded: where it lies on an axis.
    pub(super) fn in_unit(self, value: f64) -> f64 {
        value / self.worth
    }

    /// `1.21`, `−0.30`.
    pub(super) fn plain(self, value: f64) -> String {
        number(value / self.worth, self.decimals)
    }

    /// `1.9` where [`Self::plain`] would round it to a figure of less than two digits.
    pub(super) fn legible(self, value: f64) -> String {
        let in_unit = self.in_unit(value);
        let two_digits = match in_unit.abs() {
            size if size.is_finite() && size > 0.0 => 1 - size.log10().floor() as i32,
            _ => 0,
        };
        number(in_unit, self.decimals.max(two_digits.min(MOST_DECIMALS)))
    }

    /// `+0.62`, `−0.30`; zero has no sign.
    pub(super) fn signed(self, value: f64) -> String {
        with_plus(value, self.plain(value))
    }

    /// `+0.62 ms`, `−0.30 ms`.
    pub(super) fn with_sign_and_unit(self, value: f64) -> String {
        format!("{}\u{a0}{}", self.signed(value), self.unit)
    }

    /// `1.21 ms`.
    pub(super) fn with_unit(self, value: f64) -> String {
        format!("{}\u{a0}{}", self.plain(value), self.unit)
    }
}

/// `1.21 ms`: one figure on its own, with three significant digits.
pub(super) fn figure(quantity: Quantity, value: f64) -> String {
    Scale::of(quantity, [value]).with_unit(value)
}

/// `×1.48`.
pub(super) fn ratio(ratio: f64) -> String {
    if !ratio.is_finite() {
        return NO_FIGURE.into();
    }
    format!("×{}", number(ratio, decimals(ratio).min(2)))
}

/// `+48 %` for a ratio of 1.48.
pub(super) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let shown = number(percent, i32::from(percent.abs() < 10.0));
    format!("{}\u{a0}%", with_plus(percent, shown))
}

/// `±1.6`: half of an interval's width behind the change of a ratio, both as shares; as fine as the change, or as it
/// takes to show something.
pub(super) fn half_width(ratio: f64, half: f64) -> String {
    let percent = half * 100.0;
    let decimals = match percent {
        p if p < 0.095 => 2,
        p if p < 2.0 || (p < 10.0 && (ratio - 1.0).abs() < 0.1) => 1,
        _ => 0,
    };
    format!("±{}", number(percent, decimals))
}

/// `0.76`, of less than a tenth of a core `0.031`.
pub(super) fn cores(value: f64) -> String {
    number(value, if value.abs() < 0.095 { 3 } else { 2 })
}

/// `5:02`; from an hour on `1:05:02`.
pub(super) fn clock(seconds: f64) -> String {
    let all = if seconds.is_finite() { seconds.max(0.0).round() as u64 } else { 0 };
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// `3.1 %` for a share of 0.031.
pub(super) fn share(share: f64) -> String {
    format!("{}\u{a0}%", number(share * 100.0, 1))
}

/// `+0.70 points (0.50 to 0.90)`: a difference of shares.
pub(super) fn points(difference: Estimate) -> String {
    let percent = |share: f64| format!("{:+.2}", share * 100.0);
    let interval = match difference.rounds {
        1 => String::new(),
        _ => format!(" ({} to {})", percent(difference.low), percent(difference.high)),
    };
    format!("{} points{interval}", percent(difference.value))
}

/// `2,000 requests/s`: as somebody wrote it, every digit.
pub(super) fn rate(per_s: f64) -> String {
    format!("{}\u{a0}requests/s", verbatim(per_s))
}

/// `+0.76 cores (0.75 to 0.78)`: the ends have signs where zero lies between them.
pub(super) fn cores_more(more: Estimate) -> String {
    let with_sign = |value: f64| signed(value, cores(value));
    let interval = ends(more).map_or_else(String::new, |(low, high)| {
        let shown = |value: f64| if low >= 0.0 { cores(value) } else { with_sign(value) };
        format!(" ({}\u{a0}to\u{a0}{})", shown(low), shown(high))
    });
    format!("{}\u{a0}cores{interval}", with_sign(more.value))
}

/// `71 %` for a share of 0.714.
pub(super) fn whole_percent(share: f64) -> String {
    format!("{}\u{a0}%", number(share * 100.0, 0))
}

/// `p 0.03`; below the smallest that anybody tells apart `p < 0.0001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 1e-4 {
        return "p\u{a0}<\u{a0}0.0001".into();
    }
    format!("p\u{a0}{}", number(p, if p < 0.01 { 4 } else { 2 }))
}

/// Three significant digits, no unit: `1,840`, `0.763`.
pub(super) fn rounded(value: f64) -> String {
    number(value, decimals(value))
}

/// Every digit that was given, with thousands set apart: `2,303.69`.
pub(super) fn verbatim(value: f64) -> String {
    if !value.is_finite() {
        return NO_FIGURE.into();
    }
    grouped(&value.to_string())
}

/// The same for a column: padded with blanks of a digit's width, so that the points stand in line.
pub(super) fn verbatim_column(values: &[f64]) -> Vec<String> {
    let shown: Vec<String> = values.iter().map(|v| verbatim(*v)).collect();
    let after_point = |s: &str| s.split_once('.').map(|(_, digits)| digits.len());
    let widest = shown.iter().filter_map(|s| after_point(s)).max();
    let pad = |s: &str| match (after_point(s), widest) {
        (Some(digits), Some(widest)) => "\u{2007}".repeat(widest - digits),
        (None, Some(widest)) => format!("\u{2008}{}", "\u{2007}".repeat(widest)),
        _ => String::new(),
    };
    shown.iter().map(|s| format!("{s}{}", pad(s))).collect()
}

/// Value for a label on an axis: no more decimals than `step` needs.
pub(super) fn tick(value: f64, step: f64) -> String {
    let needed = if step > 0.0 { -(step.log10() + 1e-9).floor() as i32 } else { 0 };
    number(value, needed.clamp(0, MOST_DECIMALS))
}

fn sizes(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().map(f64::abs).filter(|v| v.is_finite() && *v > 0.0)
}

/// Decimals that show three significant digits; negative where digits before the point are rounded away.
fn decimals(value: f64) -> i32 {
    let size = value.abs();
    if !(size.is_finite() && size > 0.0) {
        return 0;
    }
    (DIGITS - 1 - size.log10().floor() as i32).min(MOST_DECIMALS)
}

fn number(value: f64, decimals: i32) -> String {
    if !value.is_finite() {
        return NO_FIGURE.into();
    }
    let step = 10f64.powi(-decimals.min(0));
    let rounded = (value / step).round() * step;
    let rounded = if decimals < 0 { rounded } else { value };
    grouped(&format!("{rounded:.*}", decimals.max(0) as usize))
}

/// Commas between thousands, a true minus sign, no sign before a zero.
fn grouped(digits: &str) -> String {
    let (negative, size) = match digits.strip_prefix('-') {
        Some(size) => (size.chars().any(|c| ('1'..='9').contains(&c)), size),
        None => (false, digits),
    };
    let (whole, fraction) = size.split_at(size.find('.').unwrap_or(size.len()));
    let mut out = String::from(if negative { "−" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// `shown` with a plus where `value` is above zero.
pub(super) fn signed(value: f64, shown: String) -> String {
    with_plus(value, shown)
}

fn with_plus(value: f64, shown: String) -> String {
    let is_zero = !shown.chars().any(|c| ('1'..='9').contains(&c));
    if value > 0.0 && !is_zero && value.is_finite() { format!("+{shown}") } else { shown }
}

/// Both ends of an interval; none when one round, or a number that does not exist, left it without.
pub(in crate::report) fn ends(estimate: Estimate) -> Option<(f64, f64)> {
    let known = estimate.rounds > 1 && estimate.low.is_finite() && estimate.high.is_finite();
    known.then_some((estimate.low, estimate.high))
}

/// The same; the value itself at both where there is none.
pub(in crate::report) fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_three_significant_digits_and_the_unit_that_fits() {
        let shown = |v| figure(Quantity::Time, v).replace('\u{a0}', " ");
        assert_eq!(shown(310.4), "310 µs");
        assert_eq!(shown(1_834.0), "1.83 ms");
        assert_eq!(shown(2_500_000.0), "2.50 s");
        assert_eq!(figure(Quantity::Bytes, 41_234_567.0), "41.2\u{a0}MB");
    }

    #[test]
    fn digits_past_the_third_are_rounded_away_before_the_point_too() {
        assert_eq!(rounded(1_052.7), "1,050");
        assert_eq!(rounded(81_234.0), "81,200");
        assert_eq!(rounded(0.7634), "0.763");
    }

    #[test]
    fn a_rounded_zero_has_no_sign() {
        let scale = Scale::of(Quantity::Time, [1_500.0]);
        assert_eq!(scale.signed(-0.4), "0.00");
        assert_eq!(scale.signed(0.4), "0.00");
        assert_eq!(scale.signed(-300.0), "−0.30");
    }

    #[test]
    fn a_small_figure_beside_a_large_one_keeps_two_digits_where_it_must_be_legible() {
        let scale = Scale::of(Quantity::Millicores, [412.0]);
        let shown = [412.3, 1.94, 0.31, 0.0019, 0.0].map(|value| scale.legible(value));
        assert_eq!(shown, ["412", "1.9", "0.31", "0.002", "0"]);
    }

    #[test]
    fn figures_of_one_scale_share_their_decimals() {
        let scale = Scale::of(Quantity::Time, [9_120.0, 12_400.0]);
        assert_eq!([scale.plain(9_120.0), scale.plain(12_400.0)], ["9.12", "12.40"]);
    }

    #[test]
    fn a_ratio_reads_as_a_factor_or_as_a_change() {
        assert_eq!(ratio(1.4821), "×1.48");
        assert_eq!(ratio(13.21), "×13.2");
        assert_eq!(change(1.4821), "+48\u{a0}%");
        assert_eq!(change(0.9634), "−3.7\u{a0}%");
    }

    #[test]
    fn a_number_that_does_not_exist_is_not_a_figure() {
        assert_eq!(rounded(f64::NAN), "n/a");
        assert_eq!(ratio(f64::INFINITY), "n/a");
        assert_eq!(Scale::of(Quantity::Time, [f64::NAN]).plain(f64::NAN), "n/a");
    }

    #[test]
    fn a_published_figure_keeps_all_its_digits() {
        assert_eq!(verbatim(2303.69), "2,303.69");
        assert_eq!(verbatim(1756.6), "1,756.6");
        assert_eq!(verbatim_column(&[1.25, 3.0]), ["1.25", "3\u{2008}\u{2007}\u{2007}"]);
    }
}
