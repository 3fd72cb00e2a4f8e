//! Turns a number of pods into addresses and into scripts for `ip -batch`. Runs nothing.
//!
//! Each pod has one veth pair: `eth0` inside, the other end on a bridge in a namespace of its own. So nothing
//! appears among the host's links.

use std::fmt::Write;
use std::net::Ipv4Addr;

/// A bridge takes 1024 ports; one is the load's.
pub(crate) const MOST_PODS: usize = 1023;

/// The load's address.
pub(crate) const LOAD_IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The address of the pod with this index in the deployment, below [`MOST_PODS`].
pub(crate) fn pod_ip(index: usize) -> Ipv4Addr {
    let host = u32::try_from(index).expect("a deployment is bounded by MOST_PODS") + 1;
    Ipv4Addr::from(u32::from(LOAD_IP) + host)
}

/// What is at the other end of a bridge's port: a network namespace, by its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// A pod.
    Pod(i32),
    /// The bridge of a node that is not the first.
    Bridge(i32),
}

/// Makes a node's bridge and, for each of its ports, the pair that links it.
///
/// A bridge that `hangs` on the first node's has its end of their pair already: the first one's script made it.
pub(crate) fn switch_script(hangs: bool, ports: impl IntoIterator<Item = Port>) -> String {
    let mut script = "link set lo up\nlink add br0 type bridge\nlink set br0 up\n".to_owned();
    if hangs {
        let _ = writeln!(script, "link set {UPLINK} master br0 up");
    }
    for port in ports {
        let (fd, far) = match port {
            Port::Pod(fd) => (fd, "eth0"),
            Port::Bridge(fd) => (fd, UPLINK),
        };
        let _ = writeln!(
            script,
            "link add v{fd} type veth peer name {far} netns /proc/self/fd/{fd}\n\
             link set v{fd} master br0 up"
        );
    }
    script
}

/// The port by which a node's bridge hangs on the first node's.
const UPLINK: &str = "uplink";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_over_into_the_third_octet() {
        assert_eq!(pod_ip(0), Ipv4Addr::new(10, 77, 0, 2));
        assert_eq!(pod_ip(254), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(pod_ip(MOST_PODS - 1), Ipv4Addr::new(10, 77, 4, 0));
    }

    #[test]
    fn each_pod_is_linked_to_the_bridge_by_its_descriptor() {
        let script = switch_script(false, [Port::Pod(7), Port::Pod(12)]);
        assert!(script.contains("link add v12 type veth peer name eth0 netns /proc/self/fd/12\n"));
        assert_eq!(script.matches("master br0").count(), 2);
    }

    #[test]
    fn a_further_bridge_hangs_on_the_first_by_one_pair() {
        let first = switch_script(false, [Port::Pod(7), Port::Bridge(9)]);
        assert!(first.contains("link add v9 type veth peer name uplink netns /proc/self/fd/9\n"));
        let further = switch_script(true, [Port::Pod(8)]);
        assert_eq!(further.matches("uplink").count(), 1);
        assert!(further.contains("link set uplink master br0 up\n"));
    }
}
