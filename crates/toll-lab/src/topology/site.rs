//! One pod of a deployment with all that its program is planned from.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::addresses::{PodAddresses, Topology};
use crate::LabError;
use crate::deployment::{Deployment, Service};
use crate::error::DataPlaneError;

/// One pod of a deployment, where it is, and the folder of the environment's files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    pub deployment: &'a Deployment,
    pub topology: &'a Topology,
    pub service: &'a Service,
    pub pod: &'a PodAddresses,
    /// Holds configurations, certificates and sockets.
    pub dir: &'a Path,
}

impl<'a> Site<'a> {
    /// All pods of `deployment`, in their order.
    pub(crate) fn all(
        deployment: &'a Deployment,
        topology: &'a Topology,
        dir: &'a Path,
    ) -> impl Iterator<Item = Self> {
        let services = deployment.pods().into_iter().map(|(_, service)| service);
        let site = move |(service, pod)| Self { deployment, topology, service, pod, dir };
        services.zip(&topology.pods).map(site)
    }

    /// Where its program listens.
    pub(crate) fn listens_at(&self) -> SocketAddrV4 {
        self.listens_on(self.service.port)
    }

    /// Where its program listens on another port.
    pub(crate) fn listens_on(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.listen_ip(), port)
    }

    /// The address that its program listens on.
    pub(crate) fn listen_ip(&self) -> Ipv4Addr {
        self.topology.listen_ip(self.pod)
    }

    /// Where its program connects to call `callee`.
    ///
    /// # Errors
    /// When there is no such service.
    pub(crate) fn addresses_of(&self, callee: &str) -> Result<Vec<SocketAddrV4>, LabError> {
        self.topology.call_addresses(&self.pod.pod, callee)
    }

    /// The HTTP proxy that its program has to ask for what it calls: its Mesher.
    pub(crate) fn http_proxy(&self) -> Option<SocketAddrV4> {
        let provider = self.pod.mesher?.provider;
        Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, provider.port()))
    }

    /// A folder of the pod's own for what its program stores. Its name is short: a socket in it may have a path of at
    /// most 107 bytes.
    pub(crate) fn data_folder(&self) -> PathBuf {
        let index = self.topology.pods.iter().position(|pod| pod.pod == self.pod.pod);
        self.dir.join(format!("db{}", index.expect("the site's pod is the topology's")))
    }

    /// The site of the pod with this name.
    #[cfg(test)]
    pub(crate) fn of_pod(
        deployment: &'a Deployment,
        topology: &'a Topology,
        dir: &'a Path,
        pod: &str,
    ) -> Option<Self> {
        Self::all(deployment, topology, dir).find(|site| site.pod.pod == pod)
    }

    /// A file of the pod's own, by the end of its name.
    pub(crate) fn file(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}.{end}", self.pod.pod))
    }
}

/// Longest path of a Unix socket: `sun_path` of `sockaddr_un` without its final zero.
const LONGEST_PATH: usize = 107;

/// A socket of this name in the run's folder.
///
/// # Errors
/// When its path is too long for a socket.
pub(crate) fn socket_below(dir: &Path, name: &str) -> Result<PathBuf, DataPlaneError> {
    let path = dir.join(name);
    let length = path.as_os_str().as_bytes().len();
    if length > LONGEST_PATH {
        let limit = LONGEST_PATH;
        return Err(DataPlaneError::SocketPathTooLong { path, length, limit });
    }
    Ok(path)
}
