//! The pod that traffic leaves the mesh through: starts the SNI proxy beside its gateway, reads what that has
//! counted, and tries how the gateway takes somebody from outside of the mesh.

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::environment::{LocalEnvironment, Program};
use super::place::User;
use super::probe::{Acquaintance, greet};
use super::sight::plaintext;
use crate::data_plane::external::externals;
use crate::data_plane::{
    Plaintext, SniProxyPlan, Topology, gateway_sni, known_as, sni_proxy_plan, stub_status,
};
use crate::deployment::Deployment;
use crate::parts::stream_module;
use crate::{Component, LabError, Role};

/// The SNI proxy of `deployment`, if it has one, for this nginx; for an example of one where none was found.
pub(super) fn sni_proxy(
    deployment: &Deployment,
    topology: &Topology,
    nginx: Option<&Path>,
    folder: &Path,
) -> Result<Option<SniProxyPlan>, LabError> {
    // One that is not there, or lacks it, is refused before anything starts.
    let module = nginx.and_then(|nginx| stream_module(nginx).ok().flatten());
    Ok(sni_proxy_plan(deployment, topology, module.as_deref(), folder)?)
}

impl LocalEnvironment {
    pub(super) fn start_sni_proxy(&mut self) -> Result<(), LabError> {
        let nginx = self.options.nginx.as_deref();
        let plan = sni_proxy(&self.deployment, &self.topology, nginx, &self.folder)?;
        let Some(plan) = plan else { return Ok(()) };
        let path = self.options.nginx.clone().ok_or(LabError::NginxMissing)?;
        let config = self.folder.join(&plan.config_name);
        fs::create_dir_all(&plan.folder)
            .map_err(|source| LabError::Write { path: plan.folder.clone(), source })?;
        fs::write(&config, &plan.config)
            .map_err(|source| LabError::Write { path: config.clone(), source })?;
        let mut command = Command::new(&path);
        command.args(&plan.args);
        let component = Component { role: Role::SniProxy, pod: plan.pod };
        self.sni_status = Some(plan.status_socket);
        self.start(Program { component, command, path, user: User::Caller, inherited: vec![] })
    }

    /// Where the SNI proxy listens, in a deployment that has one.
    pub(super) fn sni_port(&self) -> Option<u16> {
        self.topology.egress.as_ref().map(|egress| egress.sni_port)
    }

    /// Connections that the SNI proxy has accepted since it started; none where there is none.
    pub(super) fn sni_accepted(&self) -> Result<Option<u64>, LabError> {
        let socket: Option<&PathBuf> = self.sni_status.as_ref();
        Ok(socket.map(|socket| stub_status::accepted(socket)).transpose()?)
    }

    /// What becomes of TLS without a certificate that comes to the gateway from outside of the mesh, by the name
    /// that sidecars ask it for; none where it takes no mTLS.
    pub(super) fn outside_of_egress(&self) -> Result<Option<Plaintext>, LabError> {
        let gateway = self.deployment.data_plane.egress_gateway().filter(|gateway| gateway.mtls);
        let external = externals(&self.deployment).next();
        let (Some(_), Some(at), Some((service, external))) =
            (gateway, &self.topology.egress, external)
        else {
            return Ok(None);
        };
        let host = known_as(external, self.topology.capture);
        let with = Acquaintance {
            server_name: &gateway_sni(service.port, host),
            // It shows a certificate of the mesh, to those who have one.
            authority: None,
            certificate: None,
            protocol: None,
        };
        let (program, place) = (&self.options.service, self.load_place());
        let target = SocketAddrV4::new(at.ip, at.port);
        let answer = greet(&self.launcher, program, &place, target, &with)?;
        Ok(Some(plaintext(&answer)))
    }
}
