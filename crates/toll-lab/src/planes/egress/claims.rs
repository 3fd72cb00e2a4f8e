//! What a service outside of the mesh, its callers and each hop between them must show: that TLS is the application's
//! own from end to end, and that its bytes took the way that the variant claims.
//!
//! Nobody on the way can read what is inside of that TLS, so no proxy counts operations: the service counts them
//! itself, and each hop must have carried enough bytes for them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::Reading;
use crate::claim::{Claim, LeftOut, Topic};
use crate::deployment::{Egress, EgressGateway, Service};
use crate::evidence::{
    CallCounters, DatabaseSnapshot, EgressCounters, Handshake, Outsider, PathSnapshot, Plaintext,
    ProxyCounters,
};
use crate::programs::databases::{Judged, Sources, Whose, of_the_server, shares, statements};
use crate::programs::least_operation_bytes;
use crate::proof::bounds::Bounds;
use crate::proof::claims::{
    PodVerdict, at_both_ends, at_least_claim, count_claim, pods_claim, proxies_of, tls_claim,
};
use crate::proof::expected::Expected;
use crate::proof::network::sources_of;
use crate::proof::outsider::{CLOSED, outcome_text};
use crate::proof::window::Window;
use crate::topology::{Capture, Topology};

/// No record of TLS 1.3 is shorter beside what it holds: header, type and tag (RFC 8446, 5.2).
const LEAST_OF_A_RECORD: u64 = 5 + 1 + 16;

/// Digits of a fingerprint that claims show.
const SHOWN: usize = 16;

/// Judges a service outside of the mesh, and all ways to it. `outsider` tells what became of probes from outside of the
/// mesh; none where there is no mesh.
pub(in crate::planes) fn judge<'a>(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    topology: &Topology,
    outsider: Option<&Outsider>,
    database: &'a Service,
) -> Judged<'a> {
    let outside = Outside { seen, expected, topology, outsider, service: database };
    let (end_to_end, unseen) = outside.end_to_end();
    let (hops, mesh_tls) = (outside.hop_claims(), outside.mesh_tls_claims());
    let (addresses, whose) = outside.sources();
    let peers = Sources { addresses, whose }.claims(seen, expected, database);
    let mut judged = of_the_server(seen, expected, database);
    if seen.deployment.data_plane.has_sidecars() && !seen.deployment.passes_by(&database.name) {
        if hops.iter().chain(&peers).all(|claim| claim.holds) {
            let ran = statements(seen, &database.name).unwrap_or_default();
            judged.from = shares(seen, &database.name, ran.values().sum());
        }
        judged.left_out.push(LeftOut::OperationsByProxies { service: database.name.clone() });
    }
    // First what a report shows first.
    judged.claims = [end_to_end, hops, judged.claims, mesh_tls, peers].concat();
    judged.left_out.extend(unseen);
    judged
}

/// A service outside of the mesh, and what was seen of the ways to it.
struct Outside<'a> {
    seen: &'a Window<'a>,
    expected: &'a Expected<'a>,
    topology: &'a Topology,
    outsider: Option<&'a Outsider>,
    service: &'a Service,
}

impl<'a> Outside<'a> {
    /// That the TLS which the callers speak ends at the service, and why some of it cannot be judged.
    fn end_to_end(&self) -> (Vec<Claim>, Option<LeftOut>) {
        let mut claims = at_both_ends(self.seen, |snapshot| vec![self.server_claim(snapshot)]);
        match self.clients_claim() {
            Ok(claim) => claims.push(claim),
            Err(why) => return (claims, Some(why)),
        }
        (claims, None)
    }

    /// That its bytes went through each hop of the variant's way, and through no other.
    fn hop_claims(&self) -> Vec<Claim> {
        match self.seen.deployment.data_plane.egress() {
            None => Vec::new(),
            Some(Egress::Bypass) => vec![self.passed_by()],
            Some(Egress::Sidecar) => {
                let through = self.asking().filter_map(|caller| self.through_claim(caller));
                [self.sidecar_claims(), through.collect(), vec![self.known_only()]].concat()
            }
            Some(Egress::Gateway(gateway)) => {
                [self.sidecar_claims(), self.gateway_claims(gateway), vec![self.known_only()]]
                    .concat()
            }
        }
    }

