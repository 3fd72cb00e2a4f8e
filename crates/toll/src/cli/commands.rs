//! The commands, each a short recipe.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use toll_lab::artifacts::{self, Artifact, ArtifactError, Fetch};
use toll_lab::{ClusterSurvey, Isolation, KubernetesOptions, Lab, Listener, LocalOptions};

use super::arguments::{
    CleanArguments, DoctorArguments, IsolationChoice, ManifestsArguments, OnChoice, PlanArguments,
    ReportArguments, ReportFormat, RoundsChoice, RunArguments, StudyArguments, StudyChoice,
};
use super::artifacts::FoundArtifacts;
use super::exit;
use super::progress::Progress;
use super::talk::{CliError, print, say, stdout_style};
use crate::analysis;
use crate::analysis::findings::Findings;
use crate::calibrate as page_of;
use crate::event::RunEvent;
use crate::load::arguments::{LoadArguments, MergeArguments};
use crate::load::{self, Ending as LoadEnding, Outcome, Shell};
use crate::plan::{self, Choices, Files, Plan, PlannedExtent};
use crate::report;
use crate::run::{self, Ending, Session};
use crate::store::{ClusterChoice, Store};
use crate::study::{self, Profile, Study};

/// `toll run`.
pub fn run(arguments: &RunArguments) -> Result<u8, CliError> {
    let interrupt = catch_signals(&OF_A_RUN)?;
    let (store, plan, lab) = match &arguments.resume {
        Some(run) => resumed(run, arguments.rounds, &interrupt)?,
        None => begun(arguments, &interrupt)?,
    };
    say(&format!("run directory: {}", store.dir().display()));
    let ending = watched(&store, &plan, &lab, &interrupt);
    // Whatever ended the run: what was measured is reported.
    let findings = reported(&store);
    if ending.is_err() {
        say(&format!("what was measured is kept: toll run --resume {}", store.dir().display()));
    }
    let ending = ending?;
    let findings = findings?;
    if findings.extent.rounds > 0 {
        let (width, colour) = stdout_style();
        print(&match arguments.full {
            true => report::full(&findings, width, colour),
            false => {
                let dir = store.dir().display().to_string();
                report::terminal(&findings, &dir, width, colour)
            }
        })?;
    }
    if ending == Ending::Interrupted {
        say(&format!("go on with: toll run --resume {}", store.dir().display()));
        return Ok(exit::INTERRUPTED);
    }
    Ok(if every_variant_counts(&findings) { exit::DONE } else { exit::UNPROVEN })
}

/// Runs the plan, and shows how its headline figures narrow.
pub(super) fn watched(
    store: &Store,
    plan: &Plan,
    lab: &Lab,
    interrupt: &AtomicBool,
) -> Result<Ending, CliError> {
    let mut progress = Progress::new();
    let headline = || store.read().map(|run| analysis::headline(&run)).unwrap_or_default();
    let mut watch = |event: &RunEvent| {
        progress.show(event);
        if matches!(event, RunEvent::RoundEnded { .. }) {
            progress.narrow(&headline());
        }
    };
    let mut is_sharp = || analysis::is_sharp(plan, &headline());
    let (watch, is_sharp) = (&mut watch, &mut is_sharp);
    Ok(Session { plan, lab, store, interrupt, watch, is_sharp }.run()?)
}

fn begun(
    arguments: &RunArguments,
    interrupt: &Arc<AtomicBool>,
) -> Result<(Store, Plan, Lab), CliError> {
    let choice = arguments.choice.as_ref();
    let choice = choice.expect("clap asks for a study unless a run is resumed");
    let rounds = match arguments.rounds {
        None => None,
        Some(RoundsChoice::All(rounds)) => Some(rounds),
        Some(RoundsChoice::More(more)) => return Err(CliError::MoreOfNothing { more }),
    };
    let Ready { wish, plan, artifacts, lab } =
        Ready::of(choice, rounds, arguments.realtime, interrupt)?;
    let as_written = plan.warnings.len();
    let plan = run::fitted(plan, &lab);
    plan.warnings[as_written..].iter().for_each(|warning| say(&format!("warning: {warning}")));
    run::check(&plan, &lab)?;
    let dir = arguments.out.clone().unwrap_or_else(|| default_dir(&plan.study));
    let mut facts = run::host_facts(&lab, arguments.realtime, artifacts.found(), &plan)?;
    facts.cluster = (choice.on == OnChoice::Kubernetes).then(|| choice.cluster());
    let store = Store::create(&dir, &wish.text, &plan, &facts)?;
    Ok((store, plan, lab))
}

