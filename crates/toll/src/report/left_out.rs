//! Puts what a proof could not claim into words.

use crate::analysis::findings::LeftOut;

/// Fits behind `left out of the proof: `.
pub(super) fn left_out(what: &LeftOut) -> String {
    match what {
        LeftOut::Arrival { caller, service } => {
            let caller = caller.as_deref().unwrap_or("load");
            format!("{caller} to {service}: a program of the user's own does not report how requests reach it")
        }
        LeftOut::EachPod { service } => {
            format!("{service}: its pods were not asked one by one for what they have counted")
        }
        LeftOut::Shares { service } => format!(
            "that each pod of {service} got requests: the cluster gives each connection to one of them"
        ),
        LeftOut::Crossings { database } => format!(
            "how many sidecars each request crossed: a program of the user's own asks {database} as often as it likes"
        ),
        LeftOut::NoCrossing => {
            "that no request crossed a sidecar, a claim that needs a service that reports its requests".into()
        }
        LeftOut::Queries { database, program } => format!(
            "the queries of {database}: how many {program} makes, a program of the user's own, is not known"
        ),
        LeftOut::QueriesBySidecars { database } => format!(
            "a count of queries by the sidecars on the way to {database}: they pass bytes on unread, so that the statements that it ran stand for them, given that its connections are those of its sidecar"
        ),
        LeftOut::OperationsByProxies { service } => format!(
            "a count of operations by the proxies on the way to {service}: they pass its TLS on unread, so that the operations that it ran stand for them, given that enough bytes went through each"
        ),
        LeftOut::Rows { database } => {
            format!("the rows of {database}: the study does not say how to count them")
        }
        LeftOut::ClientCertificates { service, why } => {
            format!("which certificates {service} saw its callers show: {why}")
        }
        LeftOut::Hbone => "that HBONE crossed a node's wire: no service calls another".into(),
        LeftOut::NoHbone { why } => format!("that no HBONE crossed a node's wire: {why}"),
        LeftOut::MissingSpans { missing, refused } => missing_spans(*missing, *refused),
        LeftOut::SpanCounts => {
            "how many spans each request leaves, and whose children they are: the load does not say how many there should be".into()
        }
        LeftOut::SpanParents { service, caller } => format!(
            "whose children the spans are: {service} is called by {caller}, which leaves no spans"
        ),
        LeftOut::FurtherAgents => {
            "a further agent that no option names, for instance one in a file of options: the one that is measured has loaded what would give it away".into()
        }
        LeftOut::NoJvm { pod } => format!("an agent in {pod}: it runs no JVM"),
        LeftOut::SharedNetwork => {
            "all pods share the machine's network, so that neither the programs nor the firewall rules in it can be held against one pod".into()
        }
        LeftOut::SharedAddress => {
            "all pods share the machine's network, so that the address which a connection comes from does not tell whose it is".into()
        }
    }
}

fn missing_spans(missing: u64, refused: u64) -> String {
    let refused = match refused {
        0 => String::new(),
        _ => format!(", or they are among {refused} things that the collector could not take"),
    };
    format!(
        "why {missing} spans are missing: the agents dropped them or still had them on their way{refused}, or requests that failed never made them"
    )
}
