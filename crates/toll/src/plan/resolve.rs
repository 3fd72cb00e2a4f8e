//! Turns a study and the user's choices into a plan. Collects every problem before it gives up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::Diagnostic;
use toll_lab::{
    AgentKind, Ambient, BuiltIn, Compilers, DataPlane, DatabaseServer, Deployment, Egress,
    EgressGateway, EnvoySettings, JavaAgent, Mtls, NodeProxy, Program, Runtime, Service,
    SidecarProxy, fits_mesher,
};
use toll_load::Body;

use super::application::Chosen;
use super::{
    Arm, Cell, FORMAT, Plan, PlannedExtent, PlannedKind, PlannedLoad, PlannedRate,
    PlannedReference, PlannedRequest, PlannedSettle, PlannedUsers, PlannedVariant, PublishedFigure,
    Recomputed, Release, SliceLength, Traffic, VariantState, application, estimate, headline_load,
};
use crate::study::{self, App, Profile, Study};

/// What is in files, by their paths as the study has them.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What the user chose on the command line.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// How thoroughly.
    pub profile: Profile,
    /// Rounds instead of what the study says of how long.
    pub rounds: Option<usize>,
    /// As many rounds as fit into these seconds, instead of what the study says of how long.
    pub for_s: Option<f64>,
    /// Rounds until the half-widths of the headline metrics are at most this share of their figures, instead of what
    /// the study says of how long; with `for_s` whichever comes first.
    pub width: Option<f64>,
    /// Add a curve of latency and cost against the rate, unless the study has one.
    pub curve: bool,
    /// Only these variants (the baseline always runs); all when empty.
    pub variants: Vec<String>,
    /// Hold the baseline against itself as if it were a variant.
    pub against_itself: bool,
    /// The server of every external database, instead of the study's.
    pub database: Option<DatabaseServer>,
    /// What all built-in services are written in, instead of what the study says.
    pub runtime: Option<Runtime>,
    /// What is in the files that the study refers to.
    pub files: Files,
    /// The folder of the study file: relative paths of commands lead from there.
    pub directory: PathBuf,
    /// Seed of every random choice.
    pub seed: u64,
    /// Variants that cannot run here, and why: a part that they need is missing.
    pub unavailable: Vec<(String, String)>,
    /// Whether it will run in a cluster.
    pub in_cluster: bool,
    /// This binary was built without the feature `mongodb`.
    pub lacks_mongodb: bool,
    /// The ztunnel that was found, if one was.
    pub ztunnel: Option<PathBuf>,
}

/// Why a study cannot be planned as chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum PlanError {
    /// `--variants` names one that the study does not have.
    #[error("the study has no variant `{name}`")]
    #[diagnostic(help("{}the study's variants: {}", meant(nearest.as_deref()), known.join(", ")))]
    UnknownVariant {
        /// As typed.
        name: String,
        /// Those that it has.
        known: Vec<String>,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    /// Nothing is left to hold against the baseline.
    #[error("nothing to compare: only the baseline `{baseline}` would run")]
    #[diagnostic(help("{}use --aa to hold the baseline against itself", joined(skipped)))]
    OnlyBaseline {
        baseline: String,
        /// Why the others do not run.
        skipped: Vec<String>,
    },
    /// The baseline itself cannot run.
    #[error("the baseline `{baseline}` cannot run: {reason}")]
    #[diagnostic(help("give what it needs, or name another baseline in the study"))]
    BaselineSkipped {
        baseline: String,
        /// Why.
        reason: String,
    },
    /// `--runtime` is about nothing in this study.
    #[error("the study has no built-in service to choose a runtime for")]
    #[diagnostic(help("leave --runtime out: none of its services is the built-in one"))]
    NoRuntime,
    /// `--database` is about nothing in this study.
    #[error("the study has no external database to choose a server for")]
    #[diagnostic(help("leave --database out, or try it with `toll run egress-gateway`"))]
    NoExternalDatabase,
    /// The study's database needs a feature that this binary was built without.
    #[error("{database} is a MongoDB, and this toll was built without MongoDB's driver")]
    #[diagnostic(help(
        "build it with `cargo build --release --locked` (the feature `mongodb` is on by default), or use --database postgres"
    ))]
    NoMongoDb { database: String },
    /// A file of settings is no YAML.
    #[error("cannot read {} as YAML: {said}", file.display())]
    #[diagnostic(help(
        "a filter is a mapping with `name` and `typed_config`; an overlay is a part of Envoy's bootstrap"
    ))]
    NoYaml {
        /// As the study names it.
        file: PathBuf,
        /// What is wrong with it.
        said: String,
    },
    /// A JVM cannot keep a fault's times exactly.
    #[error("{service} stalls, and a service on the spring runtime cannot")]
    #[diagnostic(help("give it `runtime: native`, or take its `stall` out of the study"))]
    StallOnSpring { service: String },
    /// Nowhere in the application an agent for JVMs could go.
    #[error("`{variant}` has an agent for JVMs, and no service runs on one")]
    #[diagnostic(help(
        "use --runtime spring, or make a service's program `{{built_in: {{runtime: spring}}}}`, a `petclinic` or a `command`"
    ))]
    NoJvm { variant: String },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("did you mean `{name}`? "))
}

