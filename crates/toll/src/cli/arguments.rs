//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::capacity::CapacityArguments;
use crate::load::arguments::{LoadArguments, MergeArguments};

const EXAMPLES: &str = "\
Examples:
  toll run mesher --quick          a first look, in under three minutes
  toll run mesher                  the built-in study on this machine
  toll run ./study.yaml --blocks 10
  toll load -c 50 -z 30s http://localhost:8080/
  toll plan mesher                 what would run, and how the variants differ
  toll report runs/20261121-140312-mesher
  toll plan-capacity RUN --pods 40 --rate 30
  toll doctor                      what this machine can show, and what is missing

Exit status: 0 done, 1 failed, 2 wrong command line or study file, 3 a variant
has no valid trial, 4 `toll load` did not keep its schedule, 99 a --fail-if of
`toll load` was met, 130 interrupted (what was measured is kept).";

/// A run is resumed as it was planned.
const NOT_OF_A_RESUMED_RUN: [&str; 12] = [
    "study",
    "quick",
    "paper",
    "blocks",
    "variants",
    "aa",
    "runtime",
    "database",
    "seed",
    "isolation",
    "out",
    "realtime",
];

/// Measures what a service mesh charges an application.
#[derive(Debug, Parser)]
#[command(name = "toll", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: bring the application up bare and with each data plane, load it, report
    Run(RunArguments),
    /// Put load on a service: closed or open loop, HTTP/1.1, HTTP/2 or gRPC
    Load(Box<LoadArguments>),
    /// Merge the results of the parts of one load
    Merge(MergeArguments),
    /// Print what a run would do: trials in order, rendered configurations, differences
    Plan(PlanArguments),
    /// List the built-in studies
    Studies,
    /// Print a study file: a built-in one, the annotated reference, or the JSON schema
    Study(StudyArguments),
    /// Report an earlier run again
    Report(ReportArguments),
    /// Predict CPU, memory and added latency of a fleet from a run that swept replicas
    PlanCapacity(CapacityArguments),
    /// Say what this machine can show, which parts are there, and what is missing
    Doctor(DoctorArguments),
    /// Remove what a killed run left behind
    Clean,
    /// The load engine: a plan on stdin, events on stdout (a lab starts it)
    #[command(hide = true)]
    Engine,
    /// The built-in service (a lab starts it)
    #[command(hide = true, disable_help_flag = true)]
    Service {
        /// Its own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// The collector of spans (a lab starts it)
    #[command(hide = true, disable_help_flag = true)]
    Collector {
        /// Its own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// A study and how to run it.
#[derive(Debug, Args)]
pub struct StudyChoice {
    /// A built-in study (`toll studies` lists them) or a study file
    #[arg(value_name = "STUDY")]
    pub study: String,
    /// A first look: short trials
    #[arg(long, conflicts_with = "paper")]
    pub quick: bool,
    /// The durations of the published study
    #[arg(long)]
    pub paper: bool,
    /// Blocks, each with every variant once (default: the study's)
    #[arg(long, value_name = "N")]
    pub blocks: Option<usize>,
    /// Only these variants; the baseline always runs
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Hold the baseline against itself: an honest tool finds no difference
    #[arg(long, conflicts_with = "variants")]
    pub aa: bool,
    /// What the built-in services are written in (default: the study's, else native)
    #[arg(long, value_enum)]
    pub runtime: Option<RuntimeChoice>,
    /// The server of the databases outside of the mesh (default: the study's)
    #[arg(long, value_enum)]
    pub database: Option<DatabaseChoice>,
    /// Seed of the order and of Poisson arrivals (default: from the clock, recorded)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Isolation level (default: the best that this machine allows)
    #[arg(long, value_enum)]
    pub isolation: Option<IsolationChoice>,
}

/// Arguments of `toll run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll run mesher --quick
  toll run mesher --blocks 10 --out /tmp/mesher-today
  toll run mesher --aa --blocks 10
  toll run customer-360 --runtime spring
  toll run petclinic-agent
  toll run egress-gateway --database postgres
  toll run --resume runs/20261121-140312-mesher")]
pub struct RunArguments {
    /// The study and how to run it; not with --resume, which keeps the plan.
    #[command(flatten)]
    pub choice: Option<StudyChoice>,
    /// Go on with an interrupted run: measured trials are kept, the rest runs
    #[arg(long, value_name = "RUN", conflicts_with_all = NOT_OF_A_RESUMED_RUN)]
    pub resume: Option<PathBuf>,
    /// Directory of the run (default: runs/<time>-<study>)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run the lab's processes under SCHED_RR: steadier on a busy machine, starves everything else
    #[arg(long)]
    pub realtime: bool,
}

/// Arguments of `toll plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The study and how to run it.
    #[command(flatten)]
    pub choice: StudyChoice,
    /// The plan as JSON, without configurations
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `toll study`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct StudyArguments {
    /// A built-in study
    #[arg(value_name = "STUDY", group = "what")]
    pub study: Option<String>,
    /// Every key with its default and a comment
    #[arg(long, group = "what")]
    pub default: bool,
    /// The JSON schema of study files
    #[arg(long, group = "what")]
    pub schema: bool,
}

/// Arguments of `toll report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The run's directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// What to print; `html` is written into the run's directory by every report
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: ReportFormat,
}

/// Arguments of `toll doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Fetch the parts that are missing
    #[arg(long)]
    pub fetch: bool,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables for a terminal
    Terminal,
    /// Tables for a pull request
    Markdown,
    /// Everything, for programs
    Json,
    /// One self-contained page
    Html,
}

/// What the built-in services may be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeChoice {
    /// Rust: starts at once, no JVM noise
    Native,
    /// Spring Boot with WebFlux and R2DBC on a JVM: slower to start and to settle
    Spring,
}

/// Servers that a database outside of the mesh may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DatabaseChoice {
    /// MongoDB: a `mongod` where there is one, else a server of its protocol on a JVM
    Mongodb,
    /// PostgreSQL 17, which speaks TLS from the first byte on
    Postgres,
}

/// Isolation levels of the local lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IsolationChoice {
    /// A network namespace and cgroups per pod, transparent capture (root)
    Pods,
    /// The same inside a user namespace, without cgroups (no root)
    Rootless,
    /// Ports on 127.0.0.1, no capture (no privilege at all)
    Loopback,
}
