//! What the trend of a heap says.

use crate::analysis::findings::HeapTrend;
use crate::report::document::Tone;
use crate::report::figures::{Quantity, Scale, p_value};

/// What a trend says, without of whom.
pub(in crate::report) fn in_words(trend: &HeapTrend) -> (String, Tone) {
    let points = trend.points;
    let (Some(slope), Some(p)) = (trend.mib_per_minute, trend.p_value) else {
        let times = if points == 1 { "once".into() } else { format!("{points} times") };
        return (format!("cannot tell: the old generation was collected {times}"), Tone::Unknown);
    };
    let scale = Scale::of(Quantity::Mebibytes, [slope]);
    let p = p_value(p);
    let by = scale.with_unit(slope.abs());
    if trend.grows {
        let said = format!("grows by {by} a minute ({p}, {points} points): maybe a leak");
        return (said, Tone::Worse);
    }
    if trend.falls {
        return (format!("falls by {by} a minute ({p}, {points} points)"), Tone::Same);
    }
    let unit = scale.unit();
    let said =
        format!("no trend ({}\u{a0}{unit} a minute, {p}, {points} points)", scale.signed(slope));
    (said, Tone::Same)
}