fn joined(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("{reason}; ")).collect()
}

fn is_mongodb(service: &Service) -> bool {
    let server = match service.program {
        Program::AirlineDatabase(airline) => Some(airline.server),
        _ => None,
    };
    server == Some(DatabaseServer::MongoDb)
}

/// The plan of a study. `study_warnings` are what reading the study file warned of.
///
/// # Errors
/// When a choice does not fit the study.
pub fn resolve(
    study: &Study,
    choices: &Choices,
    study_warnings: Vec<String>,
) -> Result<Plan, PlanError> {
    let study = as_chosen(study, choices);
    if choices.database.is_some() && study.app.external().next().is_none() {
        return Err(PlanError::NoExternalDatabase);
    }
    let compilers = compilers(choices.profile);
    let chosen = Chosen {
        runtime: choices.runtime,
        database: choices.database,
        compilers,
        directory: &choices.directory,
    };
    let services = application::services(&study, chosen);
    if let Some(database) = services.iter().find(|of| choices.lacks_mongodb && is_mongodb(of)) {
        return Err(PlanError::NoMongoDb { database: database.name.clone() });
    }
    let runtime = runtime_in_words(&services);
    if choices.runtime.is_some() && runtime.is_none() {
        return Err(PlanError::NoRuntime);
    }
    if let Some(service) = services.iter().find(|service| stalls_on_spring(service)) {
        return Err(PlanError::StallOnSpring { service: service.name.clone() });
    }
    if let Some(variant) = agent_for_nothing(&study, &services) {
        return Err(PlanError::NoJvm { variant });
    }
    let mut variants = variants(&study, choices, &services, chosen)?;
    let mut warnings = study_warnings;
    warnings.extend(first_compiler_only(&services));
    if choices.variants.is_empty() {
        warnings
            .extend(against_itself_for_want_of_others(&mut variants, study.baseline().as_str()));
    }
    let arms = arms(&variants, study.baseline().as_str())?;
    let loads = loads(&study, choices);
    warnings.extend(case_before_is_another(&study, &variants, &loads));
    let mut plan = Plan {
        version: FORMAT,
        study: study.name.to_string(),
        question: study.question.clone().unwrap_or_default(),
        baseline: study.baseline().to_string(),
        seed: choices.seed,
        profile: profile_name(choices.profile).into(),
        runtime,
        headline: study.headline.clone(),
        bound: study.bound.fraction(),
        idle_s: seconds(study.idle),
        extent: extent(&study, choices, &variants),
        cycles: study.cycles as usize,
        guard_s: GUARD_S,
        guards_s: vec![],
        settle: planned_settle(study.settle),
        side_by_side: true,
        variants,
        arms,
        load_pods: study.load.pods as usize,
        loads,
        traffic: study.traffic.and_then(|traffic| planned_traffic(&traffic, &services)),
        reference: study.reference.as_ref().map(reference),
        warnings,
    };
    plan.fit_into_its_time();
    Ok(plan)
}

/// Begin of a slice that is not counted: connections wake up, and the load of the arm before has drained, seconds.
const GUARD_S: f64 = 0.1;
/// Starts that say how one differs from the next, of services that start at once and of JVMs.
const LEAST_ROUNDS: [usize; 2] = [8, 4];
/// A width that is never reached ends the run all the same, seconds.
const MOST_S: f64 = 1800.0;

/// What the command line says of how long goes before all that the study says of it.
fn extent(study: &Study, choices: &Choices, variants: &[PlannedVariant]) -> PlannedExtent {
    let chosen = choices.rounds.is_some() || choices.for_s.is_some() || choices.width.is_some();
    let (for_s, width) = match chosen {
        true => (choices.for_s, choices.width),
        false => (study.time.map(seconds), study.width.map(|width| width.fraction())),
    };
    let for_s = for_s.or(width.filter(|_| choices.rounds.is_none()).map(|_| MOST_S));
    let rounds = choices.rounds.or(for_s.is_none().then_some(study.rounds as usize));
    let [at_once, jvm] = LEAST_ROUNDS;
    PlannedExtent {
        rounds,
        for_s,
        width,
        least_rounds: if variants.iter().any(is_on_jvm) { jvm } else { at_once },
    }
}

