//! `toll load` and `toll merge`: what was typed into a plan, the engine's events into a live line, its report
//! into a summary, other forms and a verdict. The engine itself is the crate `toll-load`.

pub mod arguments;
mod deliver;
mod fault;
mod figures;
mod live;
mod merge;
mod output;
mod plan;
mod quantity;
mod summary;
mod targets;
mod threshold;

use std::sync::atomic::{AtomicBool, Ordering};

use toll_load::{Listener, LoadError, LoadPlan, LoadReport, Sample};

use crate::analysis::counts;

use arguments::{LoadArguments, MergeArguments, ResultArguments};
use deliver::{Delivered, Outputs, Stdout};
use live::Live;
use merge::Merged;
use plan::World;
use summary::Page;

pub use fault::LoadFault;

/// A load that ran to its end.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    /// What was asked for.
    pub plan: &'a LoadPlan,
    /// What came of it.
    pub report: &'a LoadReport,
}

/// What the command line lends.
pub struct Shell<'a> {
    /// Takes a line of talk.
    pub say: &'a dyn Fn(&str),
    /// Columns of stdout.
    pub width: usize,
    /// Whether stdout shows colours.
    pub colour: bool,
    /// Set when the load shall end.
    pub stop: &'a AtomicBool,
}

/// What came of it.
pub struct Outcome {
    /// For stdout; nothing when rows stand there already, or nothing was measured.
    pub text: Option<String>,
    /// How it ended.
    pub ending: Ending,
}

/// How a load ended, the worst first.
pub enum Ending {
    /// With an output that could not be written.
    Unwritten(LoadFault),
    /// Before its time, by the user.
    Interrupted,
    /// Without one answer.
    Nothing(LoadFault),
    /// Conditions of `--fail-if` are met: each with what was seen.
    Crossed(Vec<String>),
    /// With requests of an open loop that were never sent.
    Unkept(LoadFault),
    /// Well.
    Done,
}

/// `toll load`.
///
/// # Errors
/// When the load cannot be run as typed.
pub fn load(arguments: &LoadArguments, shell: &Shell) -> Result<Outcome, LoadFault> {
    let mut world = World { read: &mut plan::read, now: jiff::Timestamp::now() };
    let order = plan::order(arguments, &mut world)?;
    let mut outputs = Outputs::open(&arguments.result.output, &order.plan)?;
    if !arguments.quiet {
        order.notes.iter().for_each(|note| (shell.say)(&format!("note: {note}")));
    }
    let report = match drive(&order.plan, &mut outputs, arguments.quiet, shell) {
        Err(LoadError::Stopped) => return Ok(Outcome { text: None, ending: Ending::Interrupted }),
        driven => driven?,
    };
    let finished = Finished { plan: &order.plan, report: &report };
    Ok(conclude(finished, outputs, &arguments.result, shell))
}

/// Runs the plan, with what is seen of it meanwhile.
fn drive(
    plan: &LoadPlan,
    outputs: &mut Outputs,
    quiet: bool,
    shell: &Shell,
) -> Result<LoadReport, LoadError> {
    let mut live = Live::new(quiet, shell.say);
    let has_rows = outputs.has_rows();
    let mut take = |samples: &[Sample]| outputs.take(samples);
    let listener = Listener {
        stop: shell.stop,
        emit: &mut |event| live.show(&event),
        samples: if has_rows { Some(&mut take) } else { None },
    };
    let driven = toll_load::run_with(plan, listener);
    live.end();
    driven
}

/// `toll merge`.
///
/// # Errors
/// When the files are not the parts of one load.
pub fn merge(arguments: &MergeArguments, shell: &Shell) -> Result<Outcome, LoadFault> {
    let Merged { plan, report, notes } = merge::merged(&arguments.files, plan::read)?;
    let outputs = Outputs::open(&arguments.result.output, &plan)?;
    if outputs.has_rows() {
        return Err(LoadFault::NoRows);
    }
    notes.iter().for_each(|note| (shell.say)(&format!("note: {note}")));
    let finished = Finished { plan: &plan, report: &report };
    Ok(conclude(finished, outputs, &arguments.result, shell))
}

fn conclude(
    finished: Finished<'_>,
    outputs: Outputs,
    result: &ResultArguments,
    shell: &Shell,
) -> Outcome {
    let page = Page { width: shell.width, colour: shell.colour };
    let Delivered { stdout, failure } = outputs.deliver(finished);
    let text = match stdout {
        Stdout::Free => Some(summary::summary(finished, &page)),
        Stdout::Text(text) => Some(text),
        Stdout::Taken => None,
    };
    let ending = failure.map_or_else(|| ending(finished, result, shell), Ending::Unwritten);
    Outcome { text, ending }
}

fn ending(finished: Finished<'_>, result: &ResultArguments, shell: &Shell) -> Ending {
    let measure = &finished.report.measure;
    if shell.stop.load(Ordering::Relaxed) {
        return Ending::Interrupted;
    }
    if measure.done == 0 {
        let errors = counts::errors_by_kind(measure);
        let seen = if errors.is_empty() { "none came back".into() } else { errors };
        return Ending::Nothing(LoadFault::NothingAnswered { seen });
    }
    let crossed = result.fail_if.iter().filter_map(|threshold| {
        Some(format!("{threshold}: {} was seen", threshold.crossed(measure)?))
    });
    match crossed.collect::<Vec<_>>() {
        crossed if crossed.is_empty() => {
            fault::unkept(finished).map_or(Ending::Done, Ending::Unkept)
        }
        crossed => Ending::Crossed(crossed),
    }
}
