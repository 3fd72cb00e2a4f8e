//! What can go wrong with a cluster, and what to do about it.

use std::io;

/// Why the cluster cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// No kubeconfig, or it has no current context.
    #[error("there is no cluster to run on")]
    NoContext(#[source] kube::config::InferConfigError),
    /// The context's certificates or URL.
    #[error("the current context cannot be used")]
    Unusable(#[source] kube::Error),
    /// The threads that carry requests.
    #[error("cannot start the threads that speak with the cluster")]
    Runtime(#[source] io::Error),
    /// The API server says no.
    #[error("the cluster refuses to {what}: {message} (status {code})")]
    Refused {
        /// What was asked for.
        what: String,
        /// HTTP status.
        code: u16,
        /// What it says.
        message: String,
    },
    /// No answer.
    #[error("cannot {what} at {address}")]
    Unreachable {
        /// What was asked for.
        what: String,
        /// Of the API server.
        address: String,
        /// Why.
        source: kube::Error,
    },
    /// The deployment needs what the lab cannot do in a cluster yet.
    #[error("{what} cannot run on Kubernetes yet")]
    NotYet {
        /// For instance `the service `db` (PostgreSQL)`.
        what: String,
    },
    /// Something was to come up where there are only manifests.
    #[error("there are only manifests here, and no cluster")]
    NoCluster,
    /// A variant is to join a mesh that the cluster does not have.
    #[error("`{variant}` is to join a mesh, and none that toll knows is installed in the cluster")]
    NoMesh {
        /// The variant.
        variant: String,
    },
    /// A pod did not come up.
    #[error("{pod} was not ready after {waited_s} s: {state}{}", .log.as_ref().map_or(String::new(), |log| format!("; its last lines:\n  {log}")))]
    NotReady {
        /// Namespace and name.
        pod: String,
        /// How long it was waited for.
        waited_s: u64,
        /// What the cluster says of it.
        state: String,
        /// The end of its log.
        log: Option<String>,
    },
    /// Pods of a variant that lack what makes the variant.
    #[error("{lacking} of {pods} pods have no container {container}: the mesh did not inject it")]
    NotInjected {
        /// Pods without it.
        lacking: usize,
        /// All pods that should have it.
        pods: usize,
        /// What is missing.
        container: String,
    },
    /// The stream to the driver broke and could not be made again.
    #[error("the driver pod does not answer: {message}")]
    Driver {
        /// What happened last.
        message: String,
    },
    /// One of toll's own pods refused a question.
    #[error("{pod} cannot do what it was asked for: {message}")]
    Pod {
        /// Which pod.
        pod: String,
        /// What it says.
        message: String,
    },
    /// Something of a run is still there.
    #[error("{} of the run {} still there after {waited_s} s", .names.join(", "), if .names.len() == 1 { "is" } else { "are" })]
    Left {
        /// Namespaces.
        names: Vec<String>,
        /// How long it was waited for.
        waited_s: u64,
    },
}

impl KubernetesError {
    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::NoContext(_) => {
                "`kubectl config get-contexts` lists what there is; set KUBECONFIG or `kubectl config use-context NAME`"
            }
            Self::Unusable(_) => "check that `kubectl get nodes` works with the same context",
            Self::Refused { code: 403, .. } => {
                "`toll manifests STUDY --rbac` prints the role that a run needs; ask who owns the cluster for it"
            }
            Self::Unreachable { .. } => "check that `kubectl get nodes` works from here",
            Self::NotYet { .. } => "leave `--on kubernetes` out: it runs on this machine",
            Self::NoMesh { .. } => {
                "`toll doctor --on kubernetes` says what is installed; without `by: cluster` toll brings sidecars of its own"
            }
            Self::NotReady { .. } => {
                "`kubectl -n NAMESPACE describe pod` says more while the run is up; `toll image` writes the image, `--image` says what it is called in the cluster"
            }
            Self::NotInjected { .. } => {
                "the injector did not answer in time: run again, or make its failurePolicy `Fail` so that the cluster waits for it"
            }
            Self::Driver { .. } => "look at its log: `kubectl logs -n NAMESPACE driver`",
            Self::Left { .. } => "`toll clean --on kubernetes` removes it",
            Self::Refused { .. } | Self::Runtime(_) | Self::Pod { .. } | Self::NoCluster => {
                return None;
            }
        };
        Some(text.to_owned())
    }
}