fn planned_traffic(traffic: &study::Traffic, services: &[Service]) -> Option<Traffic> {
    let study::Rate::PerSecond(per_s) = traffic.rate else { return None };
    let takes_sidecar = |service: &&Service| service.takes_sidecar();
    let here = services.iter().filter(takes_sidecar).map(|service| service.replicas.max(1)).sum();
    Some(Traffic { per_s, pods: traffic.pods.map(|there| (there as usize, here)) })
}

fn is_on_jvm(variant: &PlannedVariant) -> bool {
    match &variant.state {
        VariantState::Ready(deployment) => estimate::is_on_jvm(deployment),
        VariantState::Skipped(_) => false,
    }
}

impl Plan {
    /// Takes fewer cycles where the time would else have too few rounds in it: starts say more than cycles.
    pub fn fit_into_its_time(&mut self) {
        let is_short = |plan: &Self| plan.budget().rounds < plan.extent.least_rounds;
        let time_decides = self.extent.for_s.is_some() && self.extent.rounds.is_none();
        while time_decides && self.cycles > 1 && is_short(self) {
            self.cycles -= 1;
        }
    }

    /// What there is to say before a run of so few rounds; the report says it of those that there were.
    pub fn few_rounds(&self) -> Option<String> {
        let (rounds, least) = (self.budget().rounds, self.extent.least_rounds);
        let said = if rounds == 1 { "1 round says".into() } else { format!("{rounds} rounds say") };
        (rounds < least).then(|| {
            format!("{said} little of how one start differs from the next, so intervals are wide; take {least} or more")
        })
    }
}

/// On a staircase each case is held against the one before it: that is another one when cases between did not run.
fn case_before_is_another(
    study: &Study,
    variants: &[PlannedVariant],
    loads: &[PlannedLoad],
) -> Option<String> {
    let is_step =
        |load: &PlannedLoad| load.cell.as_ref().is_some_and(|cell| cell.connections.is_some());
    loads.iter().find(|load| is_step(load))?;
    let runs = |name: &&str| {
        variants.iter().any(|v| v.name == *name && matches!(v.state, VariantState::Ready(_)))
    };
    let written: Vec<&str> = study.variants.keys().map(|name| name.as_str()).collect();
    let present: Vec<&str> = written.iter().copied().filter(runs).collect();
    let are_apart = |pair: &&[&str]| {
        !pair.contains(&study.baseline().as_str()) && !written.windows(2).any(|next| next == *pair)
    };
    let apart = present.windows(2).filter(are_apart);
    let apart: Vec<String> = apart.map(|pair| format!("{} against {}", pair[1], pair[0])).collect();
    (!apart.is_empty()).then(|| {
        format!(
            "cases between were left out, so that `the case before` is another than in the study: {}",
            apart.join(", ")
        )
    })
}

/// The study with what the profile changes, and on top of that what the chosen runtime needs.
fn as_chosen(study: &Study, choices: &Choices) -> Study {
    let study = study.clone().with_profile(choices.profile);
    match choices.runtime {
        Some(Runtime::Spring) => {
            let changes = study.spring.clone();
            study.with(&changes)
        }
        Some(Runtime::Native) | None => study,
    }
}

/// What the built-in services are written in.
fn runtime_in_words(services: &[Service]) -> Option<String> {
    let runs = |wanted: Runtime| {
        services.iter().any(|service| match &service.program {
            Program::BuiltIn(BuiltIn { runtime, .. }) => *runtime == wanted,
            _ => false,
        })
    };
    let words = match (runs(Runtime::Native), runs(Runtime::Spring)) {
        (false, false) => return None,
        (true, false) => "native",
        (false, true) => "spring",
        (true, true) => "native and spring",
    };
    Some(words.into())
}

fn stalls_on_spring(service: &Service) -> bool {
    match &service.program {
        Program::BuiltIn(built_in) => {
            built_in.runtime == Runtime::Spring && built_in.stall.is_some()
        }
        _ => false,
    }
}

/// A variant with an agent, when there is no JVM for one.
fn agent_for_nothing(study: &Study, services: &[Service]) -> Option<String> {
    let (name, _) = study.variants.iter().find(|(_, variant)| variant.java_agent.is_some())?;
    let takes_agent = services.iter().any(|service| service.program.takes_agent());
    (!takes_agent).then(|| name.to_string())
}

/// A second compiler works for minutes where a core has to do all else, too, and what it does is charged to the service:
/// a first look does without.
fn compilers(profile: Profile) -> Compilers {
    match profile {
        Profile::Quick => Compilers::First,
        Profile::Default | Profile::Paper => Compilers::Both,
    }
}