/// All that a run needs before it has a directory.
pub(super) struct Ready {
    /// What was chosen.
    pub(super) wish: Wish,
    /// What can run of it.
    pub(super) plan: Plan,
    /// What it runs with.
    pub(super) artifacts: FoundArtifacts,
    /// Where.
    pub(super) lab: Lab,
}

impl Ready {
    pub(super) fn of(
        choice: &StudyChoice,
        rounds: Option<usize>,
        realtime: bool,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, CliError> {
        let wish = Wish::of(choice, rounds)?;
        let plan = wish.plan(vec![])?;
        if choice.on == OnChoice::Kubernetes {
            let plan = match unfit_for_a_cluster(&plan) {
                missing if missing.is_empty() => plan,
                missing => without(&wish, missing)?,
            };
            let lab = cluster_lab(&choice.cluster(), plan.load_pods, interrupt)?;
            return Ok(Self { wish, plan, artifacts: FoundArtifacts::default(), lab });
        }
        let artifacts = unless_interrupted(interrupt, FoundArtifacts::of(&plan))?;
        let plan = match artifacts.unavailable() {
            missing if missing.is_empty() => plan,
            missing => without(&wish, missing)?,
        };
        let lab = lab(choice.isolation.map(isolation), realtime, &artifacts, interrupt)?;
        Ok(Self { wish, plan, artifacts, lab })
    }
}

/// What a fetch brought, unless the user wants to leave: then nothing is begun, and what failed failed for that.
fn unless_interrupted<T>(
    interrupt: &AtomicBool,
    outcome: Result<T, CliError>,
) -> Result<T, CliError> {
    if interrupt.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { outcome }
}

/// The variants that cannot be in a cluster, each with the reason.
fn unfit_for_a_cluster(plan: &Plan) -> Vec<(String, String)> {
    let lab = Lab::manifests("");
    let unfit = |(variant, deployment): (&str, &toll_lab::Deployment)| {
        let reason = lab.render(deployment).err()?;
        Some((variant.to_owned(), reason.to_string()))
    };
    plan.ready().filter_map(unfit).collect()
}

/// The plan without the variants that cannot run here; what can run still runs.
fn without(wish: &Wish, missing: Vec<(String, String)>) -> Result<Plan, CliError> {
    for (variant, reason) in &missing {
        say(&format!("warning: {variant} is skipped: {reason}"));
    }
    wish.plan(missing)
}

fn resumed(
    run: &Path,
    rounds: Option<RoundsChoice>,
    interrupt: &Arc<AtomicBool>,
) -> Result<(Store, Plan, Lab), CliError> {
    let (store, mut plan) = Store::open(run)?;
    // What another toll carries on is not touched.
    drop(store.lock()?);
    let mut host = store.host()?;
    let (artifacts, lab) = match &host.cluster {
        Some(cluster) => {
            (FoundArtifacts::default(), cluster_lab(cluster, plan.load_pods, interrupt)?)
        }
        None => {
            let artifacts = unless_interrupted(interrupt, FoundArtifacts::of(&plan))?.complete()?;
            let lab = lab(host.isolation, host.realtime, &artifacts, interrupt)?;
            (artifacts, lab)
        }
    };
    run::check(&plan, &lab)?;
    let now = run::host_facts(&lab, host.realtime, artifacts.found(), &plan)?;
    if let Some(file) = host.changed_program(&now) {
        return Err(run::RunError::OtherProgram { file: file.into() }.into());
    }
    host.resume_on(&now);
    host.changes.iter().for_each(|change| say(&format!("warning: {change}")));
    store.write_host(&host)?;
    if let Some(rounds) = rounds {
        plan = extended(plan, rounds, store.rounds()?.len());
        store.extend(&plan)?;
    }
    Ok((store, plan, lab))
}

/// The plan with another number of rounds, which then is what ends the run.
fn extended(mut plan: Plan, rounds: RoundsChoice, done: usize) -> Plan {
    plan.extent = PlannedExtent {
        rounds: Some(match rounds {
            RoundsChoice::All(rounds) => rounds,
            RoundsChoice::More(more) => done + more,
        }),
        for_s: None,
        width: None,
        ..plan.extent
    };
    plan
}

/// `toll load`.
pub fn load(arguments: &LoadArguments) -> Result<u8, CliError> {
    let stop = catch_signals(&OF_A_LOAD)?;
    conclude(load::load(arguments, &shell(&stop))?)
}

/// `toll merge`.
pub fn merge(arguments: &MergeArguments) -> Result<u8, CliError> {
    conclude(load::merge(arguments, &shell(&AtomicBool::new(false)))?)
}

fn shell(stop: &AtomicBool) -> Shell<'_> {
    let (width, colour) = stdout_style();
    Shell { say: &say, width, colour, stop }
}

