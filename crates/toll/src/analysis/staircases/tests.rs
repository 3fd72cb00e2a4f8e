//! Lines and differences of a made-up staircase whose truth is known.

use toll_lab::Role;

use super::*;
use crate::analysis::findings;
use crate::analysis::findings::Derived;
use crate::analysis::fixture::replicas::ambient_replicas;
use crate::analysis::fixture::staircase::{
    ANSWER_BYTES, BASELINE, STAIRCASE, STEPS, Shape, TRUTH, Truth, egress_gateway, run,
    scatter_anew,
};
use crate::analysis::fixture::{each_slice, without, without_arms};
use crate::plan::VariantState;

fn found(run: &RunRecord) -> Vec<Staircase> {
    let counted = crate::analysis::Counted::of(run, |_| true);
    staircases(run, &counted.tallies.iter().collect::<Vec<_>>())
}

#[track_caller]
fn climbed(run: &RunRecord) -> Staircase {
    let [staircase] = found(run).try_into().expect("one load is swept");
    staircase
}

/// A run in which nothing scatters.
fn exact() -> RunRecord {
    run(&Shape { scatter: 0.0, ..Shape::SMALL })
}

#[track_caller]
fn difference(of: &Staircase, variant: &str, against: &str) -> StaircaseDifference {
    let is = |d: &&StaircaseDifference| d.variant == variant && d.against == against;
    of.differences.iter().find(is).expect("the pair is compared").clone()
}

/// One answer more or less in a slice of some hundred: whole requests are counted.
fn near(seen: f64, expected: f64) -> bool {
    (seen - expected).abs() < 0.002 * expected.abs()
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    estimate.low <= truth && truth <= estimate.high
}

/// Each of two facts by how often it is so over many seeds, as a share, for the baseline and the two variants behind.
fn shares_of_seeds(truth: [Truth; 3], are_so: impl Fn(&Staircase) -> [bool; 2]) -> [f64; 2] {
    const SEEDS: u64 = 300;
    let shape = Shape { truth: &truth, steps: &[5, 40], ..Shape::SMALL };
    let mut run = run(&shape);
    let mut counts = [0.0; 2];
    for seed in 0..SEEDS {
        scatter_anew(&mut run, &Shape { seed, ..shape });
        let so = are_so(&climbed(&run)).map(f64::from);
        counts = [counts[0] + so[0], counts[1] + so[1]];
    }
    counts.map(|count| count / SEEDS as f64)
}

mod lines {
    use super::*;

    #[test]
    fn every_variant_has_a_line_in_the_order_of_the_study() {
        let found = climbed(&egress_gateway());
        assert_eq!(found.load, STAIRCASE);
        let variants: Vec<&str> = found.lines.iter().map(|line| line.variant.as_str()).collect();
        assert_eq!(variants, TRUTH.map(|truth| truth.variant));
        for line in &found.lines {
            let connections: Vec<u32> = line.steps.iter().map(|step| step.connections).collect();
            assert_eq!(connections, STEPS);
        }
    }

    #[test]
    fn a_step_is_what_its_slices_showed_over_rounds() {
        let found = climbed(&exact());
        for line in &found.lines {
            let truth = Truth::of(&line.variant);
            for step in &line.steps {
                let StaircaseStep { connections, throughput_per_s, application_cpu_us, .. } = step;
                assert!(near(throughput_per_s.value, truth.per_s(*connections)), "{step:?}");
                assert_eq!(throughput_per_s.rounds, 5);
                assert!(near(application_cpu_us.unwrap().value, truth.application_us), "{step:?}");
                assert_eq!(step.load, format!("clients-{connections}"));
                match line.variant.as_str() {
                    "none" => assert_eq!(step.mesh_cpu_us, None),
                    _ => assert!(near(step.mesh_cpu_us.unwrap().value, truth.mesh_us())),
                }
            }
        }
    }

    #[test]
    fn steps_climb_whatever_the_order_of_the_study() {
        let mut run = exact();
        run.plan.loads.reverse();
        let steps = &climbed(&run).lines[0].steps;
        assert_eq!(steps.iter().map(|step| step.connections).collect::<Vec<_>>(), [1, 10, 20, 60]);
    }

    #[test]
    fn a_step_without_a_slice_that_counts_is_left_out_and_a_variant_without_one_has_no_line() {
        let mut run = exact();
        each_slice(&mut run, |_, arm, slice| {
            if arm.variant == "none" || arm.variant == "gateway" && slice.load == "clients-10" {
                slice.invalid = vec!["crashed".into()];
            }
        });
        let found = climbed(&run);
        let line = |variant: &str| found.lines.iter().find(|line| line.variant == variant);
        assert!(line("none").is_none());
        assert!(!found.differences.iter().any(|d| d.variant == "none"));
        let steps: Vec<u32> =
            line("gateway").unwrap().steps.iter().map(|s| s.connections).collect();
        assert_eq!(steps, [1, 20, 60]);
    }

