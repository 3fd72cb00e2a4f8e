//! The configuration files of one Mesher.

use serde_json::{Value, json};

use crate::error::DataPlaneError;
use crate::topology::MesherAddresses;

/// How often it asks the registry for instances: once, as far as a run is concerned.
const REFRESH: &str = "24h";

/// Names and texts.
///
/// # Errors
/// When one cannot be written as YAML.
pub(super) fn files(
    service: &str,
    at: MesherAddresses,
) -> Result<Vec<(&'static str, String)>, DataPlaneError> {
    let service = json!({"servicecomb": {"service": {"name": service, "version": "0.0.1"}}});
    let all = [
        ("chassis.yaml", chassis(at)),
        ("microservice.yaml", service),
        ("mesher.yaml", json!({"admin": {"enable": true}})),
        ("lager.yaml", json!({"logWriters": "stdout", "logLevel": "ERROR"})),
    ];
    let written = |(name, value): (&'static str, Value)| {
        Ok((name, serde_saphyr::to_string(&value).map_err(DataPlaneError::Unwritable)?))
    };
    all.into_iter().map(written).collect()
}

/// Without the rate limiter of the shipped chains: it takes 100 requests a second.
fn chassis(at: MesherAddresses) -> Value {
    json!({"servicecomb": {
        "protocols": {
            "http": {"listenAddress": at.provider.to_string()},
            "rest-admin": {"listenAddress": at.admin.to_string()},
        },
        "registry": {
            "address": format!("http://{}", at.registry),
            "scope": "full",
            "refreshInterval": REFRESH,
        },
        "handler": {"chain": {
            "Consumer": {"outgoing": "router,loadbalance,transport"},
            "Provider": {"incoming": "transport"},
        }},
    }})
}
