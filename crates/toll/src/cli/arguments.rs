//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::capacity::CapacityArguments;
use crate::load::arguments::{LoadArguments, MergeArguments};
use crate::store::ClusterChoice;
use crate::study::{Runtime, Server};

const EXAMPLES: &str = "\
Examples:
  toll init                        a study of your own service
  toll run mesher --quick          a first look, in under two minutes
  toll run mesher                  the built-in study on this machine
  toll run ./study.yaml --for 10m
  toll load -c 50 -z 30s http://localhost:8080/
  toll plan mesher                 what would run, and how the variants differ
  toll report runs/20261121-140312-mesher
  toll plan-capacity RUN --pods 40 --rate 30
  toll calibrate --for 60m         does toll find what is there, and nothing else
  toll run mesher --on kubernetes  the same in a cluster
  toll doctor                      what this machine can show, and what is missing

Exit status: 0 done, 1 failed, 2 wrong command line or study file, 3 a variant
has nothing that counts, 4 `toll load` did not keep its schedule, 99 a --fail-if of
`toll load` was met, 130 interrupted (what was measured is kept).";

/// A run is resumed as it was planned.
const NOT_OF_A_RESUMED_RUN: [&str; 17] = [
    "study",
    "quick",
    "paper",
    "time",
    "width",
    "curve",
    "variants",
    "aa",
    "runtime",
    "database",
    "seed",
    "isolation",
    "on",
    "image",
    "exact_cpu",
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
    /// Write a study of your own service: three questions, or their answers as options
    Init(InitArguments),
    /// Run a study: bring the application up bare and with each data plane, load it, report
    Run(RunArguments),
    /// Put load on a service: closed or open loop, HTTP/1.1, HTTP/2 or gRPC
    Load(Box<LoadArguments>),
    /// Merge the results of the parts of one load
    Merge(MergeArguments),
    /// Print what a run would do: rounds and slices in order, rendered configurations, differences
    Plan(PlanArguments),
    /// List the built-in studies
    Studies,
    /// Print a study file: a built-in one, the annotated reference, or the JSON schema
    Study(StudyArguments),
    /// Report an earlier run again
    Report(ReportArguments),
    /// Try the instrument on itself: equal arms, and effects of known size
    Calibrate(CalibrateArguments),
    /// Predict CPU, memory and added latency of a fleet from a run that swept replicas
    PlanCapacity(CapacityArguments),
    /// Say what this machine can show, which parts are there, and what is missing
    Doctor(DoctorArguments),
    /// Remove what a killed run left behind
    Clean(CleanArguments),
    /// Write the image of all pods in a cluster: toll, and the programs that it brings
    Image(ImageArguments),
    /// Print the Kubernetes objects of a study's variants, or the role that a run needs
    Manifests(ManifestsArguments),
    /// The load engine: plans on stdin, events on stdout (a lab starts it)
    #[command(hide = true)]
    Engine,
    /// The built-in service (a lab starts it)
    #[command(hide = true, disable_help_flag = true)]
    Service {
        /// Its own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// toll's own pods in a cluster (the lab starts them)
    #[command(hide = true)]
    InCluster {
        /// The role, and what it needs.
        arguments: Vec<String>,
    },
    /// The collector of spans (a lab starts it)
    #[command(hide = true, disable_help_flag = true)]
    Collector {
        /// Its own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Arguments of `toll init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll init
  toll init --command './shop --port {port}' --url /checkout --calls stock,prices
  toll init --command 'python3 shop.py' --url http://localhost:5000/ shop.yaml")]
pub struct InitArguments {
    /// The study file to write
    #[arg(value_name = "FILE", default_value = "study.yaml")]
    pub file: PathBuf,
    /// The command that starts your service; {port} in it is filled in
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// The path that is called (default: /), or a URL with the port that the command listens on
    #[arg(long, value_name = "URL", requires = "command")]
    pub url: Option<String>,
    /// Services that it calls, by name
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "command")]
    pub calls: Vec<String>,
}

/// A study and how to run it.
#[derive(Debug, Args)]
pub struct StudyChoice {
    /// A built-in study (`toll studies` lists them) or a study file
    #[arg(value_name = "STUDY")]
    pub study: String,
    /// A first look: few rounds
    #[arg(long, conflicts_with = "paper")]
    pub quick: bool,
    /// The durations of the published study
    #[arg(long)]
    pub paper: bool,
    /// As many rounds as fit into this time, for instance 5m
    #[arg(id = "time", long = "for", value_name = "TIME", value_parser = seconds)]
    pub time_s: Option<f64>,
    /// Until the half-widths of the headline metrics are at most this share, for instance 3%; 30 minutes at the most
    /// unless --for says how long
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub width: Option<f64>,
    /// Also measure latency and CPU per request at rates from 10 to 100 % of capacity
    #[arg(long)]
    pub curve: bool,
    /// Only these variants; the baseline always runs
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Hold the baseline against itself
    #[arg(long, conflicts_with = "variants")]
    pub aa: bool,
    /// What the built-in services are written in (default: the study's, else native)
    #[arg(long, value_enum)]
    pub runtime: Option<Runtime>,
    /// The server of the databases outside of the mesh (default: the study's)
    #[arg(long, value_enum)]
    pub database: Option<Server>,
    /// Seed of the order and of Poisson arrivals (default: from the clock, recorded)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Isolation level (default: the best that this machine allows)
    #[arg(long, value_enum)]
    pub isolation: Option<IsolationChoice>,
    /// Where to run: on this machine, or in the cluster of kubectl's current context
    #[arg(long, value_enum, default_value_t, conflicts_with = "isolation")]
    pub on: OnChoice,
    /// With `--on kubernetes`: the image of all pods, as `toll image` writes it
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub image: String,
    /// With `--on kubernetes`: read CPU and memory by a pod on each node that mounts the node's counters
    #[arg(long)]
    pub exact_cpu: bool,
}

impl StudyChoice {
    /// What was chosen of a cluster.
    pub fn cluster(&self) -> ClusterChoice {
        ClusterChoice { image: self.image.clone(), exact_cpu: self.exact_cpu }
    }
}

/// What `toll image` calls an image unless it is told otherwise.
pub const DEFAULT_IMAGE: &str = concat!("toll:", env!("CARGO_PKG_VERSION"));

/// Where a study runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnChoice {
    /// Pods of this machine's own
    #[default]
    Machine,
    /// Pods of a cluster
    Kubernetes,
}