fn conclude(outcome: Outcome) -> Result<u8, CliError> {
    if let Some(text) = &outcome.text {
        print(text)?;
    }
    match outcome.ending {
        LoadEnding::Done => Ok(exit::DONE),
        LoadEnding::Unwritten(fault) | LoadEnding::Nothing(fault) | LoadEnding::Unkept(fault) => {
            Err(fault.into())
        }
        LoadEnding::Interrupted => {
            say(if outcome.text.is_some() { "interrupted" } else { "interrupted: no summary" });
            Ok(exit::INTERRUPTED)
        }
        LoadEnding::Crossed(conditions) => {
            conditions.iter().for_each(|condition| say(&format!("failed: {condition}")));
            Ok(exit::CROSSED)
        }
    }
}

/// `toll plan`.
pub fn plan(arguments: &PlanArguments) -> Result<u8, CliError> {
    let rounds = arguments.rounds.map(|rounds| rounds as usize);
    let plan = Wish::of(&arguments.choice, rounds)?.plan(vec![])?;
    let level = arguments.choice.isolation.map(isolation);
    let lab = match arguments.choice.on {
        OnChoice::Kubernetes => Lab::manifests(&arguments.choice.image),
        OnChoice::Machine => lab(level, false, &FoundArtifacts::default(), &Arc::default())?,
    };
    let plan = run::fitted(plan, &lab);
    run::check(&plan, &lab)?;
    if arguments.json {
        print(&serde_json::to_string_pretty(&plan).expect("a plan is plain data"))?;
        return Ok(exit::DONE);
    }
    let mut rendered = Vec::new();
    for (variant, _) in plan.ready() {
        let deployment = plan.largest(variant).expect("it runs");
        rendered.push((variant.to_owned(), lab.render(&deployment)?));
    }
    print(&plan::listing(&plan, &rendered))?;
    Ok(exit::DONE)
}

/// `toll studies`.
pub fn studies() -> Result<u8, CliError> {
    for (name, text) in study::builtin() {
        let (study, _) = read(name, text)?;
        print(&format!("{name:<18} {}", study.question.unwrap_or_default()))?;
    }
    Ok(exit::DONE)
}

/// `toll study`.
pub fn study(arguments: &StudyArguments) -> Result<u8, CliError> {
    if arguments.default {
        print(study::annotated_default())?;
    } else if arguments.schema {
        print(&serde_json::to_string_pretty(&study::schema()).expect("a schema is plain data"))?;
    } else {
        print(&study_text(arguments.study.as_deref().unwrap_or_default())?.1)?;
    }
    Ok(exit::DONE)
}

/// `toll report`.
pub fn report(arguments: &ReportArguments) -> Result<u8, CliError> {
    let Some(run) = &arguments.run else {
        print(&report::json_schema())?;
        return Ok(exit::DONE);
    };
    let (store, _) = Store::open(run)?;
    if let Some(calibration) = crate::calibrate::earlier(&store)? {
        print(&match arguments.format {
            ReportFormat::Terminal | ReportFormat::Markdown => page_of::terminal(&calibration),
            ReportFormat::Json => page_of::json(&calibration),
            ReportFormat::Html => page_of::html(&calibration),
        })?;
        return Ok(exit::DONE);
    }
    let findings = analysis::findings(&store.read()?);
    let is_written = match write_reports(&store, &findings) {
        Err(CliError::Store(error)) if error.is_forbidden() => false,
        written => written.map(|()| true)?,
    };
    let (width, colour) = stdout_style();
    print(&match arguments.format {
        ReportFormat::Terminal => report::full(&findings, width, colour),
        ReportFormat::Markdown => report::markdown(&findings),
        ReportFormat::Json => report::json(&findings),
        ReportFormat::Html => report::html(&findings),
    })?;
    say(&match is_written {
        true => format!("report: {}", store.dir().join("report.html").display()),
        false => {
            format!("{} is read only: its report files stay as they are", store.dir().display())
        }
    });
    Ok(exit::DONE)
}

