//! The parts of the Petclinic, which run on Spring.

use std::net::SocketAddrV4;

use serde::Serialize;

use super::config::{CallConfig, http_calls, json};
use super::jvm::Size;
use crate::LabError;
use crate::artifacts::Artifact;
use crate::deployment::{Petclinic, PetclinicPart};
use crate::topology::Site;

/// A part's jar and the size of its JVM.
pub(super) fn jar(petclinic: &Petclinic) -> (Artifact, Size) {
    let jar = match petclinic.part {
        PetclinicPart::Gateway => Artifact::PetclinicGateway,
        PetclinicPart::Vets => Artifact::PetclinicVets,
    };
    (jar, Size { heap_mib: petclinic.heap_mib, compilers: petclinic.compilers })
}

/// The configuration file of a part.
#[derive(Debug, Serialize)]
struct PetclinicConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    calls: Vec<CallConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddrV4>,
}

/// The text of that file.
///
/// # Errors
/// When it calls a service that is not there.
pub(super) fn config(site: &Site<'_>) -> Result<String, LabError> {
    let metrics = site.service.metrics.as_ref();
    Ok(json(&PetclinicConfig {
        name: &site.service.name,
        listen: site.listens_at(),
        calls: http_calls(site)?,
        metrics: metrics.map(|metrics| site.listens_on(metrics.port)),
    }))
}

#[cfg(test)]
mod tests {
    use crate::fixture::petclinic;
    use crate::programs::tests::config_of;

    #[test]
    fn a_part_of_the_petclinic_is_told_where_to_listen_whom_to_call_and_where_to_tell_of_itself() {
        insta::assert_snapshot!(config_of(&petclinic(), "gateway"));
    }

    #[test]
    fn a_part_of_the_petclinic_without_metrics_is_not_told_of_any() {
        let config = config_of(&petclinic(), "vets");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let expected = serde_json::json!({ "name": "vets", "listen": "0.0.0.0:8081", "calls": [] });
        assert_eq!(config, expected);
    }
}
