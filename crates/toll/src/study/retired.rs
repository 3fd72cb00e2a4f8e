//! What older study files had and this one has not: each is answered with what took its place.

/// A key or a word of older study files.
pub(super) struct Retired {
    /// As it was written.
    pub word: &'static str,
    /// The key that took its place, if one did.
    pub key: Option<&'static str>,
    /// What to do about it.
    pub instead: &'static str,
}

/// All of them.
pub(super) const RETIRED: [Retired; 6] = [
    Retired {
        word: "blocks",
        key: Some("rounds"),
        instead: "rounds took their place, and each starts every variant anew: write `rounds: 8`",
    },
    Retired {
        word: "bring_up",
        key: None,
        instead: "all variants stand side by side in each round: remove it",
    },
    Retired {
        word: "warm_up",
        key: None,
        instead: "every slice begins with a guard that is not counted, and services settle before the first: remove it",
    },
    Retired {
        word: "duration",
        key: Some("slice"),
        instead: "a load is measured in many short slices: write `slice: 400ms`, and `rounds`, `cycles` or `for: 5m` say how long in all",
    },
    Retired {
        word: "rehearse",
        key: None,
        instead: "services settle under all that the loads ask: remove it",
    },
    Retired {
        word: "knee",
        key: Some("capacity"),
        instead: "rates refer to the capacity, what the slowest variant carries flat out: write `rate: 50% of capacity`, or `scale: {capacity: 1526/s}`",
    },
];

/// What became of a key, or of a text that ends with one of the words.
pub(super) fn retired(written: &str) -> Option<&'static Retired> {
    RETIRED.iter().find(|retired| written.split_whitespace().last() == Some(retired.word))
}
