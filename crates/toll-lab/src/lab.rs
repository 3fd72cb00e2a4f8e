//! Brings deployments up. Its callers know no namespaces, pids or cgroups.

use std::path::{Path, PathBuf, absolute};

use crate::environment::Environment;
use crate::error::KubernetesError;
use crate::fake::FakeLab;
use crate::host::isolation::Isolation;
use crate::kubernetes::{self, KubernetesLab, KubernetesOptions};
use crate::local::LocalLab;
use crate::programs;
use crate::{Deployment, LabError, LocalOptions, Rendered};

/// Where deployments come up.
#[derive(Debug)]
pub enum Lab {
    /// This machine.
    Local(Box<LocalLab>),
    /// A cluster.
    Kubernetes(Box<KubernetesLab>),
    /// What would be in one; nothing comes up.
    Manifests(String),
    /// No processes at all: for tests of what uses a lab.
    Fake(FakeLab),
}

impl Lab {
    /// This machine as a lab; removes what killed runs left on it.
    ///
    /// # Errors
    /// When a forced isolation level or real-time scheduling is not possible, or leftovers cannot be removed.
    pub fn local(mut options: LocalOptions) -> Result<Self, LabError> {
        // Programs run in folders of their own, where a relative path would lead elsewhere.
        options.work_dir = absolute(&options.work_dir).unwrap_or(options.work_dir);
        LocalLab::new(options).map(|lab| Self::Local(Box::new(lab)))
    }

    /// The cluster of the current context as a lab.
    ///
    /// # Errors
    /// When there is none, or it cannot be reached.
    pub fn kubernetes(options: KubernetesOptions) -> Result<Self, LabError> {
        KubernetesLab::new(options).map(|lab| Self::Kubernetes(Box::new(lab)))
    }

    /// No cluster, but what would be applied to one whose pods have this image: only for [`Self::render`].
    pub fn manifests(image: &str) -> Self {
        Self::Manifests(image.to_owned())
    }

    /// Cores of all machines that arms run on; `None` where that is this machine.
    pub fn cores(&self) -> Option<usize> {
        match self {
            Self::Kubernetes(lab) => Some(lab.cores()),
            Self::Local(_) | Self::Manifests(_) | Self::Fake(_) => None,
        }
    }

    /// Pods that can still be started; `None` where nothing but memory bounds them.
    pub fn pod_slots(&self) -> Option<usize> {
        match self {
            Self::Kubernetes(lab) => Some(lab.pod_slots()),
            Self::Local(_) | Self::Manifests(_) | Self::Fake(_) => None,
        }
    }

    /// The image of all pods; `None` where they have none.
    pub fn image(&self) -> Option<&str> {
        match self {
            Self::Kubernetes(lab) => Some(lab.image()),
            Self::Manifests(image) => Some(image),
            Self::Local(_) | Self::Fake(_) => None,
        }
    }

    /// How far apart the pods are; `None` where that is not this machine's affair.
    pub fn isolation(&self) -> Option<Isolation> {
        match self {
            Self::Local(lab) => Some(lab.isolation()),
            Self::Kubernetes(_) | Self::Manifests(_) | Self::Fake(_) => None,
        }
    }

    /// Whether no other environment can be up beside one of `deployment`: all pods share the machine's network, and
    /// a program of the user's own has a port there that only its author can change.
    pub fn stands_alone(&self, deployment: &Deployment) -> bool {
        match self {
            Self::Local(lab) => lab.stands_alone(deployment),
            Self::Kubernetes(_) | Self::Manifests(_) => false,
            // As on the smallest machine.
            Self::Fake(_) => deployment.has_fixed_ports(),
        }
    }

    /// What the report's manifest says about the lab, in order.
    pub fn facts(&self) -> Vec<(String, String)> {
        match self {
            Self::Local(lab) => lab.facts(),
            Self::Kubernetes(lab) => lab.facts(),
            Self::Manifests(_) => Vec::new(),
            Self::Fake(_) => vec![("isolation".to_owned(), "fake".to_owned())],
        }
    }

    /// What the report's manifest says about how this lab starts the programs of `deployment`, in order.
    ///
    /// # Errors
    /// When the deployment asks for what the lab does not have.
    pub fn facts_of(&self, deployment: &Deployment) -> Result<Vec<(String, String)>, LabError> {
        match self {
            Self::Local(lab) => lab.facts_of(deployment),
            Self::Kubernetes(_) | Self::Manifests(_) | Self::Fake(_) => Ok(Vec::new()),
        }
    }

    /// The files of the user's own programs that `deployment` starts, as far as its commands tell.
    pub fn files_of_user(&self, deployment: &Deployment) -> Vec<PathBuf> {
        let services = deployment.services.iter();
        services.flat_map(|service| programs::files_of_user(&service.program)).collect()
    }

    /// What a report from this lab cannot show, one sentence each.
    pub fn lacks(&self) -> Vec<String> {
        match self {
            Self::Local(lab) => lab.lacks(),
            Self::Kubernetes(lab) => lab.lacks(),
            Self::Manifests(_) => Vec::new(),
            Self::Fake(_) => vec!["no traffic: all numbers are made up".to_owned()],
        }
    }

    /// The files that `deployment` would come up with. Touches nothing.
    ///
    /// # Errors
    /// When the deployment asks for what the lab does not have.
    pub fn render(&self, deployment: &Deployment) -> Result<Vec<Rendered>, LabError> {
        match self {
            Self::Local(lab) => lab.render(deployment),
            Self::Kubernetes(lab) => lab.render(deployment),
            Self::Manifests(image) => kubernetes::render(deployment, image),
            Self::Fake(lab) => Ok(lab.render(deployment)),
        }
    }

    /// Brings `deployment` up and waits, up to a bound, until it answers; each process logs to a file in `logs`.
    ///
    /// # Errors
    /// When a step fails; what was made until then is removed.
    pub fn up(&self, deployment: &Deployment, logs: &Path) -> Result<Environment, LabError> {
        match self {
            Self::Local(lab) => lab.up(deployment, logs).map(Environment::local),
            Self::Kubernetes(lab) => lab.up(deployment, logs).map(Environment::kubernetes),
            Self::Manifests(_) => Err(KubernetesError::NoCluster.into()),
            Self::Fake(lab) => Ok(Environment::fake(lab.up(deployment))),
        }
    }
}
