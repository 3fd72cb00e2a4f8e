//! Turns a host and a port into the addresses to try: the plan's own, or the system resolver's (which waits).

use std::net::{SocketAddr, ToSocketAddrs};

use crate::{LoadError, Resolve};

/// At least one address, in the resolver's order.
///
/// # Errors
/// When the host has none.
pub(super) fn addresses(
    host: &str,
    port: u16,
    overrides: &[Resolve],
) -> Result<Vec<SocketAddr>, LoadError> {
    let given: Vec<SocketAddr> = overrides
        .iter()
        .filter(|resolve| resolve.port == port && is_same(&resolve.host, host))
        .map(|resolve| SocketAddr::new(resolve.address, port))
        .collect();
    if !given.is_empty() {
        return Ok(given);
    }
    let unresolved = |source| LoadError::Resolve { host: host.into(), source };
    let found = (bare(host), port).to_socket_addrs().map_err(|error| unresolved(Some(error)))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unresolved(None)) } else { Ok(found) }
}

/// The host without the brackets that a URL puts around an IPv6 address (RFC 3986, section 3.2.2).
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn is_same(one: &str, other: &str) -> bool {
    bare(one).eq_ignore_ascii_case(bare(other))
}