fn first_compiler_only(services: &[Service]) -> Option<String> {
    let is_first = |service: &Service| match service.program {
        Program::Petclinic(petclinic) => petclinic.compilers == Compilers::First,
        _ => false,
    };
    services.iter().any(is_first).then(|| {
        "for a first look the JVMs compile with their first compiler only, which is done in seconds: a request costs about twice what it costs later; hold variants against each other, and quote figures of the default profile".into()
    })
}

fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Default => "default",
        Profile::Quick => "quick",
        Profile::Paper => "paper",
    }
}

fn variants(
    study: &Study,
    choices: &Choices,
    services: &[Service],
    chosen: Chosen<'_>,
) -> Result<Vec<PlannedVariant>, PlanError> {
    check_names(study, &choices.variants)?;
    let baseline = study.baseline().as_str();
    let wanted = |name: &str| {
        choices.variants.is_empty()
            || name == baseline
            || choices.variants.iter().any(|v| v == name)
    };
    let mut variants: Vec<PlannedVariant> = study
        .variants
        .iter()
        .filter(|(name, _)| wanted(name.as_str()))
        .map(|(name, variant)| {
            let (describes, data_plane) = data_plane(variant, &study.app, choices);
            let settings = variant.envoy.as_ref().map_or_else(String::new, settings_in_words);
            let describes = format!("{describes}{settings}{}", versions_in_words(variant));
            let services = application::of_variant(services, study, variant, chosen);
            let envoy = envoy_settings(variant.envoy.as_ref(), &choices.files)?;
            let planned = planned_variant(study, name.as_str(), &services, describes, data_plane);
            Ok(with_envoy(planned, envoy))
        })
        .map(|variant| Ok(skipped_if_unavailable(variant?, &choices.unavailable)))
        .collect::<Result<_, PlanError>>()?;
    if choices.against_itself {
        variants.retain(|variant| variant.name == baseline);
        let twin = twin(&variants, baseline);
        variants.extend(twin);
    }
    Ok(variants)
}

/// `; shop is ./shop-2 --port {port} with CACHE=on`
fn versions_in_words(variant: &study::Variant) -> String {
    let words = |(name, version): (&study::Name, &study::Version)| {
        let command =
            version.command.as_ref().map(|line| format!(" is {}", line.words().join(" ")));
        let env: Vec<String> =
            version.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let env = if env.is_empty() { String::new() } else { format!(" with {}", env.join(", ")) };
        format!("; {name}{}{env}", command.unwrap_or_default())
    };
    variant.services.iter().map(words).collect()
}

fn skipped_if_unavailable(
    variant: PlannedVariant,
    unavailable: &[(String, String)],
) -> PlannedVariant {
    let missing = unavailable.iter().find(|(name, _)| *name == variant.name);
    match (missing, &variant.state) {
        (Some((_, reason)), VariantState::Ready(_)) => {
            PlannedVariant { state: VariantState::Skipped(reason.clone()), ..variant }
        }
        _ => variant,
    }
}

/// The baseline as if it were a variant.
fn twin(variants: &[PlannedVariant], baseline: &str) -> Option<PlannedVariant> {
    let itself = variants.iter().find(|variant| variant.name == baseline)?;
    Some(PlannedVariant { name: format!("{baseline}-twin"), ..itself.clone() })
}

/// Adds the baseline as if it were a variant when all that it was to be held against is skipped: what can run still
/// runs, and shows what the machine's noise alone makes of two equal variants. Gives the warning to tell.
fn against_itself_for_want_of_others(
    variants: &mut Vec<PlannedVariant>,
    baseline: &str,
) -> Option<String> {
    let others = || variants.iter().filter(|variant| variant.name != baseline);
    let reasons: Vec<String> = others().filter_map(why_skipped).collect();
    if reasons.is_empty() || reasons.len() < others().count() {
        return None;
    }
    let twin = twin(variants, baseline)?;
    variants.push(twin);
    Some(format!(
        "{baseline} runs against itself, which tells the noise and no variant's cost, because {}",
        reasons.join("; ")
    ))
}

fn why_skipped(variant: &PlannedVariant) -> Option<String> {
    match &variant.state {
        VariantState::Ready(_) => None,
        VariantState::Skipped(reason) => Some(format!("{} is skipped: {reason}", variant.name)),
    }
}

fn check_names(study: &Study, names: &[String]) -> Result<(), PlanError> {
    let known: Vec<String> = study.variants.keys().map(ToString::to_string).collect();
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(PlanError::UnknownVariant {
            nearest: study::nearest(name, &known).map(str::to_owned),
            name: name.clone(),
            known,
        }),
    }
}

