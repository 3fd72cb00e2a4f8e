//! Turns a closed loop over its number of clients into few sections: what each case costs against the baseline and
//! against the case before it, throughput by clients, response times at one step, who uses the CPU. What one step
//! shows by itself has sections of its own. Draws nothing, adds nothing up.

mod cpu;
mod differences;
mod published;
mod response;
mod throughput;
mod words;

use crate::report::document::Section;
use crate::report::subjects::staircase::Stairs;

pub(in crate::report) use published::{answer as published_answer, published};

/// What the staircases show, each by itself.
pub(in crate::report) fn sections(all: &[Stairs<'_>]) -> Vec<Section> {
    let of = |stairs| {
        let sections = [
            differences::differences(stairs),
            Some(throughput::throughput(stairs)),
            response::response(stairs),
            cpu::cpu(stairs),
        ];
        sections.into_iter().flatten()
    };
    all.iter().flat_map(of).collect()
}