/// How many rounds: all of them, or so many more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsChoice {
    /// In all.
    All(usize),
    /// More than there are.
    More(usize),
}

impl std::str::FromStr for RoundsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (more, digits) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let count = digits.parse().ok().filter(|count| (1..=MOST_ROUNDS).contains(count));
        match (count, more) {
            (Some(count), false) => Ok(Self::All(count)),
            (Some(count), true) => Ok(Self::More(count)),
            (None, _) => Err(format!("a number from 1 to {MOST_ROUNDS}, or +N with --resume")),
        }
    }
}

/// Nobody runs more.
const MOST_ROUNDS: usize = 10_000;

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let span: crate::study::TimeSpan = text.parse().map_err(|_| "for instance 5m or 90s")?;
    let seconds = span.get().as_secs_f64();
    if seconds > 0.0 { Ok(seconds) } else { Err("longer than nothing".into()) }
}

fn share(text: &str) -> Result<f64, String> {
    let share: crate::study::Share = text.parse().map_err(|_| "for instance 3%")?;
    if share.fraction() > 0.0 { Ok(share.fraction()) } else { Err("more than 0 %".into()) }
}

/// Arguments of `toll run`.
#[derive(Debug, Args)]
#[command(
    override_usage = "toll run [OPTIONS] <STUDY>\n       toll run [--rounds <+N>] --resume <RUN>",
    after_help = "\
Examples:
  toll run mesher --quick
  toll run mesher --for 10m --width 2%
  toll run mesher --curve
  toll run mesher --rounds 20 --out /tmp/mesher-today
  toll run customer-360 --runtime spring
  toll run petclinic-agent
  toll run egress-gateway --database postgres
  toll run --resume runs/20261121-140312-mesher
  toll run --resume runs/20261121-140312-mesher --rounds +8"
)]
pub struct RunArguments {
    /// The study and how to run it; not with --resume, which keeps the plan.
    #[command(flatten)]
    pub choice: Option<StudyChoice>,
    /// Rounds, each with every arm brought up once (default: the study's); +N adds to those of a run with --resume
    #[arg(long, value_name = "N")]
    pub rounds: Option<RoundsChoice>,
    /// Go on with a run: what was measured is kept, the rest runs
    #[arg(long, value_name = "RUN", conflicts_with_all = NOT_OF_A_RESUMED_RUN)]
    pub resume: Option<PathBuf>,
    /// Print all tables at the end, not only the answer
    #[arg(long)]
    pub full: bool,
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
    /// Rounds, each with every arm brought up once (default: the study's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_ROUNDS as u64))]
    pub rounds: Option<u64>,
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
#[command(group = clap::ArgGroup::new("report").required(true))]
pub struct ReportArguments {
    /// The run's directory
    #[arg(value_name = "RUN", group = "report")]
    pub run: Option<PathBuf>,
    /// The JSON schema of `report.json`
    #[arg(long, group = "report")]
    pub schema: bool,
    /// What to print; `html` is written into the run's directory by every report
    #[arg(long, value_enum, default_value = "terminal")]
    pub format: ReportFormat,
}

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
    pub study: String,
    /// As many rounds as fit into this time: three parts of five for equal arms, two for planted effects
    #[arg(id = "time", long = "for", value_name = "TIME", default_value = "60m", value_parser = seconds)]
    pub time_s: f64,
    /// Seed of the order and of which rounds make a study (default: from the clock, recorded)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Isolation level (default: the best that this machine allows)
    #[arg(long, value_enum)]
    pub isolation: Option<IsolationChoice>,
    /// Directory of the calibration (default: runs/<time>-calibrate-<study>)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl CalibrateArguments {
    /// The study that it is tried on.
    pub fn choice(&self) -> StudyChoice {
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
            on: OnChoice::Machine,
            image: DEFAULT_IMAGE.into(),
            exact_cpu: false,
        }
    }
}

