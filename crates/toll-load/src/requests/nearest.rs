//! What somebody most likely meant who wrote a name that is not known.

/// The choice that was most likely meant: at most half of its letters differ.
pub(super) fn nearest(written: &str, choices: impl IntoIterator<Item = String>) -> Option<String> {
    choices
        .into_iter()
        .map(|choice| (strsim::damerau_levenshtein(written, &choice), choice))
        .filter(|(distance, choice)| distance * 2 <= choice.len().max(written.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, choice)| choice)
}
