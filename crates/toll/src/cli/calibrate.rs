//! `toll calibrate`: rounds of equal arms, then rounds with planted effects, then one page.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toll_lab::Lab;

use super::arguments::CalibrateArguments;
use super::commands::{OF_A_RUN, Ready, catch_signals, default_dir, watched};
use super::exit;
use super::talk::{CliError, print, say};
use crate::calibrate::{self, Plant};
use crate::plan::Plan;
use crate::run::{self, Ending};
use crate::store::Store;

/// A calibration under way.
struct Session<'a> {
    ready: &'a Ready,
    interrupt: &'a Arc<AtomicBool>,
    for_s: f64,
    /// Of the run of equal arms, and of all that is said at the end.
    store: Store,
    equal: Plan,
}

/// `toll calibrate`.
pub fn calibrate(arguments: &CalibrateArguments) -> Result<u8, CliError> {
    let interrupt = catch_signals(&OF_A_RUN)?;
    let ready = Ready::of(&arguments.choice(), None, false, &interrupt)?;
    let equal = calibrate::equal_arms(&ready.plan, arguments.time_s * calibrate::SHARE_OF_EQUAL)?;
    let dir = arguments.out.clone();
    let dir = dir.unwrap_or_else(|| default_dir(&format!("calibrate-{}", ready.plan.study)));
    let (store, equal) = begun(&ready, equal, &dir)?;
    say(&format!("calibration directory: {}", store.dir().display()));
    let session =
        Session { ready: &ready, interrupt: &interrupt, for_s: arguments.time_s, store, equal };
    session.run()
}

impl Session<'_> {
    /// Whatever ends a part: what was measured gets its page.
    fn run(&self) -> Result<u8, CliError> {
        let lab = &self.ready.lab;
        let equal = watched(&self.store, &self.equal, lab, self.interrupt);
        let planted = match equal {
            Ok(Ending::Complete) => self.planted()?,
            _ => None,
        };
        let Some((store, plan, plants)) = planted else {
            self.conclude(None)?;
            return equal.map(status);
        };
        let ending = watched(&store, &plan, lab, self.interrupt);
        self.conclude(Some((&store, plants)))?;
        ending.map(status)
    }

    /// What is planted, as large as the equal arms show that a report finds it.
    fn planted(&self) -> Result<Option<(Store, Plan, Vec<Plant>)>, CliError> {
        let for_s = self.for_s * (1.0 - calibrate::SHARE_OF_EQUAL);
        let run = self.store.read()?;
        let planned = calibrate::planted_effects(&self.ready.plan, &run, for_s, run::cores())?;
        let Some((plan, plants)) = planned else { return Ok(None) };
        let dir = self.store.dir().join(calibrate::PLANTED);
        let (store, plan) = begun(self.ready, plan, &dir)?;
        Ok(Some((store, plan, plants)))
    }

    /// Stores and prints the page.
    fn conclude(&self, planted: Option<(&Store, Vec<Plant>)>) -> Result<(), CliError> {
        let calibration = calibrate::computed(&self.store, planted)?;
        self.store.write_report(calibrate::FILE, &calibrate::json(&calibration))?;
        let page = self.store.write_report("calibration.html", &calibrate::html(&calibration))?;
        print(&calibrate::terminal(&calibration))?;
        say(&format!("page: {}", page.display()));
        Ok(())
    }
}

/// A run of the plan in an empty directory, about to begin.
fn begun(ready: &Ready, plan: Plan, dir: &Path) -> Result<(Store, Plan), CliError> {
    let lab: &Lab = &ready.lab;
    let plan = run::fitted(plan, lab);
    run::check(&plan, lab)?;
    let facts = run::host_facts(lab, false, ready.artifacts.found(), &plan)?;
    let store = Store::create(dir, &ready.wish.text, &plan, &facts)?;
    Ok((store, plan))
}

fn status(ending: Ending) -> u8 {
    match ending {
        Ending::Complete => exit::DONE,
        Ending::Interrupted => exit::INTERRUPTED,
    }
}
