//! The objects of a run as JSON. Pure: what is in them was decided elsewhere.

use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::names::{RUN_LABEL, RunName, SERVICE_LABEL};
use crate::in_cluster::driver::{NAMESPACE_VARIABLE, SILENCE_VARIABLE};
use crate::in_cluster::node::CGROUPS_VARIABLE;
use crate::in_cluster::protocol::{PORT, TOKEN_VARIABLE};

/// Whom all pods run as: nobody that a machine knows.
const USER: u32 = 65_532;

/// Where the writable folder of each pod of the application is, with its files in it.
pub(super) const FOLDER: &str = "/run/toll";

/// Where the node's counters are mounted in a node pod.
const NODE_CGROUPS: &str = "/node/cgroup";

/// The Secret that holds the run's token, in each namespace with pods of toll's own.
const TOKEN: &str = "toll-token";

/// The driver's pod, its service account and its role.
pub(super) const DRIVER: &str = "driver";

/// What a namespace lets its pods do (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The strictest.
    Restricted,
    /// Anything: node pods mount the node's counters.
    Privileged,
}

/// Where an object is: whose run, in which namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) run: &'a RunName,
    pub(super) namespace: &'a str,
}

/// The pods of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodPlan {
    pub(super) service: String,
    pub(super) replicas: usize,
    /// By which others reach it: name and port.
    pub(super) ports: Vec<(&'static str, u16)>,
    pub(super) containers: Vec<ContainerPlan>,
    /// What a mesh wants to be told of each pod.
    pub(super) annotations: Vec<(&'static str, &'static str)>,
}

/// One container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerPlan {
    pub(super) name: &'static str,
    pub(super) command: Vec<String>,
    /// Below [`FOLDER`], with their texts.
    pub(super) files: Vec<(PathBuf, String)>,
    /// The same, of keys and certificates.
    pub(super) secrets: Vec<(PathBuf, String)>,
    /// How it is known that it has started.
    pub(super) starts: Option<Started>,
}

/// What a kubelet looks at until it is there, and then never again: nothing asks while a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Started {
    /// It takes connections.
    Listens(u16),
    /// It answers a request for this path with success.
    Answers(u16, &'static str),
}

pub(super) fn namespace(at: Place<'_>, level: Level) -> Value {
    let mut labels = at.run.labels();
    labels["pod-security.kubernetes.io/enforce"] = json!(match level {
        Level::Restricted => "restricted",
        Level::Privileged => "privileged",
    });
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": at.namespace, "labels": labels},
    })
}

fn metadata(at: Place<'_>, name: &str) -> Value {
    json!({"name": name, "namespace": at.namespace, "labels": at.run.labels()})
}

pub(super) fn service_account(at: Place<'_>, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": metadata(at, name),
        "automountServiceAccountToken": false,
    })
}

/// The Service of these pods.
pub(super) fn service(at: Place<'_>, pods: &PodPlan) -> Value {
    let port = |(name, port): &(&str, u16)| {
        // By this a mesh knows what is spoken, whatever the port is called.
        json!({"name": name, "port": port, "targetPort": port, "appProtocol": protocol(name)})
    };
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata(at, &pods.service),
        "spec": {
            "selector": {RUN_LABEL: at.run.labels()[RUN_LABEL], SERVICE_LABEL: pods.service},
            "ports": pods.ports.iter().map(port).collect::<Vec<_>>(),
        },
    })
}

fn protocol(port: &str) -> &'static str {
    if port == "tcp" { "tcp" } else { "http" }
}