/// What comes up in each round: every variant, and the baseline once more.
fn arms(variants: &[PlannedVariant], baseline: &str) -> Result<Vec<Arm>, PlanError> {
    let mut arms = Vec::new();
    let mut skipped = Vec::new();
    for variant in variants {
        match &variant.state {
            VariantState::Ready(_) => {
                arms.push(Arm { variant: variant.name.clone(), again: false })
            }
            VariantState::Skipped(reason) if variant.name == baseline => {
                return Err(PlanError::BaselineSkipped {
                    baseline: baseline.into(),
                    reason: reason.clone(),
                });
            }
            VariantState::Skipped(_) => skipped.extend(why_skipped(variant)),
        }
    }
    if arms.len() < 2 {
        return Err(PlanError::OnlyBaseline { baseline: baseline.into(), skipped });
    }
    arms.push(Arm { variant: baseline.into(), again: true });
    Ok(arms)
}

fn planned_variant(
    study: &Study,
    name: &str,
    services: &[Service],
    describes: String,
    data_plane: Result<DataPlane, String>,
) -> PlannedVariant {
    let data_plane = data_plane.and_then(|plane| match plane.is_mesher() {
        true => fits_mesher(services).map(|()| plane),
        false => Ok(plane),
    });
    let state = match data_plane {
        Err(reason) => VariantState::Skipped(reason),
        Ok(data_plane) => VariantState::Ready(Deployment {
            name: name.into(),
            entry: study.app.entry.to_string(),
            services: services.to_vec(),
            data_plane,
            envoy: Box::default(),
            nodes: study.app.nodes as usize,
        }),
    };
    let on_jvm = match runtime_in_words(services).as_deref() {
        Some("spring") => ", services on Spring Boot",
        Some("native and spring") => ", some services on Spring Boot",
        _ => "",
    };
    PlannedVariant { name: name.into(), describes: format!("{describes}{on_jvm}"), state }
}

fn with_envoy(mut variant: PlannedVariant, envoy: EnvoySettings) -> PlannedVariant {
    if let VariantState::Ready(deployment) = &mut variant.state {
        *deployment.envoy = envoy;
    }
    variant
}

/// A user's own settings, with what is in their files.
fn envoy_settings(
    written: Option<&study::EnvoySettings>,
    files: &Files,
) -> Result<EnvoySettings, PlanError> {
    let Some(written) = written else { return Ok(EnvoySettings::default()) };
    let read = |file: &PathBuf| {
        let bytes = files.get(file).map(Vec::as_slice).unwrap_or_default();
        let unreadable = |said: String| PlanError::NoYaml { file: file.clone(), said };
        let text = std::str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        study::yaml(text).map_err(unreadable)
    };
    Ok(EnvoySettings {
        concurrency: written.concurrency,
        access_log: written.access_log,
        filters: written.filters.iter().map(read).collect::<Result<_, _>>()?,
        overlay: written.bootstrap_overlay.as_ref().map(read).transpose()?,
    })
}

/// `; Envoy with 1 worker, an access log, the filters lua.yaml, overlay.yaml over it`
fn settings_in_words(settings: &study::EnvoySettings) -> String {
    let study::EnvoySettings { concurrency, access_log, filters, bootstrap_overlay } = settings;
    let workers = concurrency.map(|n| format!("{n} worker{}", if n == 1 { "" } else { "s" }));
    let log = access_log.then(|| "an access log".to_owned());
    let filters = filters.iter().map(|file| format!("the filter {}", file.display()));
    let overlay = bootstrap_overlay.iter().map(|file| format!("{} over it", file.display()));
    let all: Vec<String> = workers.into_iter().chain(log).chain(filters).chain(overlay).collect();
    if all.is_empty() { String::new() } else { format!("; Envoy with {}", all.join(", ")) }
}

