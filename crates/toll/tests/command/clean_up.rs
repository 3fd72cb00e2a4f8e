//! However a run ends, nothing of it stays in the system, its measured rounds stay on disk, and it can go on.

use crate::left_behind::Footprint;
use crate::process::Toll;
use crate::run_dir::{
    Event, assert_complete, assert_kept, assert_log_is_whole, ended, measured, now, report,
};
use crate::study_text::{StudyText, bare, free_ports, meshed};
use crate::workplace::{Workplace, envoy};

/// With sidecars where there is an Envoy.
fn study() -> StudyText {
    if envoy().is_some() { meshed() } else { bare() }
}

/// The load goes round the arms, and an earlier round has ended.
fn mid_round(events: &[Event]) -> bool {
    ended(events) >= 1 && now(events) == "slices"
}

fn is_up_to(toll: &mut Toll, place: &Workplace, moment: fn(&[Event]) -> bool) -> Footprint {
    toll.wait_for(&place.run_dir(), moment);
    Footprint::of(toll.pid())
}

#[test]
fn ctrl_c_in_a_round_takes_the_lab_down_and_the_run_can_be_resumed() {
    let place = Workplace::new();
    let run = place.run_dir();
    let mut toll = place.start_run(&study());
    let footprint = is_up_to(&mut toll, &place, mid_round);
    toll.press_ctrl_c();
    let interrupted = toll.finish();
    interrupted.assert_status(130).assert_says("interrupted: measured rounds are kept");
    interrupted.assert_says(&format!("go on with: toll run --resume {}", run.display()));
    footprint.assert_gone();
    place.assert_no_lab_folders();

    let kept = measured(&run);
    assert_eq!(report(&run)["extent"]["rounds"], kept.len());
    let resumed = place.finish(place.resume_command());
    resumed.assert_says(&format!("2 rounds of 3 arms, {} measured before", kept.len()));
    assert_complete(&resumed, &run);
    assert_kept(&kept, &run);
    assert_log_is_whole(&run);
}

#[test]
fn toll_clean_removes_what_a_killed_toll_left_and_the_run_can_be_resumed() {
    let place = Workplace::new();
    let run = place.run_dir();
    let mut toll = place.start_run(&study());
    let footprint = is_up_to(&mut toll, &place, mid_round);
    toll.kill();
    footprint.assert_processes_gone();

    let kept = measured(&run);
    assert!(!kept.is_empty());
    place.clean();
    footprint.assert_gone();
    place.assert_no_lab_folders();
    let resumed = place.finish(place.resume_command());
    assert_complete(&resumed, &run);
    assert_kept(&kept, &run);
    assert_log_is_whole(&run);
}

#[test]
fn the_next_run_removes_what_a_killed_toll_left() {
    let place = Workplace::new();
    let mut toll = place.start_run(&bare());
    let footprint = is_up_to(&mut toll, &place, mid_round);
    let left = place.lab_folders();
    toll.kill();
    let mut next = place.start(place.resume_command());
    next.wait_for(&place.run_dir(), |events| now(events) == "slices");
    footprint.assert_gone();
    assert!(left.iter().all(|folder| !folder.exists()), "{left:?}");
    next.press_ctrl_c();
    next.finish().assert_status(130);
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_service_that_never_listens() {
    let place = Workplace::new();
    let [port] = free_ports();
    let deaf = format!("{{port: {port}, program: {{command: [sleep, \"600\"]}}}}");
    let mut toll = place.start_run(&bare().server(deaf));
    toll.wait_for(&place.run_dir(), |events| now(events) == "bring_up");
    toll.descendant("sleep 600");
    toll.press_ctrl_c();
    toll.press_ctrl_c();
    toll.finish().assert_status(130);
    place.clean();
    place.assert_no_lab_folders();
}