/// The files of these pods: a ConfigMap, and a Secret where they have keys.
pub(super) fn files(at: Place<'_>, pods: &PodPlan) -> Vec<Value> {
    let texts: serde_json::Map<String, Value> = pods
        .containers
        .iter()
        .flat_map(|container| &container.files)
        .map(|(path, text)| (key_of(path), json!(text)))
        .collect();
    let keys: serde_json::Map<String, Value> = pods
        .containers
        .iter()
        .flat_map(|container| &container.secrets)
        .map(|(path, text)| (key_of(path), json!(BASE64_STANDARD.encode(text))))
        .collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": metadata(at, &pods.service), "data": texts,
    });
    let secret = (!keys.is_empty()).then(|| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": metadata(at, &pods.service), "data": keys,
        })
    });
    std::iter::once(map).chain(secret).collect()
}

/// A file's name in a ConfigMap: its path below the folder, without slashes.
fn key_of(path: &Path) -> String {
    let below = path.strip_prefix(FOLDER).unwrap_or(path);
    below.to_string_lossy().trim_start_matches('/').replace('/', "_")
}

/// The pods themselves. They come up at once, and their names say which is which.
pub(super) fn workload(at: Place<'_>, pods: &PodPlan, image: &str) -> Value {
    let containers: Vec<Value> =
        pods.containers.iter().map(|plan| container(plan, image)).collect();
    let labels = at.run.service_labels(&pods.service);
    let mut annotations = undisturbed();
    for (name, value) in &pods.annotations {
        annotations[*name] = json!(value);
    }
    let mut volumes = vec![
        json!({"name": "folder", "emptyDir": {}}),
        json!({"name": "files", "configMap": {"name": pods.service}}),
    ];
    if pods.containers.iter().any(|container| !container.secrets.is_empty()) {
        volumes.push(json!({"name": "keys", "secret": {"secretName": pods.service}}));
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": metadata(at, &pods.service),
        "spec": {
            "serviceName": pods.service,
            "replicas": pods.replicas.max(1),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {SERVICE_LABEL: pods.service}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "serviceAccountName": pods.service,
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "securityContext": pod_security(),
                    "containers": containers,
                    "volumes": volumes,
                },
            },
        },
    })
}

/// Autoscalers of nodes leave such pods where they are.
fn undisturbed() -> Value {
    json!({
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    })
}

/// As the level `restricted` demands it. Ports below 1024 are open to all, as with container runtimes' defaults.
fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
        "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
    })
}

fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

/// Something is asked for, so that a quota is met; nothing is limited, so that nothing is throttled.
fn resources() -> Value {
    json!({"requests": {"cpu": "10m", "memory": "32Mi"}})
}

fn container(plan: &ContainerPlan, image: &str) -> Value {
    let mount = |volume: &'static str| {
        move |(path, _): &(PathBuf, String)| {
            json!({
                "name": volume, "mountPath": path, "subPath": key_of(path), "readOnly": true,
            })
        }
    };
    let folder = json!({"name": "folder", "mountPath": FOLDER});
    let files = plan.files.iter().map(mount("files"));
    let keys = plan.secrets.iter().map(mount("keys"));
    let mut container = json!({
        "name": plan.name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": plan.command,
        "securityContext": container_security(),
        "resources": resources(),
        "volumeMounts": std::iter::once(folder).chain(files).chain(keys).collect::<Vec<_>>(),
    });
    if let Some(started) = plan.starts {
        container["startupProbe"] = probe(started);
    }
    container
}

fn probe(started: Started) -> Value {
    let mut probe = match started {
        Started::Listens(port) => json!({"tcpSocket": {"port": port}}),
        Started::Answers(port, path) => json!({"httpGet": {"port": port, "path": path}}),
    };
    probe["periodSeconds"] = json!(1);
    probe["failureThreshold"] = json!(120);
    probe
}

/// The run's token, for toll's own pods.
pub(super) fn token(at: Place<'_>, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": metadata(at, TOKEN),
        "stringData": {"token": token},
    })
}

fn token_variable() -> Value {
    json!({
        "name": TOKEN_VARIABLE,
        "valueFrom": {"secretKeyRef": {"name": TOKEN, "key": "token"}},
    })
}

