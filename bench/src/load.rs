//! The load that a client is asked for. Pure data.

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 in the clear.
    Http1,
    /// HTTP/1.1 over TLS.
    Http1Tls,
    /// HTTP/2 over TLS, so many requests at a time on each connection.
    Http2Tls { streams: u32 },
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The next one as soon as an answer has come.
    FlatOut,
    /// So many per second, answers or not.
    PerSecond(u32),
}

/// One load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) protocol: Protocol,
    pub(crate) pace: Pace,
    /// Connections at the beginning.
    pub(crate) connections: u32,
    /// What an open loop may open when all are busy, where the client knows how to.
    pub(crate) most_connections: u32,
    pub(crate) seconds: u32,
}
