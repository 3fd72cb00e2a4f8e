//! Findings of a made-up study of the way out of the mesh: who pays, who is compared with whom, what is said of it.

use super::super::findings;
use super::super::findings::{
    Artifact, Caveat, DatabaseServer, Fact, Findings, LeftOut, LoadFindings, LoadNames, Metric,
    Payer, PodRow, ResourceGroup, Role, VariantRounds,
};
use super::picked;
use crate::analysis::fixture::replicas::ambient_replicas;
use crate::analysis::fixture::staircase::{Shape, Truth, run};
use crate::analysis::fixture::{each_arm, without};
use crate::store::RunRecord;

/// A run in which nothing scatters.
fn exact() -> RunRecord {
    run(&Shape { scatter: 0.0, ..Shape::SMALL })
}

/// So many steps that nobody wants to read all their names, with latencies enough for their percentiles.
const LONG: Shape<'static> =
    Shape { steps: &[1, 5, 10, 20, 30], latencies: 500, scatter: 0.0, ..Shape::SMALL };

fn step<'a>(of: &'a Findings, name: &str) -> &'a LoadFindings {
    of.loads.iter().find(|load| load.name == name).expect("the step was run")
}

/// Loads of which variants have few rounds.
fn few_rounds(of: &Findings) -> (&[LoadNames], &[VariantRounds]) {
    let few = picked(of, |caveat| match caveat {
        Caveat::FewRounds { loads, variants, .. } => Some((loads.as_slice(), variants.as_slice())),
        _ => None,
    });
    *few.first().unwrap()
}

fn stands_in(of: &Findings) -> bool {
    of.caveats.iter().any(|caveat| matches!(caveat, Caveat::StandIn { .. }))
}

mod comparisons {
    use super::*;

    #[test]
    fn under_each_step_a_variant_is_held_against_the_one_before_it() {
        let found = findings(&exact());
        let mut pairs: Vec<(&str, &str)> = step(&found, "clients-20")
            .between
            .iter()
            .map(|e| (e.variant.as_str(), e.against.as_deref().unwrap()))
            .collect();
        pairs.dedup();
        let expected =
            [("gateway", "sidecar"), ("gateway-mtls", "gateway"), ("gateway-sni", "gateway-mtls")];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn the_data_plane_alone_is_compared_where_there_is_one() {
        let found = findings(&exact());
        let load = step(&found, "clients-20");
        let of_mesh = |variant: &str| {
            let mut effects = load.effects.iter().filter(|e| e.variant == variant);
            effects.find(|e| e.metric == Metric::MeshCpuPerRequest)
        };
        let sidecar = of_mesh("sidecar").unwrap();
        assert!((sidecar.difference.value - 60.0).abs() < 0.1, "{sidecar:?}");
        assert!((sidecar.ratio.value - 1.25).abs() < 0.001, "{sidecar:?}");
        // Of nothing there is no ratio.
        assert!(of_mesh("none").is_none());
        for variant in &load.variants {
            let seen = variant.metrics.iter().find(|(m, _)| *m == Metric::MeshCpuPerRequest);
            assert_eq!(seen.is_some(), variant.variant != "none");
        }
    }

    #[test]
    fn studies_whose_traffic_stays_in_the_mesh_have_no_further_row() {
        let is_of_mesh = |metric: Metric| metric == Metric::MeshCpuPerRequest;
        for run in [ambient_replicas(), crate::analysis::fixture::customer_360()] {
            for load in findings(&run).loads {
                assert!(!load.effects.iter().any(|e| is_of_mesh(e.metric)));
                let variants = load.variants.iter();
                assert!(!variants.flat_map(|v| &v.metrics).any(|(m, _)| is_of_mesh(*m)));
            }
        }
    }
}

mod payers {
    use super::*;

    #[test]
    fn gateway_and_sni_proxy_stand_between_sidecars_and_database() {
        let found = findings(&exact());
        let attribution = &step(&found, "clients-20").attribution;
        let sni = attribution.iter().find(|a| a.variant == "gateway-sni").unwrap();
        let mut roles: Vec<Role> = sni.parts.iter().filter_map(|part| part.payer.role()).collect();
        roles.dedup();
        let expected = [
            Role::Application,
            Role::Sidecar,
            Role::EgressGateway,
            Role::SniProxy,
            Role::Database,
            Role::LoadGenerator,
            Role::Harness,
            Role::Unattributed,
        ];
        assert_eq!(roles, expected);
        let part = |role: Role| {
            let of = sni.parts.iter().find(|part| part.payer.role() == Some(role)).unwrap();
            (of.baseline, of.value.unwrap().round(), of.change.value.round())
        };
        assert_eq!(part(Role::EgressGateway), (None, 90.0, 90.0));
        assert_eq!(part(Role::SniProxy), (None, 45.0, 45.0));
        let subtotals: Vec<&Payer> = sni.subtotals.iter().map(|line| &line.payer).collect();
        assert_eq!(subtotals, [&Payer::Role(Role::Application), &Payer::Role(Role::Sidecar)]);
    }

    #[test]
    fn the_pod_of_the_gateway_has_what_its_sni_proxy_uses() {
        let found = findings(&exact());
        let pods = &step(&found, "clients-20").top_pods;
        let is_egress = |row: &&PodRow| row.owner.as_ref().is_some_and(|of| of.pods.is("egress"));
        let egress = pods.iter().find(is_egress).unwrap();
        assert_eq!(egress.owner.as_ref().unwrap().role, Role::EgressGateway);
        let of = |variant: &str| {
            let used = egress.uses.iter().find(|of| of.variant == variant).unwrap();
            used.memory_mib.map(|memory| (memory.mean.value * 10.0).round() / 10.0)
        };
        assert_eq!([of("gateway"), of("gateway-sni")], [Some(50.4), Some(58.8)]);
        assert_eq!(pods.iter().filter(is_egress).count(), 1);
        assert_eq!(pods.last().unwrap().owner, None);
    }

