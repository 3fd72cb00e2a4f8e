//! The calls that a program makes by itself.

/// What a program calls, where that is its own affair.
pub(super) struct OwnCalls {
    /// Whether the service calls just that.
    pub fit: bool,
    /// The program and what it calls, in words.
    pub rule: String,
    /// Services that it could call; none when it calls nothing.
    pub example: Vec<String>,
}