    #[test]
    fn loads_that_differ_by_more_than_connections_are_staircases_of_their_own() {
        let mut run = exact();
        for load in run.plan.loads.iter_mut().filter(|load| load.name.as_str() > "clients-2") {
            load.cell.as_mut().unwrap().load = "others".into();
        }
        let loads: Vec<(String, usize)> =
            found(&run).into_iter().map(|of| (of.load, of.lines[0].steps.len())).collect();
        assert_eq!(loads, [("clients".into(), 2), ("others".into(), 2)]);
    }

    #[test]
    fn a_run_that_sweeps_no_connections_has_no_staircase() {
        assert!(found(&ambient_replicas()).is_empty());
        assert!(found(&crate::analysis::fixture::customer_360()).is_empty());
        let mut never_ran = exact();
        never_ran.rounds.clear();
        assert!(found(&never_ran).is_empty());
    }

    #[test]
    fn an_answer_carries_the_mean_of_all_bodies() {
        assert_eq!(climbed(&exact()).answer_bytes, Some(ANSWER_BYTES as f64));
        let mut silent = exact();
        each_slice(&mut silent, |_, _, slice| slice.report.measure.done = 0);
        assert_eq!(climbed(&silent).answer_bytes, None);
    }
}

mod differences {
    use super::*;

    fn pairs(of: &Staircase) -> Vec<(&str, &str)> {
        of.differences.iter().map(|d| (d.variant.as_str(), d.against.as_str())).collect()
    }

    #[test]
    fn each_variant_is_held_against_the_baseline_and_then_against_the_one_before_it() {
        let expected = [
            ("none", "bypass"),
            ("sidecar", "bypass"),
            ("gateway", "bypass"),
            ("gateway-mtls", "bypass"),
            ("gateway-sni", "bypass"),
            ("gateway", "sidecar"),
            ("gateway-mtls", "gateway"),
            ("gateway-sni", "gateway-mtls"),
        ];
        assert_eq!(pairs(&climbed(&exact())), expected);
    }

    #[test]
    fn a_skipped_variant_stands_before_none() {
        let mut run = without_arms(exact(), |_, arm| arm.variant == "gateway-mtls");
        run.plan.variants[4].state = VariantState::Skipped("no certificates".into());
        let found = climbed(&run);
        assert_eq!(pairs(&found)[4..], [("gateway", "sidecar"), ("gateway-sni", "gateway")]);
    }

    #[test]
    fn all_that_two_variants_differ_by_is_found() {
        let found = climbed(&exact());
        for of in &found.differences {
            let [variant, against] = [&of.variant, &of.against].map(|name| Truth::of(name));
            assert!(near(of.throughput_ratio.value, variant.throughput / against.throughput));
            let mesh = variant.mesh_us() - against.mesh_us();
            assert!(near(of.mesh_cpu_us.unwrap().value, mesh), "{of:?}");
            let own = variant.application_us - against.application_us;
            assert!((of.application_cpu_us.unwrap().value - own).abs() < 0.01, "{of:?}");
        }
        let sni = difference(&found, "gateway-sni", "gateway-mtls");
        assert!(near(sni.mesh_cpu_ratio.unwrap().value, 465.0 / 420.0), "{sni:?}");
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let [below, above] = [TRUTH[3], TRUTH[4]];
        let covered = shares_of_seeds([TRUTH[1], below, above], |found| {
            let mtls = difference(found, "gateway-mtls", "gateway");
            let throughput = holds(mtls.throughput_ratio, above.throughput / below.throughput);
            [throughput, holds(mtls.mesh_cpu_us.unwrap(), above.mesh_us() - below.mesh_us())]
        });
        // Three standard deviations of what 300 runs tell of 95 %.
        assert!(covered.iter().all(|share| (0.912..=0.988).contains(share)), "{covered:?}");
    }

    #[test]
    fn the_baseline_against_itself_shows_nothing_where_its_arms_are_alike() {
        let again = climbed(&exact()).again.unwrap();
        assert_eq!((again.variant.as_str(), again.against.as_str()), ("bypass (again)", "bypass"));
        assert!(near(again.throughput_ratio.low, 1.0) && near(again.throughput_ratio.high, 1.0));
        assert!(again.mesh_cpu_us.unwrap().value.abs() < 0.01, "{again:?}");
        assert_eq!(climbed(&without_arms(exact(), |_, arm| arm.again)).again, None);
    }

    #[test]
    fn both_arms_of_the_baseline_are_what_a_variant_is_held_against() {
        let mut run = exact();
        each_slice(&mut run, |_, arm, slice| {
            if arm.again {
                slice.report.measure.completed /= 4;
                slice.report.measure.done /= 2;
            }
        });
        let gateway = difference(&climbed(&run), "gateway", BASELINE);
        assert!((gateway.throughput_ratio.value - 0.9 * 2.0).abs() < 0.01, "{gateway:?}");
        // 240 and 480 us.
        assert!((gateway.mesh_cpu_us.unwrap().value - (370.0 - 360.0)).abs() < 1.0, "{gateway:?}");
    }

