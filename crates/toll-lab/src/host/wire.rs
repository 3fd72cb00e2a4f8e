//! Turns the addresses of those outside of the mesh into the firewall table that counts what a node's bridge
//! carries, for `nft -f -` where the bridge is, and its counters back into a [`Wire`].
//!
//! It lets everything pass and is the same in all variants: what it costs, it costs all of them. The counters say
//! what no proxy can talk over. Syntax: nft(8), bridge family.

use std::net::Ipv4Addr;

use serde::Deserialize;

use crate::evidence::Wire;

/// Arguments of `nft` that list the counters of the table as JSON.
pub(super) const LIST_COUNTERS: [&str; 6] =
    ["-j", "list", "counters", "table", "bridge", "toll_wire"];

/// The script of the table. Packets to or from `outside`, the load and the collector, count by themselves, and so do
/// those to or from the port of HBONE.
pub(super) fn script(outside: &[Ipv4Addr], hbone_port: u16) -> String {
    let outside: Vec<String> = outside.iter().map(Ipv4Addr::to_string).collect();
    let outside = outside.join(", ");
    format!(
        "\
table bridge toll_wire {{
  counter outside {{ }}
  counter hbone {{ }}
  counter other {{ }}
  chain forward {{
    type filter hook forward priority 0; policy accept;
    meta l4proto != tcp accept
    ip saddr {{ {outside} }} counter name outside accept
    ip daddr {{ {outside} }} counter name outside accept
    tcp sport {hbone_port} counter name hbone accept
    tcp dport {hbone_port} counter name hbone accept
    meta l4proto tcp counter name other
  }}
}}
"
    )
}

/// What the counters of `node`'s table say; none in an unknown form.
pub(super) fn read(node: &str, json: &str) -> Option<Wire> {
    let listed: Listed = serde_json::from_str(json).ok()?;
    let packets = |name: &str| {
        let mut counters = listed.nftables.iter().filter_map(|object| object.counter.as_ref());
        counters.find(|counter| counter.name == name).map(|counter| counter.packets)
    };
    Some(Wire {
        node: node.to_owned(),
        hbone_packets: packets("hbone")?,
        other_packets: packets("other")?,
    })
}

/// libnftables-json(5).
#[derive(Debug, Deserialize)]
struct Listed {
    nftables: Vec<Object>,
}

/// Other objects than counters, as `metainfo`, have none.
#[derive(Debug, Deserialize)]
struct Object {
    counter: Option<Counter>,
}

#[derive(Debug, Deserialize)]
struct Counter {
    name: String,
    packets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nft 1.0.6 prints it.
    const LISTED: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"counter": {"family": "bridge", "name": "outside", "table": "toll_wire", "handle": 2, "packets": 9, "bytes": 600}},
        {"counter": {"family": "bridge", "name": "hbone", "table": "toll_wire", "handle": 3, "packets": 7, "bytes": 500}},
        {"counter": {"family": "bridge", "name": "other", "table": "toll_wire", "handle": 4, "packets": 0, "bytes": 0}}]}"#;

    #[test]
    fn counters_are_read_by_their_names() {
        let wire = read("node-2", LISTED).unwrap();
        let expected = Wire { node: "node-2".into(), hbone_packets: 7, other_packets: 0 };
        assert_eq!(wire, expected);
    }

    #[test]
    fn a_counter_that_is_not_listed_is_not_zero() {
        assert_eq!(read("node-1", &LISTED.replace("hbone", "honey")), None);
        assert_eq!(read("node-1", ""), None);
    }

    #[test]
    fn the_load_is_counted_apart_before_anything_else_is() {
        let script = script(&[Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 9)], 15008);
        let outside = script.find("ip saddr { 10.77.0.1, 10.77.0.9 } counter name outside accept");
        let hbone = script.find("tcp sport 15008 counter name hbone accept");
        assert!(outside.unwrap() < hbone.unwrap(), "{script}");
    }
}
