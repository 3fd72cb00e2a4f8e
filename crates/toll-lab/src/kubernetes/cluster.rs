//! The API server as toll uses it: objects as JSON, applied, read and deleted; streams to ports of pods.
//!
//! The lab is synchronous: a runtime of its own carries what is asked here.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, LogParams, Patch,
    PatchParams, PostParams,
};
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::runtime::{Builder, Runtime};

use super::status::PodStatus;
use crate::error::KubernetesError;

/// Who applies what toll applies.
const FIELD_MANAGER: &str = "toll";

/// The kinds of objects that toll makes or reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    DaemonSet,
    Event,
    Job,
    Namespace,
    NetworkPolicy,
    Node,
    Pod,
    Role,
    RoleBinding,
    Secret,
    SelfSubjectAccessReview,
    Service,
    ServiceAccount,
    StatefulSet,
}

impl Kind {
    /// Of an object by what it says of itself; none for what toll does not make.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let all = [
            Self::ConfigMap,
            Self::DaemonSet,
            Self::Event,
            Self::Job,
            Self::Namespace,
            Self::NetworkPolicy,
            Self::Node,
            Self::Pod,
            Self::Role,
            Self::RoleBinding,
            Self::Secret,
            Self::Service,
            Self::ServiceAccount,
            Self::StatefulSet,
        ];
        all.into_iter().find(|kind| Some(kind.described().2) == object["kind"].as_str())
    }

    /// Group, version, kind and the plural in paths.
    fn described(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet", "daemonsets"),
            Self::Event => ("", "v1", "Event", "events"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
            Self::NetworkPolicy => ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
            Self::Node => ("", "v1", "Node", "nodes"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Role => ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
            Self::RoleBinding => ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
            Self::Secret => ("", "v1", "Secret", "secrets"),
            Self::SelfSubjectAccessReview => (
                "authorization.k8s.io",
                "v1",
                "SelfSubjectAccessReview",
                "selfsubjectaccessreviews",
            ),
            Self::Service => ("", "v1", "Service", "services"),
            Self::ServiceAccount => ("", "v1", "ServiceAccount", "serviceaccounts"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
        }
    }

    fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = self.described();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }
}

fn api(client: &Client, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.resource()),
        None => Api::all_with(client.clone(), &kind.resource()),
    }
}

/// The cluster of the current context.
#[derive(Clone)]
pub(super) struct Cluster {
    runtime: Arc<Runtime>,
    client: Client,
    /// Where it is.
    pub(super) address: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Cluster {
    /// The cluster of the current context, or of the pod that this runs in.
    ///
    /// # Errors
    /// When there is no such context, or what it says cannot be used.
    pub(super) fn connect() -> Result<Self, KubernetesError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = Arc::new(runtime.map_err(KubernetesError::Runtime)?);
        let (client, address) = runtime.block_on(async {
            let config = Config::infer().await.map_err(KubernetesError::NoContext)?;
            let address = config.cluster_url.to_string();
            let client = Client::try_from(config).map_err(KubernetesError::Unusable)?;
            Ok::<_, KubernetesError>((client, address))
        })?;
        Ok(Self { runtime, client, address })
    }

    /// The version of the API server.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub(super) fn version(&self) -> Result<String, KubernetesError> {
        let asked = self.runtime.block_on(self.client.apiserver_version());
        Ok(asked.map_err(|error| self.failed("ask for its version", error))?.git_version)
    }

    /// Makes an object, or makes it as this one says. Gives it as it is then.
    ///
    /// # Errors
    /// When the API server refuses it or cannot be reached.
    pub(super) fn apply(&self, object: &Value) -> Result<Value, KubernetesError> {
        let kind = Kind::of(object).expect("toll applies only what it makes");
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let api = api(&self.client, kind, object["metadata"]["namespace"].as_str());
        let how = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.runtime.block_on(api.patch(name, &how, &Patch::Apply(object)));
        let applied =
            applied.map_err(|error| self.failed(&format!("apply {kind:?} {name}"), error))?;
        Ok(serde_json::to_value(applied).expect("an object is JSON"))
    }

    /// Makes an object that has no namespace, or has it only checked.
    ///
    /// # Errors
    /// When the API server refuses it or cannot be reached.
    pub(super) fn create(
        &self,
        kind: Kind,
        object: &Value,
        dry_run: bool,
    ) -> Result<Value, KubernetesError> {
        let object = serde_json::from_value(object.clone()).expect("toll makes whole objects");
        let how = PostParams { dry_run, ..PostParams::default() };
        let made = self.runtime.block_on(api(&self.client, kind, None).create(&how, &object));
        let made = made.map_err(|error| self.failed(&format!("make a {kind:?}"), error))?;
        Ok(serde_json::to_value(made).expect("an object is JSON"))
    }

    /// The objects with these labels (`name=value`, separated by commas).
    ///
    /// # Errors
    /// When the API server refuses it or cannot be reached.
    pub(super) fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, KubernetesError> {
        let api = api(&self.client, kind, namespace);
        let listed = self.runtime.block_on(api.list(&ListParams::default().labels(labels)));
        let listed = listed.map_err(|error| self.failed(&format!("list {kind:?}s"), error))?;
        let json = |object| serde_json::to_value(object).expect("an object is JSON");
        Ok(listed.items.into_iter().map(json).collect())
    }

    /// The pods of a namespace.
    ///
    /// # Errors
    /// When the API server refuses it or cannot be reached.
    pub(super) async fn pods(&self, namespace: &str) -> Result<Vec<PodStatus>, kube::Error> {
        let api = api(&self.client, Kind::Pod, Some(namespace));
        let listed = api.list(&ListParams::default()).await?;
        let status = |pod| PodStatus::of(&serde_json::to_value(pod).expect("an object is JSON"));
        Ok(listed.items.into_iter().map(status).collect())
    }

    /// Deletes an object and all that it owns; one that is not there is fine.
    ///
    /// # Errors
    /// When the API server refuses it or cannot be reached.
    pub(super) fn delete(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), KubernetesError> {
        let api = api(&self.client, kind, namespace);
        match self.runtime.block_on(api.delete(name, &DeleteParams::background())) {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            Err(error) => Err(self.failed(&format!("delete {kind:?} {name}"), error)),
        }
    }

    /// The last lines of a container's log; none where there is no log yet.
    pub(super) fn log(&self, namespace: &str, pod: &str, container: &str) -> String {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let how = LogParams {
            container: Some(container.to_owned()),
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        self.runtime.block_on(api.logs(pod, &how)).unwrap_or_default()
    }

    /// A stream to a port of a pod, by way of the API server.
    ///
    /// # Errors
    /// When it refuses that or cannot be reached.
    pub(super) fn forward(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> Result<DuplexStream, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("forward port {port} of pod {pod}");
        let forwarded = self.runtime.block_on(api.portforward(pod, &[port]));
        let mut forwarded = forwarded.map_err(|error| self.failed(&what, error))?;
        Ok(forwarded.take_stream(port).expect("the port was asked for"))
    }

    /// Has the runtime carry `what` to its end.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Has the runtime carry `what` beside all else.
    pub(super) fn beside(&self, what: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(what);
    }

    fn failed(&self, what: &str, source: kube::Error) -> KubernetesError {
        match source {
            kube::Error::Api(refusal) => KubernetesError::Refused {
                what: what.to_owned(),
                code: refusal.code,
                message: refusal.message.clone(),
            },
            source => KubernetesError::Unreachable {
                what: what.to_owned(),
                address: self.address.clone(),
                source,
            },
        }
    }
}

/// Lines of a container's log that are kept.
const LOG_LINES: i64 = 2000;