    #[test]
    fn a_platform_pays_for_the_gateway_as_a_group_of_its_own() {
        let found = findings(&exact());
        let load = step(&found, "clients-20");
        let groups: Vec<ResourceGroup> = load.resources.iter().map(|row| row.group).collect();
        let expected = [
            ResourceGroup::Application,
            ResourceGroup::Egress,
            ResourceGroup::Control,
            ResourceGroup::Total,
            ResourceGroup::ColumnSums,
        ];
        assert_eq!(groups, expected);
        let per_s = Truth::of("gateway-sni").per_s(20);
        let used = load.resources[1].uses.iter().find(|of| of.variant == "gateway-sni").unwrap();
        let millicores = used.cpu_millicores.unwrap().mean.value;
        assert!((millicores / (135.0 * per_s / 1e3) - 1.0).abs() < 0.01, "{millicores}");
    }

    #[test]
    fn the_pod_of_the_gateway_is_one_for_kubectl_top() {
        let found = findings(&exact());
        let totals = &step(&found, "clients-20").top_totals;
        let pods = |variant: &str| totals.iter().find(|t| t.variant == variant).unwrap().pods;
        assert_eq!(["none", "bypass", "gateway", "gateway-sni"].map(pods), [5, 5, 6, 6]);
    }
}

mod caveats {
    use super::*;

    #[test]
    fn many_steps_with_few_rounds_are_one_sentence() {
        let run = without(run(&Shape { rounds: 3, ..LONG }), |round, arm, load| {
            round == 2 && arm.variant == "gateway" && load == "clients-20"
        });
        let found = findings(&run);
        let (loads, variants) = few_rounds(&found);
        assert_eq!(loads, [LoadNames::Sweep { load: "clients".into(), cells: 5 }]);
        let rounds: Vec<_> =
            variants.iter().map(|of| (of.variant.as_str(), of.fewest, of.most)).collect();
        let expected = [("bypass", 3, 3), ("none", 3, 3), ("sidecar", 3, 3), ("gateway", 2, 3)];
        assert_eq!(rounds[..4], expected);
    }

    #[test]
    fn steps_that_are_not_all_keep_their_names() {
        let run = without(run(&LONG), |round, _, load| round > 2 && load == "clients-20");
        let found = findings(&run);
        assert_eq!(few_rounds(&found).0, [LoadNames::Load("clients-20".into())]);
    }

    #[test]
    fn a_run_with_all_its_rounds_says_nothing_for_each_step() {
        let found = findings(&run(&LONG));
        let is_of_steps = |caveat: &Caveat| format!("{caveat:?}").contains("clients-");
        assert!(!found.caveats.iter().any(is_of_steps), "{:?}", found.caveats);
    }

    #[test]
    fn a_stand_in_for_the_database_is_no_mongodb() {
        let found = findings(&exact());
        let server = DatabaseServer::StandIn { version: "1.47.0 (made up for tests)".into() };
        assert!(found.facts.contains(&Fact::Database(server.clone())));
        assert!(found.caveats.contains(&Caveat::StandIn { server }), "{:?}", found.caveats);
    }

    #[test]
    fn a_database_that_stands_in_for_none_needs_no_caveat() {
        let mut run = exact();
        run.host.artifacts.push((Artifact::Mongod, "7.0.14 (sha256 0, PATH)".into()));
        let found = findings(&run);
        let server = DatabaseServer::MongoDb { version: "7.0.14 (sha256 0, PATH)".into() };
        assert!(found.facts.contains(&Fact::Database(server)));
        assert!(!stands_in(&found));
    }

    #[test]
    fn the_database_is_named_once_in_the_manifest() {
        let mut run = exact();
        run.host.artifacts.push((Artifact::Nginx, "1.22".into()));
        let facts = findings(&run).facts.into_iter();
        let is_program = |fact: &Fact| matches!(fact, Fact::Database(_) | Fact::Artifact { .. });
        let lines: Vec<_> = facts.filter(is_program).collect();
        let server = DatabaseServer::StandIn { version: "1.47.0 (made up for tests)".into() };
        assert_eq!(
            lines,
            [
                Fact::Artifact { artifact: Artifact::Nginx, version: "1.22".into() },
                Fact::Database(server)
            ]
        );
    }

    #[test]
    fn what_several_cases_cannot_prove_is_said_once() {
        let mut run = exact();
        let unread = LeftOut::OperationsByProxies { service: "airline-db".into() };
        each_arm(&mut run, |_, of| {
            if of.arm.variant != "none" {
                let left_out = &mut of.proof.as_mut().unwrap().left_out;
                left_out.push(unread.clone());
            }
        });
        let found = findings(&run);
        let variants = ["bypass", "sidecar", "gateway", "gateway-mtls", "gateway-sni"];
        let told = Caveat::LeftOut { variants: variants.map(String::from).into(), what: unread };
        let left_out = |caveat: &&Caveat| matches!(caveat, Caveat::LeftOut { .. });
        assert_eq!(found.caveats.iter().filter(left_out).collect::<Vec<_>>(), [&told]);
    }
}
