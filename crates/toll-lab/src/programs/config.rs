//! What the configuration files of toll's own programs have in common.

use serde::Serialize;

use crate::LabError;
use crate::topology::Site;

/// A service that is called over HTTP.
#[derive(Debug, Serialize)]
pub(super) struct CallConfig {
    pub(super) service: String,
    addresses: Vec<String>,
    host: String,
}

/// All that the program at `site` calls, but for databases.
///
/// # Errors
/// When it calls a service that is not there.
pub(super) fn http_calls(site: &Site<'_>) -> Result<Vec<CallConfig>, LabError> {
    let callees = site.service.calls.iter().filter(|name| !site.deployment.is_database(name));
    let call = |callee: &String| {
        let host = format!("{callee}:{}", site.topology.pods_of(callee)?[0].app_port);
        let addresses = match site.http_proxy() {
            Some(_) => vec![host.clone()],
            None => site.addresses_of(callee)?.iter().map(ToString::to_string).collect(),
        };
        Ok(CallConfig { service: callee.clone(), addresses, host })
    };
    callees.map(call).collect()
}

pub(super) fn json(config: &impl Serialize) -> String {
    serde_json::to_string_pretty(config).expect("plain fields always have a JSON form") + "\n"
}

pub(super) fn whole(duration: u128) -> u64 {
    u64::try_from(duration).unwrap_or(u64::MAX)
}