/// The driver: its account, and its pod.
pub(super) fn driver(at: Place<'_>, image: &str, toll: &str, longest_silence_s: u64) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(at, DRIVER),
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": DRIVER, "namespace": at.namespace,
            "labels": at.run.service_labels(DRIVER), "annotations": unmeshed(),
        },
        "spec": {
            "serviceAccountName": DRIVER,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": pod_security(),
            "containers": [{
                "name": DRIVER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": [toll, "in-cluster", "driver"],
                "env": [
                    token_variable(),
                    {"name": SILENCE_VARIABLE, "value": longest_silence_s.to_string()},
                    {"name": NAMESPACE_VARIABLE, "value": at.namespace},
                ],
                "securityContext": container_security(),
                "resources": resources(),
                "startupProbe": probe(Started::Listens(PORT)),
            }],
        },
    });
    vec![account, pod]
}

/// Lets the driver of the run remove this namespace, and nothing else in it.
pub(super) fn removal(at: Place<'_>) -> Vec<Value> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": metadata(at, DRIVER),
        "rules": [{
            "apiGroups": [""], "resources": ["namespaces"], "verbs": ["delete"],
            "resourceNames": [at.namespace],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": metadata(at, DRIVER),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": DRIVER},
        "subjects": [{
            "kind": "ServiceAccount", "name": DRIVER, "namespace": at.run.namespace(),
        }],
    });
    vec![role, binding]
}

/// No mesh puts a proxy into toll's own pods.
fn unmeshed() -> Value {
    let mut annotations = undisturbed();
    annotations["sidecar.istio.io/inject"] = json!("false");
    annotations["linkerd.io/inject"] = json!("disabled");
    annotations["ambient.istio.io/redirection"] = json!("disabled");
    annotations
}

/// The load pods of one arm, which live until their Job is deleted.
pub(super) fn load(at: Place<'_>, name: &str, (image, toll): (&str, &str), pods: usize) -> Value {
    let mut labels = at.run.service_labels(name);
    labels["sidecar.istio.io/inject"] = json!("false");
    labels["istio.io/dataplane-mode"] = json!("none");
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": metadata(at, name),
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels, "annotations": unmeshed()},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "securityContext": pod_security(),
                    "containers": [{
                        "name": "load",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": [toll, "in-cluster", "load", toll],
                        "env": [token_variable()],
                        "securityContext": container_security(),
                        "resources": resources(),
                        "startupProbe": probe(Started::Listens(PORT)),
                    }],
                },
            },
        },
    })
}

/// A pod on each node that reads its containers' counters.
pub(super) fn nodes(at: Place<'_>, image: &str, toll: &str) -> Value {
    let labels = at.run.service_labels(NODES);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": metadata(at, NODES),
        "spec": {
            "selector": {"matchLabels": {SERVICE_LABEL: NODES}},
            "template": {
                "metadata": {"labels": labels, "annotations": unmeshed()},
                "spec": {
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "node",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": [toll, "in-cluster", "node"],
                        "env": [
                            token_variable(),
                            {"name": CGROUPS_VARIABLE, "value": NODE_CGROUPS},
                        ],
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": true,
                        },
                        "resources": resources(),
                        "startupProbe": probe(Started::Listens(PORT)),
                        "volumeMounts": [{
                            "name": "cgroups", "mountPath": NODE_CGROUPS, "readOnly": true,
                        }],
                    }],
                    "volumes": [{"name": "cgroups", "hostPath": {"path": "/sys/fs/cgroup"}}],
                },
            },
        },
    })
}

/// The pods that read the nodes' counters.
pub(super) const NODES: &str = "nodes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_key_that_a_config_map_takes() {
        assert_eq!(key_of(Path::new("/run/toll/identity/ca.crt")), "identity_ca.crt");
        assert_eq!(key_of(Path::new("/run/toll/client.service.json")), "client.service.json");
    }
}
