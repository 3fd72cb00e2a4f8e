//! What a reader must find in the report of a sweep.

use super::*;

#[test]
fn the_report_of_a_sweep_fits_80_columns() {
    insta::assert_snapshot!(terminal(&ambient_replicas(), 80, false));
}

#[test]
fn the_terminal_report_of_ten_cells_is_no_longer_than_200_lines() {
    let lines = terminal(&ambient_replicas(), 80, false).lines().count();
    assert!(lines <= 200, "{lines} lines");
}