/// Arguments of `toll clean`.
#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Where to clean: this machine, or the cluster of kubectl's current context
    #[arg(long, value_enum, default_value_t)]
    pub on: OnChoice,
}

/// Arguments of `toll image`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll image                       toll and Envoy, in toll-image.tar
  toll image --for ambient-replicas -o /tmp/toll.tar
  kind load image-archive toll-image.tar
  ctr -n k8s.io images import toll-image.tar
  skopeo copy oci-archive:toll-image.tar docker://registry.example/toll:0.1.0")]
pub struct ImageArguments {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "toll-image.tar")]
    pub out: PathBuf,
    /// Only what this study needs: a built-in one or a study file
    #[arg(long = "for", value_name = "STUDY")]
    pub study: Option<String>,
    /// What the image is called in the cluster
    #[arg(long, value_name = "NAME:TAG", default_value = DEFAULT_IMAGE)]
    pub name: String,
}

/// Arguments of `toll manifests`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toll manifests mesher
  toll manifests mesher --variant istio
  toll manifests --rbac | kubectl apply -f -")]
pub struct ManifestsArguments {
    /// A built-in study or a study file
    #[arg(value_name = "STUDY", required_unless_present = "rbac")]
    pub study: Option<String>,
    /// Only this variant
    #[arg(long, value_name = "NAME", conflicts_with = "rbac")]
    pub variant: Option<String>,
    /// The smallest role with which a run works
    #[arg(long, conflicts_with = "study")]
    pub rbac: bool,
    /// The image of all pods
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub image: String,
}

/// Arguments of `toll doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Fetch the parts that are missing
    #[arg(long, conflicts_with = "on")]
    pub fetch: bool,
    /// What to look at: this machine, or the cluster of kubectl's current context
    #[arg(long, value_enum, default_value_t)]
    pub on: OnChoice,
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
