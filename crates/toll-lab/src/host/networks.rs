//! Makes the networks of an environment: a namespace for each pod and each node's bridge, and the links between.
//!
//! The load's pod and the first node's pods hang on the first bridge; the other bridges are linked to it. What the
//! scripts say is `network`'s and `wire`'s.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::error::HostError;
use super::isolation::Isolation;
use super::namespace::Namespace;
use super::network::{self, Port};
use super::process::Launcher;
use super::spawn::SpawnContext;
use super::timing::step;
use super::tools::Tool;
use super::{concurrent, link, wire};
use crate::Reading;
use crate::evidence::Wire;

/// A pod that has a network of its own, the load's left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// Name of the pod.
    pub(crate) pod: String,
    /// Its address.
    pub(crate) ip: Ipv4Addr,
    /// Its node, from 0 on.
    pub(crate) node: usize,
}

/// The networks of one environment.
#[derive(Debug)]
pub(crate) struct Networks {
    /// Where the load and its probes run.
    pub(crate) load: Namespace,
    /// By the name of the pod: those of the application, of node proxies and of the waypoint.
    pods: BTreeMap<String, Namespace>,
    /// In the order of the nodes.
    bridges: Vec<Bridge>,
    /// Whether what the bridges carry is counted, or why not.
    counted: Result<(), String>,
}

#[derive(Debug)]
struct Bridge {
    /// Name of its node.
    node: String,
    namespace: Namespace,
}

impl Networks {
    /// Makes the namespaces of pods and of the bridges of these nodes, and links them; none with loopback isolation.
    pub(crate) fn make(
        isolation: Isolation,
        nodes: Vec<String>,
        ends: &[End],
        launcher: &Launcher,
    ) -> Result<Option<Self>, HostError> {
        let count = 1 + ends.len() + nodes.len();
        let made = step("namespaces", || match isolation {
            Isolation::Loopback => Ok(Vec::new()),
            Isolation::Pods => Namespace::privileged(count),
            Isolation::Rootless => Namespace::rootless(count),
        });
        let mut made = made.map_err(HostError::Namespaces)?.into_iter();
        let Some(load) = made.next() else { return Ok(None) };
        let pods = ends.iter().map(|end| end.pod.clone()).zip(&mut made).collect();
        let bridges = nodes
            .into_iter()
            .zip(made)
            .map(|(node, namespace)| Bridge { node, namespace })
            .collect();
        let networks = Self { load, pods, bridges, counted: Err("nothing counts it yet".into()) };
        step("links", || networks.link(ends, launcher))?;
        step("addresses", || networks.address(ends))?;
        Ok(Some(networks))
    }

    /// The network of a pod. Node proxies (`node-1`) and the waypoint have one, too.
    pub(crate) fn pod(&self, pod: &str) -> Option<&Namespace> {
        self.pods.get(pod)
    }

    /// Makes the bridges and the pairs that link pods and bridges to them, a process for each bridge. The first
    /// one's comes first: it makes the pairs that the others hang on.
    fn link(&self, ends: &[End], launcher: &Launcher) -> Result<(), HostError> {
        let ip = Tool { launcher, program: "ip", args: &["-batch", "-"] };
        for (node, bridge) in self.bridges.iter().enumerate() {
            let ports = self.ports(node, ends);
            let script = network::switch_script(node > 0, ports.iter().map(|(port, _)| *port));
            let inherited = ports.iter().map(|(_, fd)| Arc::clone(fd)).collect();
            let context = SpawnContext { inherited, ..SpawnContext::inside(&bridge.namespace) };
            ip.run(&bridge.name(), &context, &script)?;
        }
        Ok(())
    }

    /// Who hangs on the bridge of the node with this index.
    fn ports(&self, node: usize, ends: &[End]) -> Vec<(Port, Arc<OwnedFd>)> {
        let port = |kind: fn(i32) -> Port, namespace: &Namespace| {
            let descriptor = namespace.descriptor();
            (kind(descriptor.as_raw_fd()), descriptor)
        };
        let is_first = node == 0;
        let load = is_first.then_some(&self.load);
        let pods = ends.iter().filter(|end| end.node == node).map(|end| &self.pods[&end.pod]);
        let others = self.bridges.iter().skip(1).filter(|_| is_first);
        let others = others.map(|bridge| port(Port::Bridge, &bridge.namespace));
        let pods = load.into_iter().chain(pods).map(|pod| port(Port::Pod, pod));
        pods.chain(others).collect()
    }

    /// Brings up the links inside of the pods.
    fn address(&self, ends: &[End]) -> Result<(), HostError> {
        let load = ("load", &self.load, network::LOAD_IP);
        let pods = ends.iter().map(|end| (end.pod.as_str(), &self.pods[&end.pod], end.ip));
        let all: Vec<_> = [load].into_iter().chain(pods).collect();
        let links: Vec<_> = all.iter().map(|(_, namespace, ip)| (*namespace, *ip)).collect();
        let outcomes = link::bring_up(&links).map_err(HostError::Namespaces)?;
        all.iter().zip(outcomes).try_for_each(|((pod, ..), outcome)| {
            outcome.map_err(|source| HostError::Link { pod: (*pod).to_owned(), source })
        })
    }

