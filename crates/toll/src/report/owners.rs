//! What owners of CPU time and memory are called.

use crate::analysis::findings::{Owner, Pods, Role};

/// `client`, `client sidecar`, `nginx (90 pods)`, `nginx sidecars (90)`, `egress SNI proxy`, `load generator`.
pub(super) fn label(owner: &Owner) -> String {
    let Owner { role, pods } = owner;
    let name = &pods.name;
    match (role, pods.count) {
        (Role::Sidecar, Some(count)) => format!("{name} sidecars ({count})"),
        (Role::Sidecar, None) => format!("{name} sidecar"),
        (Role::EgressGateway, _) => format!("{name} gateway"),
        (Role::SniProxy, _) => format!("{name} SNI proxy"),
        (Role::NodeProxy, _) => format!("{name} proxy"),
        (Role::ControlPlane, _) => format!("control plane in {name}"),
        (Role::Harness, _) => "toll".into(),
        (Role::Collector | Role::LoadGenerator | Role::Unattributed, _) => role_name(*role).into(),
        (Role::Gateway | Role::Application | Role::Waypoint | Role::Database, _) => pods_name(pods),
    }
}

/// `client`, `nginx (90 pods)`.
pub(super) fn pods_name(pods: &Pods) -> String {
    let name = &pods.name;
    pods.count.map_or_else(|| name.clone(), |count| format!("{name} ({count} pods)"))
}

/// What owners of one role are together.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Gateway => "gateway",
        Role::Application => "application",
        Role::Sidecar => "sidecars",
        Role::NodeProxy => "node proxy",
        Role::Waypoint => "waypoint",
        Role::EgressGateway => "egress gateway",
        Role::SniProxy => "SNI proxy",
        Role::Database => "database",
        Role::ControlPlane => "control plane",
        Role::Collector => "collector",
        Role::LoadGenerator => "load generator",
        Role::Harness => "harness",
        Role::Unattributed => "unattributed",
    }
}