/// What stands in the path, in words and resolved; or why it cannot.
fn data_plane(
    variant: &study::Variant,
    app: &App,
    choices: &Choices,
) -> (String, Result<DataPlane, String>) {
    if let Some(agent) = &variant.java_agent {
        return java_agent(agent);
    }
    if let Some(ambient) = variant.ambient.filter(|ambient| ambient.by == study::By::Cluster) {
        let (word, mtls) = mtls_of(ambient.mtls);
        let describes = format!("the node proxies of the cluster's mesh, mTLS {word}");
        let plane = DataPlane::Ambient(Ambient {
            proxy: NodeProxy::Installed,
            mtls,
            waypoint: ambient.waypoint,
        });
        return (describes, in_a_cluster(choices).map(|()| plane));
    }
    if let Some(ambient) = &variant.ambient {
        return node_proxies(ambient, app, choices.ztunnel.as_ref());
    }
    match &variant.sidecar {
        None => ("the application alone".into(), Ok(DataPlane::Bare)),
        Some(study::Sidecar::Envoy { mtls, by: study::By::Cluster }) => {
            let (word, mtls) = mtls_of(*mtls);
            let describes = format!("the sidecars of the cluster's mesh, mTLS {word}");
            let (proxy, egress) = (SidecarProxy::Installed, Egress::default());
            let plane = DataPlane::Sidecar { proxy, mtls, egress };
            (describes, in_a_cluster(choices).map(|()| plane))
        }
        Some(study::Sidecar::Envoy { mtls, by: study::By::Toll }) => {
            let (word, mtls) = mtls_of(*mtls);
            let egress = variant.egress.clone().unwrap_or_default();
            let describes = sidecars_in_words(app, word, &egress);
            let (proxy, egress) = (SidecarProxy::Envoy, way_out(egress));
            (describes, Ok(DataPlane::Sidecar { proxy, mtls, egress }))
        }
        Some(study::Sidecar::Mesher { binary, .. }) => {
            let plane = match (binary.path(), choices.in_cluster) {
                (Err(variable), _) => Err(format!("{variable} is not set")),
                (Ok(_), true) => Err("toll starts Mesher on one machine, not in a cluster".into()),
                (Ok(binary), false) => Ok(DataPlane::Mesher { binary: binary.into() }),
            };
            (format!("a Mesher sidecar beside {}, plaintext", each_of(app)), plane)
        }
    }
}

/// A mesh that is installed somewhere is not on this machine.
fn in_a_cluster(choices: &Choices) -> Result<(), String> {
    match choices.in_cluster {
        true => Ok(()),
        false => {
            Err("`by: cluster` joins the mesh of a cluster: run it with `--on kubernetes`".into())
        }
    }
}

/// What has a sidecar beside it.
fn each_of(app: &App) -> &'static str {
    let inside = app.databases.values().any(|database| database.airline().is_none());
    if inside { "each service and database" } else { "each service" }
}

/// Where databases are outside of the mesh, it is the way to them that tells variants apart.
fn sidecars_in_words(app: &App, mtls: &str, egress: &study::Egress) -> String {
    let database = match app.external().count() {
        0 => return format!("an Envoy sidecar beside {}, mTLS {mtls}", each_of(app)),
        1 => "the database",
        _ => "the databases",
    };
    let way = match egress {
        study::Egress::Bypass => "past them".to_owned(),
        study::Egress::Sidecar => "through them".to_owned(),
        study::Egress::Gateway(gateway) => {
            let mtls = if gateway.mtls { ", mTLS to it" } else { "" };
            let sni_proxy = if gateway.sni_proxy { ", SNI proxy" } else { "" };
            format!("through an egress gateway{mtls}{sni_proxy}")
        }
    };
    format!("Envoy sidecars, mTLS {mtls}; to {database} {way}")
}

fn way_out(egress: study::Egress) -> Egress {
    match egress {
        study::Egress::Bypass => Egress::Bypass,
        study::Egress::Sidecar => Egress::Sidecar,
        study::Egress::Gateway(study::EgressGateway { mtls, sni_proxy, hosts }) => {
            Egress::Gateway(EgressGateway { mtls, sni_proxy, hosts })
        }
    }
}

fn mtls_of(written: study::Mtls) -> (&'static str, Mtls) {
    match written {
        study::Mtls::Permissive => ("permissive", Mtls::Permissive),
        study::Mtls::Strict => ("strict", Mtls::Strict),
    }
}

/// A ztunnel where one was found and the study does not ask for Envoy.
fn node_proxies(
    ambient: &study::Ambient,
    app: &App,
    ztunnel: Option<&PathBuf>,
) -> (String, Result<DataPlane, String>) {
    let proxy = match (ambient.proxy, ztunnel) {
        _ if app.external().next().is_some() => {
            Err("node proxies carry nothing to a database outside of the mesh".to_owned())
        }
        (study::NodeProxy::Envoy, _) | (study::NodeProxy::Any, None) => Ok(NodeProxy::Envoy),
        (_, Some(binary)) => Ok(NodeProxy::Ztunnel { binary: binary.clone() }),
        (study::NodeProxy::Ztunnel, None) => {
            Err("no ztunnel was found: ZTUNNEL is not set, and PATH has none".to_owned())
        }
    };
    let (name, captured) = match &proxy {
        Ok(NodeProxy::Envoy) => ("Envoy in ztunnel's place", ""),
        Ok(NodeProxy::Ztunnel { .. }) if !app.gateways.is_empty() => {
            ("ztunnel", ", also for the gateway's pod")
        }
        Ok(NodeProxy::Ztunnel { .. } | NodeProxy::Installed) | Err(_) => ("ztunnel", ""),
    };
    let (word, mtls) = mtls_of(ambient.mtls);
    let waypoint = if ambient.waypoint { ", and a waypoint (Envoy)" } else { "" };
    let describes = format!("a node proxy ({name}) on each node{captured}{waypoint}, mTLS {word}");
    let waypoint = ambient.waypoint;
    (describes, proxy.map(|proxy| DataPlane::Ambient(Ambient { proxy, mtls, waypoint })))
}

