//! Turns "whose traffic passes" into the firewall script of a pod, for `nft -f -` inside its namespace.
//!
//! It captures what istio-init captures: see
//! <https://istio.io/latest/docs/ops/deployment/application-requirements/>.

use std::net::Ipv4Addr;

use crate::topology::{Bypass, HBONE_PORT, INBOUND_PORT, OUTBOUND_PORT, PROXY_MARK};

/// Name of the table that toll owns inside a pod.
const TABLE: &str = "toll_redirect";

/// That of destination NAT; nft 1.0.6 takes its name `dstnat` in prerouting only.
const PRIORITY: i32 = -100;

/// What passes the sidecar of a pod by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Excluded {
    /// What comes in at this port, as with Istio's annotation `excludeInboundPorts`.
    pub(super) port: Option<u16>,
    /// What is sent to these addresses, as with Istio's annotation `excludeOutboundIPRanges`.
    pub(super) addresses: Vec<Ipv4Addr>,
}

impl From<Option<u16>> for Excluded {
    fn from(port: Option<u16>) -> Self {
        Self { port, addresses: Vec::new() }
    }
}

/// The script that sends a pod's TCP through its sidecar, but for what is excluded.
///
/// Connections that were made before it is loaded keep their way (conntrack remembers it): load it before
/// anything listens or calls.
pub(super) fn script(bypass: Bypass, excluded: impl Into<Excluded>) -> String {
    let Excluded { port, addresses } = excluded.into();
    let own = match bypass {
        Bypass::Uid(uid) => format!("meta skuid {uid}"),
        Bypass::Mark(mark) => format!("meta mark {mark:#x}"),
    };
    let port = port.map(|port| format!("\n    tcp dport {port} return")).unwrap_or_default();
    let addresses: String =
        addresses.iter().map(|ip| format!("    ip daddr {ip} return\n")).collect();
    // nft 1.0.6 wants `meta l4proto tcp` in the very rule that redirects.
    format!(
        "\
table ip {TABLE} {{
  chain output {{
    type nat hook output priority {PRIORITY}; policy accept;
    # What the sidecar itself sends.
    {own} return
    # What the application sends to itself.
    oifname \"lo\" return
    ip daddr 127.0.0.0/8 return
{addresses}    meta l4proto tcp redirect to :{OUTBOUND_PORT}
  }}
  chain prerouting {{
    type nat hook prerouting priority {PRIORITY}; policy accept;{port}
    meta l4proto tcp redirect to :{INBOUND_PORT}
  }}
}}
"
    )
}

/// The script that sends a pod's TCP through the proxy of its node, whose sockets are in the pod's network and bear
/// its mark: the rules that istio-cni writes,
/// <https://istio.io/latest/docs/ambient/architecture/traffic-redirection/>.
///
/// HBONE comes in as it is. All else goes to a port where nothing listens unless plaintext is let in, so that it is
/// refused. `excluded` passes the proxy by.
pub(super) fn ambient_script(excluded: Option<u16>) -> String {
    let excluded =
        excluded.map(|port| format!("\n    tcp dport {port} return")).unwrap_or_default();
    format!(
        "\
table ip {TABLE} {{
  chain output {{
    type nat hook output priority {PRIORITY}; policy accept;
    # What the node's proxy itself sends.
    meta mark {PROXY_MARK:#x} return
    # What the application sends to itself.
    oifname \"lo\" return
    ip daddr 127.0.0.0/8 return
    meta l4proto tcp redirect to :{OUTBOUND_PORT}
  }}
  chain prerouting {{
    type nat hook prerouting priority {PRIORITY}; policy accept;
    # What the node's proxy hands to the application, and what that sends to itself.
    iifname \"lo\" return
    tcp dport {HBONE_PORT} return{excluded}
    meta l4proto tcp redirect to :{INBOUND_PORT}
  }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_sidecar_is_known_by_its_uid() {
        insta::assert_snapshot!(script(Bypass::Uid(1337), None));
    }

    #[test]
    fn a_port_can_be_reached_without_the_sidecar() {
        insta::assert_snapshot!(script(Bypass::Uid(1337), Some(9080)));
    }

    fn past_the_sidecar() -> Excluded {
        Excluded { port: None, addresses: vec![Ipv4Addr::new(10, 77, 0, 6)] }
    }

    #[test]
    fn an_external_address_can_be_reached_without_the_sidecar() {
        insta::assert_snapshot!(script(Bypass::Uid(1337), past_the_sidecar()));
    }

    #[test]
    fn the_sidecar_is_known_by_its_mark() {
        insta::assert_snapshot!(script(Bypass::Mark(0x539), None));
    }

    #[test]
    fn a_nodes_proxy_is_known_by_its_mark_and_hbone_comes_in_as_it_is() {
        insta::assert_snapshot!(ambient_script(Some(9080)));
    }

    #[test]
    fn the_kernel_takes_all_scripts() {
        let possible = in_a_new_network(&["nft", "list", "ruleset"], "");
        if let Err(why) = possible {
            eprintln!("SKIP the_kernel_takes_all_scripts: {why}");
            return;
        }
        for bypass in [Bypass::Uid(0), Bypass::Mark(0x539)] {
            in_a_new_network(&["nft", "-f", "-"], &script(bypass, Some(9080))).unwrap();
            in_a_new_network(&["nft", "-f", "-"], &script(bypass, past_the_sidecar())).unwrap();
        }
        in_a_new_network(&["nft", "-f", "-"], &ambient_script(Some(9080))).unwrap();
    }

    /// Runs a command in a user and network namespace of its own; an error is what it printed.
    fn in_a_new_network(command: &[&str], stdin: &str) -> Result<(), String> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--net"]).args(command);
        unshare.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        unshare.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = unshare.spawn().map_err(|error| error.to_string())?;
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).map_err(|e| e.to_string())?;
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }
}