/// `toll doctor`.
pub fn doctor(arguments: &DoctorArguments) -> Result<u8, CliError> {
    if arguments.on == OnChoice::Kubernetes {
        return print_cluster(&toll_lab::survey_cluster()?);
    }
    print("ISOLATION LEVELS")?;
    for (level, possible) in toll_lab::survey() {
        let level = level.to_string();
        match possible {
            Ok(()) => print(&format!("  {level:<10} yes"))?,
            Err(reason) => print(&format!("  {level:<10} no: {reason}"))?,
        }
    }
    print("\nPARTS")?;
    // Each for itself: one that cannot be had keeps none of the others away.
    let fetches = [Artifact::Envoy, Artifact::Postgres, Artifact::OpenTelemetry];
    let fetched: Vec<_> = match arguments.fetch {
        true => fetches.map(|artifact| artifact.find(Fetch::Allowed)).into(),
        false => Vec::new(),
    };
    for artifact in artifacts::statuses() {
        let found = match &artifact.found {
            Ok(found) => format!("{} ({}): {}", found.version, found.source, found.path.display()),
            Err(error) => format!("no: {error}\n             {}", error.help().unwrap_or_default()),
        };
        print(&format!("  {:<10} {found}", artifact.name))?;
    }
    fetched.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(exit::DONE)
}

/// What a run in this cluster would find.
fn print_cluster(cluster: &ClusterSurvey) -> Result<u8, CliError> {
    print(&format!("CLUSTER\n  {}", cluster.server))?;
    match &cluster.nodes {
        Ok(nodes) => {
            for (name, describes) in nodes {
                print(&format!("  node {name}: {describes}"))?;
            }
        }
        Err(reason) => print(&format!("  nodes: {reason}"))?,
    }
    print("\nMESHES")?;
    if cluster.meshes.is_empty() {
        print("  none: a `sidecar` variant runs with Envoys of toll's own")?;
    }
    for (mesh, namespace) in &cluster.meshes {
        print(&format!("  {mesh} (namespace {namespace})"))?;
    }
    print("\nA RUN")?;
    match cluster.forbidden.as_slice() {
        [] => print("  may do all that it needs")?,
        forbidden => print(&format!(
            "  may not: {}\n  `toll manifests --rbac` prints the role that it needs",
            forbidden.join(", ")
        ))?,
    }
    print(&match &cluster.node_counters {
        Ok(()) => "  may read the nodes' counters, by pods that mount them".to_owned(),
        Err(reason) => format!("  may not read the nodes' counters: {reason}"),
    })?;
    Ok(exit::DONE)
}

/// `toll manifests`.
pub fn manifests(arguments: &ManifestsArguments) -> Result<u8, CliError> {
    if arguments.rbac {
        print(toll_lab::role_of_a_run())?;
        return Ok(exit::DONE);
    }
    let (name, text) = study_text(arguments.study.as_deref().unwrap_or_default())?;
    let (study, warnings) = read(&name, &text)?;
    let choices = Choices {
        variants: arguments.variant.iter().cloned().collect(),
        in_cluster: true,
        ..Choices::default()
    };
    let plan = plan::resolve(&study, &choices, warnings)?;
    let lab = Lab::manifests(&arguments.image);
    for (variant, _) in plan.ready() {
        if arguments.variant.as_ref().is_some_and(|wanted| wanted != variant) {
            continue;
        }
        let deployment = plan.largest(variant).expect("it runs");
        for file in lab.render(&deployment)? {
            print(&format!("---\n# {variant}: {}\n{}", file.name, file.text.trim_end()))?;
        }
    }
    Ok(exit::DONE)
}