fn java_agent(agent: &study::JavaAgent) -> (String, Result<DataPlane, String>) {
    let planned = |kind: AgentKind| {
        let settings = agent.settings().iter();
        DataPlane::Agent(JavaAgent {
            kind,
            settings: settings.map(|(name, value)| (name.clone(), value.to_string())).collect(),
            spans: spans(agent.spans()),
        })
    };
    match agent {
        study::JavaAgent::OpenTelemetry { .. } => {
            let planned = planned(AgentKind::OpenTelemetry);
            ("the OpenTelemetry Java agent in each JVM".into(), Ok(planned))
        }
        study::JavaAgent::EaseAgent { jar, .. } => {
            let planned = match jar.path() {
                Err(variable) => Err(format!("{variable} is not set")),
                Ok(jar) => Ok(planned(AgentKind::EaseAgent { jar: jar.into() })),
            };
            ("EaseAgent in each JVM".into(), planned)
        }
    }
}

/// By service, how many a request leaves there.
fn spans(written: &indexmap::IndexMap<study::Name, u32>) -> BTreeMap<String, u64> {
    written.iter().map(|(name, count)| (name.to_string(), u64::from(*count))).collect()
}

fn seconds(span: study::TimeSpan) -> f64 {
    span.get().as_secs_f64()
}

fn planned_settle(settle: study::Settle) -> PlannedSettle {
    PlannedSettle {
        slice_s: seconds(settle.slice),
        max_s: seconds(settle.max),
        connections: settle.connections,
        rest_s: seconds(settle.rest),
    }
}

/// The loads of the study, then those of curves; one more curve where it was asked for and the study has none.
fn loads(study: &Study, choices: &Choices) -> Vec<PlannedLoad> {
    let planned =
        |(name, load): (&study::Name, _)| planned_loads(name.as_str(), load, &choices.files);
    let all = study.loads.iter().flat_map(planned);
    let (mut points, mut loads): (Vec<_>, Vec<_>) = all.partition(PlannedLoad::is_of_curve);
    if choices.curve && points.is_empty() {
        let like = headline_load(&loads).unwrap_or(&loads[0]).clone();
        let like = PlannedLoad { slice: slice_length(None), ..like };
        points = points_of(&like, "curve", study::Curve::default());
    }
    loads.extend(points);
    loads
}

/// The load, each of its cells, or the points of its curve.
fn planned_loads(name: &str, load: &study::Load, files: &Files) -> Vec<PlannedLoad> {
    let whole = planned_load(name, load, files);
    match (&load.matrix, load.model) {
        (Some(matrix), _) => {
            let cells = matrix.combinations().into_iter();
            cells.map(|combination| cell_of(&whole, name, &combination)).collect()
        }
        (None, study::LoadModel::Curve(curve)) => points_of(&whole, name, curve),
        (None, _) => vec![whole],
    }
}

/// A load like this one at each rate of the curve; the application is of its own size.
fn points_of(like: &PlannedLoad, name: &str, curve: study::Curve) -> Vec<PlannedLoad> {
    let point = |percent: u32| {
        let share = f64::from(percent) / 100.0;
        let cell = Cell { load: name.into(), share: Some(share), ..Cell::default() };
        PlannedLoad {
            name: format!("{name}-{percent}"),
            release: of_capacity(share),
            cell: Some(cell),
            ..like.clone()
        }
    };
    curve.percents().map(point).collect()
}

fn of_capacity(share: f64) -> Release {
    let rate = PlannedRate::OfCapacity(share);
    Release::Open { rate, poisson: false, max_connections: CURVE_CONNECTIONS }
}

/// Bound on outstanding requests of a point of a curve, which may well be beyond what is carried.
const CURVE_CONNECTIONS: u32 = 256;

