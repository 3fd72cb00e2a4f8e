//! Placeholders of requests: `{{...}}`, which the load engine fills in.

/// What stands between double braces.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).map(|rest| rest.split_once("}}").map_or(rest, |(name, _)| name))
}

/// Whether the load engine fills it in; `toll_load::Target` says how.
pub(super) fn is_placeholder(name: &str) -> bool {
    let range = name.strip_prefix("random.").and_then(|range| range.split_once('.'));
    let whole = |bound: &str| bound.parse::<i64>().ok();
    let range = range.and_then(|(low, high)| Some((whole(low)?, whole(high)?)));
    matches!(name, "counter" | "random") || range.is_some_and(|(low, high)| low <= high)
}
