//! What the cluster says of pods: read out of the JSON of its objects. Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::Value;

/// A pod as the cluster sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodStatus {
    pub(super) name: String,
    /// None before it has one.
    pub(super) ip: Option<Ipv4Addr>,
    pub(super) node: String,
    /// Whether all its containers are ready.
    pub(super) ready: bool,
    pub(super) containers: Vec<ContainerStatus>,
    /// Why it is not further than it is, in the cluster's words.
    pub(super) state: String,
}

/// A node as the cluster sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeStatus {
    pub(super) name: String,
    pub(super) cores: usize,
    /// As many as it takes.
    pub(super) pods: usize,
    /// Kernel, runtime, cores and memory, in words.
    pub(super) describes: String,
}

impl NodeStatus {
    pub(super) fn of(node: &Value) -> Self {
        let (info, capacity) = (&node["status"]["nodeInfo"], &node["status"]["capacity"]);
        let cores = text(&capacity["cpu"]);
        Self {
            name: text(&node["metadata"]["name"]),
            cores: cores.parse().unwrap_or(0),
            pods: text(&node["status"]["allocatable"]["pods"]).parse().unwrap_or(0),
            describes: format!(
                "kubelet {}, {}, kernel {}, {cores} cores, {} memory",
                text(&info["kubeletVersion"]),
                text(&info["containerRuntimeVersion"]),
                text(&info["kernelVersion"]),
                text(&capacity["memory"]),
            ),
        }
    }
}

/// One container of it, those that a mesh injected included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    /// Without the runtime's name; empty before it runs.
    pub(super) id: String,
    pub(super) restarts: u64,
    /// How it ended, if it has.
    pub(super) ended: Option<String>,
}

impl PodStatus {
    pub(super) fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let list = |key: &str| status[key].as_array().cloned().unwrap_or_default();
        // A native sidecar is an init container that goes on running.
        let restarting = restarting_init_containers(pod);
        let init = list("initContainerStatuses").into_iter();
        let init = init.filter(|one| restarting.contains(&text(&one["name"])));
        let all: Vec<Value> = init.chain(list("containerStatuses")).collect();
        Self {
            name: text(&pod["metadata"]["name"]),
            ip: status["podIP"].as_str().and_then(|ip| ip.parse().ok()),
            node: text(&pod["spec"]["nodeName"]),
            ready: !all.is_empty() && all.iter().all(|one| one["ready"] == true),
            state: state_of(status, &all),
            containers: all.iter().map(ContainerStatus::of).collect(),
        }
    }

    pub(super) fn container(&self, name: &str) -> Option<&ContainerStatus> {
        self.containers.iter().find(|container| container.name == name)
    }

    /// What has happened to it that should not happen to a pod under load; nothing while all is well.
    pub(super) fn trouble(&self, before: &Self) -> Option<String> {
        if self.node != before.node || self.ip != before.ip {
            return Some(format!("{} was moved to another place", self.name));
        }
        let restarts: BTreeMap<&str, u64> =
            before.containers.iter().map(|one| (one.name.as_str(), one.restarts)).collect();
        self.containers.iter().find_map(|one| {
            let known = restarts.get(one.name.as_str()).copied().unwrap_or(one.restarts);
            let (pod, name) = (&self.name, &one.name);
            match &one.ended {
                Some(how) => Some(format!("{name} in {pod} ended: {how}")),
                None if one.restarts > known => Some(format!("{name} in {pod} was restarted")),
                None => None,
            }
        })
    }
}

impl ContainerStatus {
    fn of(status: &Value) -> Self {
        let id = text(&status["containerID"]);
        let ended = &status["state"]["terminated"];
        Self {
            name: text(&status["name"]),
            id: id.split_once("://").map_or(id.clone(), |(_, id)| id.to_owned()),
            restarts: status["restartCount"].as_u64().unwrap_or(0),
            ended: ended
                .is_object()
                .then(|| format!("{} (exit status {})", text(&ended["reason"]), ended["exitCode"])),
        }
    }
}

fn restarting_init_containers(pod: &Value) -> Vec<String> {
    let init = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
    let restarts = init.iter().filter(|one| one["restartPolicy"] == "Always");
    restarts.map(|one| text(&one["name"])).collect()
}

/// The first container's reason to wait, or what keeps the pod from being scheduled, or its phase.
fn state_of(status: &Value, containers: &[Value]) -> String {
    let waits = containers.iter().find_map(|one| {
        let waiting = &one["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        let message = waiting["message"].as_str().unwrap_or_default();
        Some(format!("{} waits: {reason} {message}", text(&one["name"])).trim().to_owned())
    });
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let unmet = conditions.iter().find_map(|condition| {
        (condition["status"] == "False").then(|| condition["message"].as_str()).flatten()
    });
    let phase = text(&status["phase"]);
    waits.or_else(|| unmet.map(str::to_owned)).unwrap_or(phase)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn running() -> Value {
        json!({
            "metadata": {"name": "client-0"},
            "spec": {"nodeName": "klab", "initContainers": [
                {"name": "istio-proxy", "restartPolicy": "Always"}, {"name": "istio-init"},
            ]},
            "status": {
                "phase": "Running", "podIP": "10.244.0.7",
                "initContainerStatuses": [
                    {"name": "istio-proxy", "ready": true, "restartCount": 0,
                     "containerID": "containerd://beef", "state": {"running": {}}},
                    {"name": "istio-init", "ready": true, "restartCount": 0,
                     "containerID": "containerd://dead",
                     "state": {"terminated": {"reason": "Completed", "exitCode": 0}}},
                ],
                "containerStatuses": [
                    {"name": "program", "ready": true, "restartCount": 0,
                     "containerID": "containerd://cafe", "state": {"running": {}}},
                ],
            },
        })
    }

    #[test]
    fn a_native_sidecar_counts_as_a_container_and_an_init_container_that_is_done_does_not() {
        let pod = PodStatus::of(&running());
        let names: Vec<&str> = pod.containers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["istio-proxy", "program"]);
        assert!(pod.ready);
        assert_eq!(pod.container("program").unwrap().id, "cafe");
        assert_eq!(pod.ip, Some(Ipv4Addr::new(10, 244, 0, 7)));
    }

    #[test]
    fn a_restart_and_an_end_are_trouble_and_an_unchanged_pod_is_none() {
        let before = PodStatus::of(&running());
        assert_eq!(before.trouble(&before), None);
        let mut restarted = running();
        restarted["status"]["containerStatuses"][0]["restartCount"] = json!(1);
        let told = PodStatus::of(&restarted).trouble(&before).unwrap();
        assert_eq!(told, "program in client-0 was restarted");
        let mut killed = running();
        killed["status"]["containerStatuses"][0]["state"] =
            json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
        let told = PodStatus::of(&killed).trouble(&before).unwrap();
        assert_eq!(told, "program in client-0 ended: OOMKilled (exit status 137)");
    }

    #[test]
    fn a_pod_that_waits_says_why() {
        let mut pod = running();
        pod["status"]["containerStatuses"][0]["ready"] = json!(false);
        pod["status"]["containerStatuses"][0]["state"] =
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        let pod = PodStatus::of(&pod);
        assert!(!pod.ready);
        assert_eq!(pod.state, "program waits: ImagePullBackOff no such image");
    }
}