fn cell_of(whole: &PlannedLoad, name: &str, combination: &study::Combination) -> PlannedLoad {
    let rate = combination.rate.map(planned_rate);
    let release = match (whole.release, rate) {
        (Release::Open { poisson, max_connections, .. }, Some(rate)) => {
            Release::Open { rate, poisson, max_connections }
        }
        (Release::Closed { connections }, _) => {
            Release::Closed { connections: combination.connections.unwrap_or(connections) }
        }
        (release, _) => release,
    };
    let replicas = combination.replicas.as_ref();
    let cell = Cell {
        load: name.into(),
        share: None,
        connections: combination.connections,
        rate_per_s: rate.and_then(|rate| match rate {
            PlannedRate::PerSecond(rate) => Some(rate),
            PlannedRate::OfCapacity(_) => None,
        }),
        replicas: replicas.map(|(service, replicas)| (service.to_string(), *replicas as usize)),
        nodes: combination.nodes.map(|nodes| nodes as usize),
    };
    let name = combination.name(name);
    PlannedLoad { name, release, cell: Some(cell), ..whole.clone() }
}

fn planned_rate(rate: study::Rate) -> PlannedRate {
    match rate {
        study::Rate::PerSecond(rate) => PlannedRate::PerSecond(rate),
        study::Rate::OfCapacity(share) => PlannedRate::OfCapacity(share.fraction()),
    }
}

fn planned_load(name: &str, load: &study::Load, files: &Files) -> PlannedLoad {
    let kind = |(name, weighted): (&study::Name, &study::Weighted)| PlannedKind {
        name: name.to_string(),
        weight: weighted.weight,
        request: request(&weighted.request, files),
    };
    let (first, _) = load.asked()[0];
    PlannedLoad {
        mix: load.mix.iter().map(kind).collect(),
        name: name.into(),
        request: request(first, files),
        cell: None,
        release: release(&load.model),
        timeout_ms: load.timeout.get().as_millis() as u64,
        tolerated: load.failures.map_or(0.0, |failures| failures.at_most.fraction()),
        spans: spans(&load.spans),
        slice: slice_length(load.length),
    }
}

fn slice_length(written: Option<study::Length>) -> SliceLength {
    match written.unwrap_or_default() {
        study::Length::Slice(slice) => SliceLength::Seconds(seconds(slice)),
        study::Length::Requests(count) => SliceLength::Requests(count),
    }
}

fn users(vus: &study::Vus) -> PlannedUsers {
    PlannedUsers {
        users: vus.users,
        start: vus.start,
        ramp_s: seconds(vus.ramp),
        hold_s: seconds(vus.hold),
        ramp_down_s: seconds(vus.ramp_down),
        think_s: seconds(vus.think),
        parallel: vus.parallel,
        made_for_per_s: vus.scale.and_then(|scale| match scale.capacity {
            study::Rate::PerSecond(rate) => Some(rate),
            study::Rate::OfCapacity(_) => None,
        }),
    }
}

fn request(request: &study::Request, files: &Files) -> PlannedRequest {
    let content_type = request.content_type.clone().unwrap_or_else(|| "application/json".into());
    let written = request.body.clone().map(String::into_bytes);
    let from_file = || files.get(request.body_file.as_ref()?).cloned();
    PlannedRequest {
        method: request.method.name().into(),
        path: request.path.to_string(),
        headers: request.headers.iter().map(|(name, of)| (name.clone(), of.to_string())).collect(),
        content_type: request.has_body().then_some(content_type),
        body: Body(written.or_else(from_file).unwrap_or_default()),
        expect: request.expect.clone(),
    }
}

fn release(model: &study::LoadModel) -> Release {
    match model {
        study::LoadModel::Closed(closed) => Release::Closed { connections: closed.connections },
        study::LoadModel::Vus(vus) => Release::Users(users(vus)),
        // Each of its points has a share of its own.
        study::LoadModel::Curve(_) => of_capacity(1.0),
        study::LoadModel::Open(open) => Release::Open {
            rate: planned_rate(open.rate),
            poisson: open.arrivals == study::Arrivals::Poisson,
            max_connections: open.connections,
        },
    }
}

fn reference(reference: &study::Reference) -> PlannedReference {
    let mut figures = Vec::new();
    for (variant, loads) in &reference.figures {
        for (load, published) in loads {
            figures.extend(published.named().into_iter().map(|(figure, value)| PublishedFigure {
                variant: variant.to_string(),
                load: load.to_string(),
                figure,
                value,
            }));
        }
    }
    let recomputed = reference.recomputed.iter().map(|derived| Recomputed {
        variant: derived.variant.to_string(),
        against: derived.against.as_ref().map(ToString::to_string),
        load: derived.load.to_string(),
        derived: derived.derived,
        pod: derived.pod.as_ref().map(ToString::to_string),
        printed: derived.printed,
        recomputed: derived.recomputed,
        because: derived.because.clone(),
    });
    PlannedReference {
        source: reference.source.clone(),
        notes: reference.note.clone(),
        figures,
        recomputed: recomputed.collect(),
    }
}