/// `toll clean`.
pub fn clean(arguments: &CleanArguments) -> Result<u8, CliError> {
    let removed = match arguments.on {
        OnChoice::Machine => toll_lab::clean()?,
        OnChoice::Kubernetes => toll_lab::clean_cluster()?,
    };
    if removed.is_empty() {
        print("nothing to clean")?;
    }
    for thing in removed {
        print(&format!("removed {thing}"))?;
    }
    Ok(exit::DONE)
}

/// A study, and what the user chose of it.
pub(super) struct Wish {
    /// The study file's.
    pub(super) text: String,
    study: Study,
    warnings: Vec<String>,
    choices: Choices,
}

impl Wish {
    fn of(choice: &StudyChoice, rounds: Option<usize>) -> Result<Self, CliError> {
        let (name, text) = study_text(&choice.study)?;
        let (study, warnings) = read(&name, &text)?;
        let choices = Choices {
            database: choice.database.map(Into::into),
            profile: profile(choice),
            rounds,
            for_s: choice.time_s,
            width: choice.width,
            curve: choice.curve,
            variants: choice.variants.clone(),
            against_itself: choice.aa,
            runtime: choice.runtime.map(Into::into),
            files: files(&study, &directory_of(&choice.study))?,
            directory: directory_of(&choice.study),
            seed: choice.seed.unwrap_or_else(seed_from_clock),
            unavailable: vec![],
            in_cluster: choice.on == OnChoice::Kubernetes,
            lacks_mongodb: !toll_service::SPEAKS_MONGODB,
            ztunnel: ztunnel(&study, &choice.variants)?,
        };
        Ok(Self { text, study, warnings, choices })
    }

    /// What will happen; `unavailable` are variants that cannot run here, each with its reason.
    fn plan(&self, unavailable: Vec<(String, String)>) -> Result<Plan, CliError> {
        let choices = Choices { unavailable, ..self.choices.clone() };
        Ok(plan::resolve(&self.study, &choices, self.warnings.clone())?)
    }
}

/// What is in the files that a study refers to.
fn files(study: &Study, directory: &Path) -> Result<Files, CliError> {
    let read = |file: &Path| match std::fs::read(directory.join(file)) {
        Ok(bytes) => Ok((file.to_owned(), bytes)),
        Err(source) => {
            Err(CliError::Unreadable { path: directory.join(file).display().to_string(), source })
        }
    };
    study.files().map(read).collect()
}

/// The ztunnel that a variant may want. It is never fetched, so looking for it is all that there is to do.
fn ztunnel(study: &Study, chosen: &[String]) -> Result<Option<PathBuf>, CliError> {
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|other| other == name);
    let wants = |variant: &study::Variant| {
        variant.ambient.is_some_and(|ambient| ambient.proxy != study::NodeProxy::Envoy)
    };
    if !study.variants.iter().any(|(name, variant)| is_chosen(name.as_str()) && wants(variant)) {
        return Ok(None);
    }
    match Artifact::Ztunnel.find(Fetch::Forbidden) {
        Ok(found) => Ok(Some(found.path)),
        Err(ArtifactError::Missing(_)) => Ok(None),
        // A variable that leads nowhere: what the user wanted must not be another proxy without a word.
        Err(error) => Err(error.into()),
    }
}

pub(super) fn read(name: &str, text: &str) -> Result<(Study, Vec<String>), CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (study, warnings) =
        study::read(name, text, &variable).map_err(|errors| CliError::Study(Box::new(errors)))?;
    for warning in &warnings {
        say(&format!("warning: {name}: {warning}"));
    }
    Ok((study, warnings.iter().map(ToString::to_string).collect()))
}

/// A built-in study by name, else a file. Gives the name for messages, and the text.
pub(super) fn study_text(name: &str) -> Result<(String, String), CliError> {
    if let Some((name, text)) = study::builtin().iter().find(|(known, _)| *known == name) {
        return Ok((format!("{name}.yaml"), (*text).to_owned()));
    }
    if !Path::new(name).exists() && !name.contains(['/', '.']) {
        let known: Vec<String> =
            study::builtin().iter().map(|(name, _)| (*name).to_owned()).collect();
        let nearest = study::nearest(name, &known).map(str::to_owned);
        return Err(CliError::UnknownStudy { name: name.into(), nearest });
    }
    let text = std::fs::read_to_string(name)
        .map_err(|source| CliError::Unreadable { path: name.into(), source })?;
    Ok((name.to_owned(), text))
}

