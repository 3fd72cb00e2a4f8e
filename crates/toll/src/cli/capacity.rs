//! `toll plan-capacity`: asks an earlier run what a fleet would cost.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exit;
use super::talk::{CliError, print, stdout_style};
use crate::analysis::capacity::{Question, capacity};
use crate::report;
use crate::store::Store;

/// Arguments of `toll plan-capacity`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll plan-capacity runs/20261121-140312-ambient-replicas --pods 40 --rate 30
  toll plan-capacity RUN --pods 180 --rate 50 --extrapolate
  toll plan-capacity RUN --pods 40 --rate 30 --format json

The run must have swept the replicas of a service (`toll run ambient-replicas`).
Outside of the sizes and rates that it measured there is no answer, and the exit
status is 1; with --extrapolate there is one, and every figure is marked.")]
pub struct CapacityArguments {
    /// The run's directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Pods of the service whose replicas the run swept
    #[arg(long, value_name = "N", value_parser = pods)]
    pub pods: usize,
    /// Requests per second to all of them together
    #[arg(long, value_name = "R", value_parser = rate)]
    pub rate: f64,
    /// Answer outside of what was measured, too, and mark the answer
    #[arg(long)]
    pub extrapolate: bool,
    /// What to print
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: CapacityFormat,
}

/// Forms of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CapacityFormat {
    /// A table for a terminal
    Terminal,
    /// Everything, for programs
    Json,
}

/// `toll plan-capacity`.
pub fn plan_capacity(arguments: &CapacityArguments) -> Result<u8, CliError> {
    let (store, _) = Store::open(&arguments.run)?;
    let question = Question {
        pods: arguments.pods,
        rate_per_s: arguments.rate,
        extrapolate: arguments.extrapolate,
    };
    let answer = capacity(&store.read()?, &question)?;
    let (width, colour) = stdout_style();
    print(&match arguments.format {
        CapacityFormat::Terminal => report::capacity(&answer, width, colour),
        CapacityFormat::Json => report::capacity_json(&answer),
    })?;
    Ok(exit::DONE)
}

fn pods(typed: &str) -> Result<usize, String> {
    typed.parse().ok().filter(|pods| *pods > 0).ok_or_else(|| "a fleet has at least 1 pod".into())
}

/// `30` or, as in a study file, `30/s`.
fn rate(typed: &str) -> Result<f64, String> {
    let number: Option<f64> = typed.strip_suffix("/s").unwrap_or(typed).parse().ok();
    let positive = number.filter(|rate| rate.is_finite() && *rate > 0.0);
    positive.ok_or_else(|| "requests per second, for instance 30".into())
}