    /// That proxies speak mTLS to each other where the variant says so, and no TLS of their own elsewhere.
    fn mesh_tls_claims(&self) -> Vec<Claim> {
        match self.seen.deployment.data_plane.egress() {
            None | Some(Egress::Bypass) => Vec::new(),
            Some(Egress::Gateway(EgressGateway { mtls: true, .. })) => {
                let mut claims: Vec<Claim> =
                    self.asking().map(|caller| self.mtls_claim(caller)).collect();
                claims.extend([self.certified_claim(), self.refusal_claim()]);
                claims.push(self.untouched_claim("egress gateway", &self.gateway_pods()));
                claims
            }
            Some(egress) => {
                let by_sidecar = |caller: &Service| {
                    let pods = self.seen.pods_of(&caller.name);
                    self.untouched_claim(&proxies_of(caller), &pods)
                };
                let mut claims: Vec<Claim> = self.asking().map(by_sidecar).collect();
                if matches!(egress, Egress::Gateway(_)) {
                    claims.push(self.untouched_claim("egress gateway", &self.gateway_pods()));
                }
                claims
            }
        }
    }

    /// Where its connections must come from, and whose addresses those are.
    fn sources(&self) -> (Vec<Ipv4Addr>, Whose) {
        if self.seen.deployment.data_plane.egress_gateway().is_some() {
            let gateway = self.topology.egress.iter().map(|egress| egress.ip);
            return (gateway.collect(), Whose::EgressGateway);
        }
        let own = |caller: &Service| sources_of(Some(&caller.name), self.topology);
        (self.callers().flat_map(own).collect(), Whose::Caller)
    }