    #[test]
    fn only_steps_that_both_have_in_a_round_are_compared() {
        let run = without(exact(), |round, arm, load| {
            round == 2 && arm.variant == "gateway" && load == "clients-60"
        });
        let ratio = difference(&climbed(&run), "gateway", BASELINE).throughput_ratio;
        assert_eq!(ratio.rounds, 5);
        assert!(near(ratio.value, 0.9) && near(ratio.low, 0.9), "{ratio:?}");
    }

    #[test]
    fn a_round_in_which_one_arm_has_no_step_is_not_compared() {
        let run = without_arms(exact(), |round, arm| arm.variant == "gateway" && round == 2);
        assert_eq!(difference(&climbed(&run), "gateway", BASELINE).throughput_ratio.rounds, 4);
    }

    #[test]
    fn the_ratio_of_a_round_is_the_geometric_mean_of_its_steps() {
        let mut run = exact();
        each_slice(&mut run, |_, arm, slice| {
            if arm.variant == "gateway" && slice.load == "clients-60" {
                slice.report.measure.completed /= 4;
            }
        });
        let ratio = difference(&climbed(&run), "gateway", BASELINE).throughput_ratio.value;
        assert!((ratio - 0.9 * 0.25_f64.powf(0.25)).abs() < 0.002, "{ratio}");
    }

    #[test]
    fn what_all_arms_of_a_round_share_is_in_no_difference() {
        let mut run = exact();
        each_slice(&mut run, |round, _, slice| slice.report.measure.end_ns *= round as u64);
        let ratio = difference(&climbed(&run), "gateway", BASELINE).throughput_ratio;
        assert!(near(ratio.low, 0.9) && near(ratio.high, 0.9), "{ratio:?}");
    }

    #[test]
    fn where_one_has_no_data_plane_there_is_a_difference_of_its_cost_but_no_ratio() {
        let none = difference(&climbed(&exact()), "none", BASELINE);
        assert!(near(none.mesh_cpu_us.unwrap().value, -240.0), "{none:?}");
        assert_eq!(none.mesh_cpu_ratio, None);
    }

    #[test]
    fn where_none_has_a_data_plane_there_is_no_cost_of_one() {
        let mut run = exact();
        each_slice(&mut run, |_, _, slice| {
            for sample in &mut slice.samples {
                sample.components.retain(|c| c.component.role == Role::Application);
            }
        });
        let found = climbed(&run);
        assert!(found.differences.iter().all(|d| d.mesh_cpu_us.is_none()));
        assert!(found.lines.iter().flat_map(|l| &l.steps).all(|s| s.mesh_cpu_us.is_none()));
        assert!(found.differences.iter().all(|d| d.application_cpu_us.is_some()));
    }

    #[test]
    fn one_round_gives_lines_and_differences_without_an_interval() {
        let found = climbed(&run(&Shape { rounds: 1, ..Shape::SMALL }));
        assert_eq!((found.lines.len(), found.differences.len()), (6, 8));
        let ratio = found.differences[0].throughput_ratio;
        assert_eq!((ratio.rounds, ratio.low, ratio.high), (1, ratio.value, ratio.value));
    }
}

mod published {
    use super::*;

    #[test]
    fn a_published_change_is_held_against_the_whole_staircase_both_ways() {
        let found = climbed(&exact());
        let rows: Vec<(&str, Option<&str>, f64, f64)> = found
            .recomputed
            .iter()
            .map(|row| {
                let (printed, measured) = (row.printed.unwrap(), row.measured.unwrap().value);
                (row.variant.as_str(), row.against.as_deref(), printed, measured.round())
            })
            .collect();
        let expected = [
            ("gateway-mtls", None, -10.0, -19.0),
            ("gateway-mtls", Some("gateway"), -10.0, -10.0),
            ("gateway-sni", None, -24.0, -38.0),
            ("gateway-sni", Some("gateway-mtls"), -24.0, -23.0),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_published_change_of_a_variant_that_did_not_run_has_none_beside_it() {
        let run = without_arms(exact(), |_, arm| arm.variant == "gateway-sni");
        let rows = climbed(&run).recomputed;
        assert_eq!(
            rows.iter().map(|row| row.measured.is_some()).collect::<Vec<_>>(),
            [true, true, false, false]
        );
    }

    #[test]
    fn what_belongs_to_one_step_stays_with_that_step() {
        let mut run = exact();
        let reference = run.plan.reference.as_mut().unwrap();
        reference.recomputed[0].load = "clients-20".into();
        reference.recomputed[1].derived = Derived::CpuPerRequestChange;
        let found = findings(&run);
        assert_eq!(found.staircases[0].recomputed.len(), 3);
        let step = found.loads.iter().find(|load| load.name == "clients-20").unwrap();
        assert_eq!(step.recomputed[0].measured.unwrap().value.round(), -19.0);
        // 425 + 370 + 260 us of all components before, 430 + 420 + 260 us behind.
        let cpu = found.staircases[0].recomputed[0].measured.unwrap().value;
        assert!((cpu - (1110.0 / 1055.0 - 1.0) * 100.0).abs() < 0.05, "{cpu}");
    }
}
