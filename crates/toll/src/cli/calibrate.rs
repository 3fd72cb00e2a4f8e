//! `toll calibrate`: rounds of equal arms, then rounds with planted effects, then one page.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use toll_lab::Lab;

use super::arguments::{IsolationChoice, StudyChoice, seconds};
use super::commands::{OF_A_RUN, Ready, catch_signals, default_dir, watched};
use super::exit;
use super::talk::{CliError, print, say};
use crate::calibrate::{self, Calibration, Plant};
use crate::plan::Plan;
use crate::run::{self, Ending};
use crate::store::Store;

/// Arguments of `toll calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll calibrate
  toll calibrate mesher --for 5m --isolation loopback
  toll report runs/20261121-140312-calibrate-mesher")]
pub struct CalibrateArguments {
    /// A built-in study or a study file: its baseline, under its headline load
    #[arg(value_name = "STUDY", default_value = "mesher")]
    study: String,
    /// As many rounds as fit into this time: three parts of five for equal arms, two for planted effects
    #[arg(id = "time", long = "for", value_name = "TIME", default_value = "60m", value_parser = seconds)]
    time_s: f64,
    /// Seed of the order and of which rounds make a study (default: from the clock, recorded)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Isolation level (default: the best that this machine allows)
    #[arg(long, value_enum)]
    isolation: Option<IsolationChoice>,
    /// Directory of the calibration (default: runs/<time>-calibrate-<study>)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

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
        let calibration = computed(&self.store, planted)?;
        self.store.write_report(calibrate::FILE, &calibrate::json(&calibration))?;
        let page = self.store.write_report("calibration.html", &calibrate::html(&calibration))?;
        print(&calibrate::terminal(&calibration))?;
        say(&format!("page: {}", page.display()));
        Ok(())
    }
}

impl CalibrateArguments {
    fn choice(&self) -> StudyChoice {
        StudyChoice {
            study: self.study.clone(),
            quick: false,
            paper: false,
            time_s: None,
            width: None,
            curve: false,
            variants: vec![],
            aa: false,
            runtime: None,
            database: None,
            seed: self.seed,
            isolation: self.isolation,
        }
    }
}

/// A run of the plan in an empty directory, about to begin.
fn begun(ready: &Ready, plan: Plan, dir: &Path) -> Result<(Store, Plan), CliError> {
    let lab: &Lab = &ready.lab;
    let plan = run::fitted(plan, lab);
    run::check(&plan, lab)?;
    let facts = run::host_facts(lab, false, &ready.parts.labelled(), &plan)?;
    let store = Store::create(dir, &ready.wish.text, &plan, &facts)?;
    Ok((store, plan))
}

fn status(ending: Ending) -> u8 {
    match ending {
        Ending::Complete => exit::DONE,
        Ending::Interrupted => exit::INTERRUPTED,
    }
}

/// What the measured parts say.
fn computed(equal: &Store, planted: Option<(&Store, Vec<Plant>)>) -> Result<Calibration, CliError> {
    let planted = match planted {
        Some((store, plants)) => Some((store.read()?, plants)),
        None => None,
    };
    let planted = planted.as_ref().map(|(run, plants)| (run, plants.clone()));
    Ok(calibrate::calibration(&equal.read()?, planted))
}

/// An earlier calibration, computed again from what was measured, when the directory is one's.
pub fn earlier(store: &Store) -> Result<Option<Calibration>, CliError> {
    let Some(earlier) = store.read_report::<Calibration>(calibrate::FILE)? else { return Ok(None) };
    let planted = match earlier.plants.is_empty() {
        true => None,
        false => Some(Store::open(&store.dir().join(calibrate::PLANTED))?.0),
    };
    Ok(Some(computed(store, planted.as_ref().map(|store| (store, earlier.plants)))?))
}
