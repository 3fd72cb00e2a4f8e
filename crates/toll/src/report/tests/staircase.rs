//! What a reader must find in the report of a staircase.

use super::*;

#[test]
fn the_report_of_a_staircase_fits_80_columns() {
    insta::assert_snapshot!(terminal(&egress_gateway(), 80, false));
}

#[test]
fn the_markdown_report_of_a_staircase_has_the_same_tables_and_folds_its_steps() {
    insta::assert_snapshot!(markdown(&egress_gateway()));
}