    /// The services that call it, in the order of the deployment.
    fn callers(&self) -> impl Iterator<Item = &'a Service> {
        self.seen.deployment.callers_of(&self.service.name)
    }

    /// Those that the window's requests make call it.
    fn asking(&self) -> impl Iterator<Item = &'a Service> {
        self.callers().filter(|caller| self.operations(caller) > 0)
    }

    fn operations(&self, caller: &Service) -> u64 {
        self.expected.calls(caller, &self.service.name).least
    }

    /// Whoever terminated TLS on the way would have to show a certificate of its own.
    fn server_claim(&self, snapshot: &PathSnapshot) -> Claim {
        let name = &self.service.name;
        let issued = self.seen.issued.and_then(|issued| issued.servers.get(name));
        let pods = self.callers().flat_map(|caller| self.seen.pods_of(&caller.name));
        let met = |pod: String| {
            let tried = snapshot.handshakes.get(&pod).and_then(|tried| tried.get(name));
            let holds = matches!((tried, issued), (Some(Handshake::Established { server }), Some(issued)) if server == issued);
            PodVerdict { holds, seen: handshake_text(tried), pod }
        };
        let claim = format!("{name}: TLS is end to end: its callers meet its own certificate");
        let expected = issued.map_or("no certificate was issued".to_owned(), |is| shown(is));
        pods_claim(claim, expected, &pods.map(met).collect::<Vec<_>>()).about(Topic::EndToEnd)
    }

    /// The same from its side: it saw the certificates of its callers, and of nobody else. Of the lab it may have.
    fn clients_claim(&self) -> Result<Claim, LeftOut> {
        let name = &self.service.name;
        let sessions = self.sessions()?;
        let callers: Vec<&str> = self.asking().map(|caller| caller.name.as_str()).collect();
        let named: Vec<(Option<&str>, &String, u64)> = sessions
            .iter()
            .flatten()
            .map(|(print, count)| (self.holder(print), print, *count))
            .collect();
        let saw = |caller: &&str| named.iter().any(|(holder, ..)| *holder == Some(*caller));
        let known = named.iter().all(|(holder, ..)| holder.is_some());
        let text = |(holder, print, count): &(Option<&str>, &String, u64)| {
            let unknown = || format!("unknown {}", shown(print));
            format!("{} ({count})", holder.map_or_else(unknown, str::to_owned))
        };
        let texts: Vec<String> = named.iter().map(text).collect();
        Ok(Claim {
            topic: Topic::EndToEnd,
            claim: format!("{name}: TLS is end to end: it saw its callers' own certificates"),
            expected: format!("{}, and nobody's but theirs", callers.join(", ")),
            seen: match (&sessions, texts.as_slice()) {
                (None, _) => "not asked".to_owned(),
                (Some(_), []) => "none".to_owned(),
                (Some(_), texts) => texts.join(", "),
            },
            holds: sessions.is_some() && known && callers.iter().all(saw),
        })
    }

    /// Sessions by certificate, of all its pods, since they started; none when it was not asked.
    fn sessions(&self) -> Result<Option<BTreeMap<String, u64>>, LeftOut> {
        let name = &self.service.name;
        let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
        for pod in self.seen.pods_of(name) {
            let snapshot = self.seen.after.databases.get(&pod);
            match snapshot.and_then(|snapshot| snapshot.clients.as_ref()) {
                None => return Ok(None),
                Some(Reading::Missing(why)) => {
                    let (service, why) = (name.clone(), why.clone());
                    return Err(LeftOut::ClientCertificates { service, why });
                }
                Some(Reading::Value(clients)) => {
                    for (print, count) in clients {
                        *sessions.entry(print.clone()).or_default() += count;
                    }
                }
            }
        }
        Ok(Some(sessions))
    }

    /// Whose certificate it is.
    fn holder(&self, print: &str) -> Option<&'a str> {
        let mut issued = self.seen.issued?.clients.iter();
        issued.find(|(_, issued)| *issued == print).map(|(holder, _)| holder.as_str())
    }

    /// Past the sidecars: neither as a service that they know nor as an address that they do not.
    fn passed_by(&self) -> Claim {
        let name = &self.service.name;
        let claim = format!("{name}: its bytes went past every sidecar");
        let claim = self.sidecars_claim(claim, |pod| {
            let known = self.seen.after.counters.get(pod)?.call(name);
            let unknown = self.passed_through(pod)?;
            Some(Load {
                connections: known.connections + unknown.connections,
                bytes: known.sent_bytes + unknown.bytes,
            })
        });
        claim.about(Topic::Bypass)
    }

    /// Else what a sidecar counts for the service need not be all of it.
    fn known_only(&self) -> Claim {
        let name = &self.service.name;
        let claim = format!("{name}: its callers' sidecars sent nothing to unknown addresses");
        self.sidecars_claim(claim, |pod| self.passed_through(pod))
    }

    /// What a sidecar passed on to addresses that the mesh does not know.
    fn passed_through(&self, pod: &str) -> Option<Load> {
        let rose = |pick: fn(CallCounters) -> u64| {
            self.seen.pod_growth(pod, |counters| pick(counters.passthrough))
        };
        Some(Load { connections: rose(|c| c.connections)?, bytes: rose(|c| c.sent_bytes)? })
    }

    /// That the sidecar of no calling pod carried anything.
    fn sidecars_claim(&self, claim: String, carried: impl Fn(&str) -> Option<Load>) -> Claim {
        let pods = self.callers().flat_map(|caller| self.seen.pods_of(&caller.name));
        let judged = |pod: String| {
            let load = carried(&pod);
            let nothing = load.as_ref().is_some_and(|l| l.connections == 0 && l.bytes == 0);
            let seen = load.map_or("no counters".to_owned(), |load| load.text());
            PodVerdict { pod, seen, holds: nothing }
        };
        let nothing = Load { connections: 0, bytes: 0 };
        pods_claim(claim, nothing.text(), &pods.map(judged).collect::<Vec<_>>())
    }

    /// Bytes out of the sidecars of each service that had to ask it.
    fn sidecar_claims(&self) -> Vec<Claim> {
        let name = &self.service.name;
        let claim = |caller: &Service| {
            let sent = self.seen.growth(&caller.name, |c| c.call(name).sent_bytes);
            let proxies = proxies_of(caller);
            let claim = format!("{proxies}, outbound: enough bytes for every operation of {name}");
            at_least_claim(claim, self.operations(caller) * self.least_bytes(), sent)
        };
        self.asking().map(claim).collect()
    }

    /// Bytes can be enough though some connections slip past the sidecar, whose source address is theirs, too. Those
    /// open at the look before the window cannot be more than it made up to the end and had not closed before.
    /// On the loopback interface all sources are alike.
    fn through_claim(&self, caller: &Service) -> Option<Claim> {
        let Capture::Transparent(_) = self.topology.capture else {
            return None;
        };
        let (name, proxies) = (&self.service.name, proxies_of(caller));
        let own = sources_of(Some(&caller.name), self.topology).into_iter();
        let own: Vec<IpAddr> = own.map(IpAddr::V4).collect();
        let from = |snapshot: &DatabaseSnapshot| {
            let peers = snapshot.peers.iter().filter(|(peer, _)| own.contains(peer));
            peers.map(|(_, count)| count).sum::<u64>()
        };
        let looked = self.seen.pods_of(name).into_iter();
        let open: Option<u64> =
            looked.map(|pod| self.seen.before.databases.get(&pod).map(from)).sum();
        let held = |pod: String| {
            let of = |snapshot: &PathSnapshot| Some(snapshot.counters.get(&pod)?.call(name));
            let (before, after) = (of(self.seen.before)?, of(self.seen.after)?);
            Some(after.connections.saturating_sub(before.closed_connections))
        };
        let held: Option<u64> = self.seen.pods_of(&caller.name).into_iter().map(held).sum();
        let none = || "none read".to_owned();
        Some(Claim {
            topic: Topic::Other,
            claim: format!(
                "{proxies}, outbound: as many connections as {name} had open went through"
            ),
            expected: open
                .map_or_else(none, |open| format!("at least {open}, from {}", caller.name)),
            seen: held.map_or_else(none, |held| held.to_string()),
            holds: open.zip(held).is_some_and(|(open, held)| held >= open),
        })
    }

    /// Bytes into the egress gateway and out of it; connections to its SNI proxy.
    fn gateway_claims(&self, gateway: &EgressGateway) -> Vec<Claim> {
        let name = &self.service.name;
        let pods = self.gateway_pods();
        let operations: u64 = self.callers().map(|caller| self.operations(caller)).sum();
        let least = operations * self.least_bytes();
        let claim = |way: &str| {
            format!("egress gateway, {way}: enough bytes for every operation of {name}")
        };
        let came = self.seen.growth_in(&pods, |c| c.egress.received_bytes);
        let went = self.seen.growth_in(&pods, |c| c.call(name).sent_bytes);
        let mut claims = vec![
            at_least_claim(claim("inbound"), least, came),
            at_least_claim(claim("outbound"), least, went),
        ];
        claims.extend(gateway.sni_proxy.then(|| self.sni_claim(&pods)));
        claims
    }

    /// Judged since the start, as connections are older than the window.
    fn sni_claim(&self, gateway: &[String]) -> Claim {
        let name = &self.service.name;
        let to = |pick: fn(CallCounters) -> u64| {
            self.seen.total_in(gateway, |counters| pick(counters.call(name)))
        };
        let made = to(|c| c.connections).saturating_sub(to(|c| c.failed_connections));
        let claim = format!("SNI proxy: it took every connection of the egress gateway for {name}");
        at_least_claim(claim, made.max(1), self.seen.after.sni_accepted).about(Topic::SniProxy)
    }

    /// The sidecar's cluster demands the gateway's SPIFFE ID: whoever has another fails the handshake.
    fn mtls_claim(&self, caller: &Service) -> Claim {
        let (name, from) = (&self.service.name, &caller.name);
        let claim = format!("{from} to the egress gateway: every connection is mTLS");
        tls_claim(self.seen, &self.seen.pods_of(from), claim, |c| c.call(name))
    }

    /// The gateway demands a certificate of the mesh.
    fn certified_claim(&self) -> Claim {
        let total =
            |pick: fn(&ProxyCounters) -> u64| self.seen.total_in(&self.gateway_pods(), pick);
        let (came, certified) = (total(|c| c.egress.connections), total(|c| c.egress.handshakes));
        let refused = total(|c| {
            let EgressCounters { no_certificate, wrong_identity, broken, .. } = c.egress;
            no_certificate + wrong_identity + broken
        });
        Claim {
            topic: Topic::Other,
            claim: "egress gateway, inbound: every connection showed an identity of the mesh"
                .to_owned(),
            expected: "at least one handshake, and no connection without one".to_owned(),
            seen: format!("{certified} handshakes on {came} connections, {refused} refused"),
            holds: certified >= 1 && certified + refused >= came,
        }
    }

    /// A connection can be closed for many a reason; the gateway's counter tells for which.
    fn refusal_claim(&self) -> Claim {
        let outcome = self.outsider.and_then(|outsider| outsider.egress.as_ref());
        let refused = self.seen.total_in(&self.gateway_pods(), |c| c.egress.no_certificate);
        Claim {
            topic: Topic::Identity,
            claim: "egress gateway: it refuses a client without an identity of the mesh".to_owned(),
            expected: format!("{CLOSED}, counted as one without a certificate"),
            seen: format!("{}, {refused} counted", outcome_text(outcome)),
            holds: outcome == Some(&Plaintext::Closed) && refused >= 1,
        }
    }

    /// A proxy that speaks TLS to the service has a session of its own, and reads what it passes on.
    fn untouched_claim(&self, proxies: &str, pods: &[String]) -> Claim {
        let name = &self.service.name;
        let claim = format!("{proxies}, outbound: no TLS of its own to {name}");
        let read =
            !pods.is_empty() && pods.iter().all(|pod| self.seen.after.counters.contains_key(pod));
        let own = read.then(|| self.seen.total_in(pods, |c| c.call(name).handshakes));
        count_claim(claim, Bounds::exactly(0), own)
    }

    fn gateway_pods(&self) -> Vec<String> {
        self.topology.egress.iter().map(|egress| egress.pod.clone()).collect()
    }

    /// Bytes without which no operation can be asked for.
    fn least_bytes(&self) -> u64 {
        LEAST_OF_A_RECORD + least_operation_bytes(&self.service.program)
    }
}

/// What a sidecar carried.
struct Load {
    connections: u64,
    bytes: u64,
}

impl Load {
    fn text(&self) -> String {
        format!("{} connections, {} bytes", self.connections, self.bytes)
    }
}

fn handshake_text(tried: Option<&Handshake>) -> String {
    match tried {
        Some(Handshake::Established { server }) => shown(server),
        Some(Handshake::Failed(why)) => format!("no TLS: {why}"),
        None => "not tried".to_owned(),
    }
}

/// The first digits of a fingerprint.
fn shown(print: &str) -> String {
    let first: String = print.chars().take(SHOWN).collect();
    format!("SHA-256 {first}...")
}