/// The folder of a study file; where toll runs for a built-in study.
fn directory_of(study: &str) -> PathBuf {
    let file = std::path::absolute(study).unwrap_or_else(|_| study.into());
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

fn profile(choice: &StudyChoice) -> Profile {
    match (choice.quick, choice.paper) {
        (true, _) => Profile::Quick,
        (_, true) => Profile::Paper,
        _ => Profile::Default,
    }
}

/// Any number will do: it is recorded with the run.
fn seed_from_clock() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or_default()
}

fn lab(
    isolation: Option<Isolation>,
    realtime: bool,
    artifacts: &FoundArtifacts,
    interrupt: &Arc<AtomicBool>,
) -> Result<Lab, CliError> {
    let toll = std::env::current_exe().map_err(CliError::Signals)?;
    let command = |name: &str| vec![toll.clone().into(), name.into()];
    Ok(Lab::local(LocalOptions {
        isolation,
        collector: command("collector"),
        artifacts: artifacts.paths(),
        realtime,
        interrupt: Arc::clone(interrupt),
        listener: Listener::new(say),
        ..LocalOptions::new(command("service"), command("engine"), std::env::temp_dir())
    })?)
}

fn cluster_lab(
    choice: &ClusterChoice,
    load_pods: usize,
    interrupt: &Arc<AtomicBool>,
) -> Result<Lab, CliError> {
    Ok(Lab::kubernetes(KubernetesOptions {
        image: choice.image.clone(),
        exact_cpu: choice.exact_cpu,
        load_pods,
        longest_silence: KubernetesOptions::LONGEST_SILENCE,
        work_dir: std::env::temp_dir(),
        interrupt: Arc::clone(interrupt),
    })?)
}

fn isolation(choice: IsolationChoice) -> Isolation {
    match choice {
        IsolationChoice::Pods => Isolation::Pods,
        IsolationChoice::Rootless => Isolation::Rootless,
        IsolationChoice::Loopback => Isolation::Loopback,
    }
}

pub(super) fn default_dir(study: &str) -> PathBuf {
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    Path::new("runs").join(format!("{time}-{study}"))
}

/// What is said to the first signal, and to the second.
pub(super) struct LastWords {
    first: &'static str,
    second: &'static str,
}

pub(super) const OF_A_RUN: LastWords = LastWords {
    first: "ending the round and taking the lab down; once more to leave at once",
    second: "left at once: `toll clean` or the next run removes what is still there",
};
const OF_A_LOAD: LastWords =
    LastWords { first: "ending the load; once more to leave at once", second: "left at once" };

/// The first signal ends the run in order, a second one at once: then the kernel ends what toll started.
pub(super) fn catch_signals(words: &'static LastWords) -> Result<Arc<AtomicBool>, CliError> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(CliError::Signals)?;
    let heard = Arc::clone(&interrupt);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if heard.swap(true, Ordering::Relaxed) {
                say(words.second);
                std::process::exit(exit::INTERRUPTED.into());
            }
            say(words.first);
        }
    });
    Ok(interrupt)
}

fn reported(store: &Store) -> Result<Findings, CliError> {
    let findings = analysis::findings(&store.read()?);
    write_reports(store, &findings)?;
    Ok(findings)
}

fn write_reports(store: &Store, findings: &Findings) -> Result<(), CliError> {
    store.write_report("report.json", &report::json(findings))?;
    store.write_report("report.md", &report::markdown(findings))?;
    store.write_report("report.html", &report::html(findings))?;
    Ok(())
}

/// Whether every variant that should run has slices that count under every load.
fn every_variant_counts(findings: &Findings) -> bool {
    let wanted = findings.variants.iter().filter(|variant| variant.skipped.is_none()).count();
    findings.loads.iter().all(|load| load.variants.len() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_that_the_user_broke_off_ends_the_command_as_interrupted_whatever_came_of_it() {
        let interrupted = AtomicBool::new(true);
        for outcome in [Ok(()), Err(CliError::Output(std::io::ErrorKind::Other.into()))] {
            let ended = unless_interrupted(&interrupted, outcome).unwrap_err();
            assert_eq!(ended.exit_status(), exit::INTERRUPTED);
        }
        assert!(unless_interrupted(&AtomicBool::new(false), Ok(())).is_ok());
    }
}
