//! What a reader must find in the report of a tracing agent.

use super::*;
use fixture::petclinic;

#[test]
fn the_report_of_an_agent_fits_80_columns() {
    insta::assert_snapshot!(terminal(&petclinic(), 80, false));
}

#[test]
fn the_markdown_report_of_an_agent_has_the_same_tables() {
    insta::assert_snapshot!(markdown(&petclinic()));
}
