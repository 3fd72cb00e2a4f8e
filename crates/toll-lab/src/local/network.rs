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

/// The address of the pod with this place in the deployment, below [`MOST_PODS`].
pub(crate) fn pod_ip(index: usize) -> Ipv4Addr {
    let host = u32::try_from(index).expect("a deployment is bounded by MOST_PODS") + 1;
    Ipv4Addr::from(u32::from(LOAD_IP) + host)
}

/// Makes the bridge and, for each descriptor of a pod's network namespace, the pair that links it.
pub(crate) fn switch_script(pods: &[i32]) -> String {
    let mut script = "link set lo up\nlink add br0 type bridge\nlink set br0 up\n".to_owned();
    for fd in pods {
        let _ = writeln!(
            script,
            "link add v{fd} type veth peer name eth0 netns /proc/self/fd/{fd}\n\
             link set v{fd} master br0 up"
        );
    }
    script
}

/// Brings up the links of a pod.
pub(crate) fn pod_script(ip: Ipv4Addr) -> String {
    format!("link set lo up\naddr add {ip}/16 dev eth0\nlink set eth0 up\n")
}

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
        let script = switch_script(&[7, 12]);
        assert!(script.contains("link add v12 type veth peer name eth0 netns /proc/self/fd/12\n"));
        assert_eq!(script.matches("master br0").count(), 2);
    }
}