    /// Has each bridge count what it carries. Where the kernel's firewall does not see bridges, nothing is counted.
    pub(crate) fn count(&mut self, outside: &[Ipv4Addr], hbone_port: u16, launcher: &Launcher) {
        let script = wire::script(outside, hbone_port);
        let counted = self.on_each_bridge(&["-f", "-"], &script, launcher);
        self.counted = counted.map(|_| ());
    }

    /// What each bridge has carried since it was made. Missing where the kernel's firewall does not see bridges.
    pub(crate) fn wire(&self, launcher: &Launcher) -> Reading<Vec<Wire>> {
        self.carried(launcher).map_or_else(Reading::Missing, Reading::Value)
    }

    fn carried(&self, launcher: &Launcher) -> Result<Vec<Wire>, String> {
        self.counted.clone()?;
        let texts = self.on_each_bridge(&wire::LIST_COUNTERS, "", launcher)?;
        let read = self.bridges.iter().zip(&texts).map(|(b, text)| wire::read(&b.node, text));
        read.collect::<Option<_>>().ok_or_else(|| "nft lists no counters".to_owned())
    }

    /// What `nft` prints in the network of each bridge, as many at once as there are cores.
    fn on_each_bridge(
        &self,
        args: &[&str],
        script: &str,
        launcher: &Launcher,
    ) -> Result<Vec<String>, String> {
        let nft = Tool { launcher, program: "nft", args };
        let run = |bridge: &Bridge| {
            nft.run(&bridge.name(), &SpawnContext::inside(&bridge.namespace), script)
        };
        concurrent::for_each(&self.bridges, run).map_err(|e| e.to_string())
    }
}

impl Bridge {
    /// For errors.
    fn name(&self) -> String {
        format!("the bridge of {}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddrV4, TcpListener, TcpStream};
    use std::thread;

    use nix::unistd::geteuid;

    use super::*;

    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);

    /// The client on the first node, the server on the second.
    fn on_two_nodes(launcher: &Launcher) -> Networks {
        let end = |pod: &str, ip, node| End { pod: pod.to_owned(), ip, node };
        let ends = [end("client", CLIENT, 0), end("server", SERVER, 1)];
        let nodes = ["node-1", "node-2"].map(str::to_owned).into();
        Networks::make(Isolation::Pods, nodes, &ends, launcher).unwrap().unwrap()
    }

    /// `act` on a thread in the network, which ends with it.
    fn within<T: Send>(network: &Namespace, act: impl FnOnce() -> T + Send) -> T {
        let enter_and_act = || {
            network.enter().unwrap();
            act()
        };
        thread::scope(|scope| scope.spawn(enter_and_act).join().unwrap())
    }

    /// A connection from one pod to a port of another, and a byte over it.
    fn exchange(from: &Namespace, to: &Namespace, at: SocketAddrV4) {
        let listener = within(to, || TcpListener::bind(("0.0.0.0", at.port())).unwrap());
        let mut sender = within(from, || TcpStream::connect(at).unwrap());
        sender.write_all(b"x").unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    }

    fn packets(networks: &Networks, launcher: &Launcher) -> Vec<(String, bool, bool)> {
        let wire = networks.carried(launcher).unwrap().into_iter();
        wire.map(|w| (w.node, w.hbone_packets > 0, w.other_packets > 0)).collect()
    }

    #[test]
    fn what_goes_from_node_to_node_is_counted_on_both_bridges_by_what_it_is() {
        if !geteuid().is_root() {
            eprintln!("SKIP what_goes_from_node_to_node_is_counted_on_both_bridges: not root");
            return;
        }
        let launcher = Launcher::start().unwrap();
        let mut networks = on_two_nodes(&launcher);
        assert_eq!(networks.carried(&launcher).unwrap_err(), "nothing counts it yet");
        networks.count(&[network::LOAD_IP], 15008, &launcher);
        let counts = |hbone, other| {
            ["node-1", "node-2"].map(|node| (node.to_owned(), hbone, other)).to_vec()
        };
        let server = |port| SocketAddrV4::new(SERVER, port);
        let [from, to] = ["client", "server"].map(|pod| &networks.pods[pod]);
        exchange(&networks.load, to, server(9999));
        assert_eq!(packets(&networks, &launcher), counts(false, false), "the load stands outside");
        exchange(from, to, server(15008));
        assert_eq!(packets(&networks, &launcher), counts(true, false));
        exchange(from, to, server(9999));
        assert_eq!(packets(&networks, &launcher), counts(true, true));
    }
}
