//! A plan as text: what runs, in which order, with which configurations, and how the variants differ.

use std::fmt::Write;

use similar::TextDiff;
use toll_lab::{
    AgentKind, BuiltIn, DataPlane, Petclinic, PetclinicPart, Program, Rendered, Runtime, Service,
};
use toll_load::Stop;

use super::{
    BringUp, Plan, PlannedLoad, PlannedRate, PlannedUsers, PlannedVariant, Release, VariantState,
};

/// The whole plan. `rendered` holds, for each variant that runs, the files that the lab would write.
pub fn listing(plan: &Plan, rendered: &[(String, Vec<Rendered>)]) -> String {
    let mut text = String::new();
    head(&mut text, plan);
    application(&mut text, plan);
    variants(&mut text, plan);
    loads(&mut text, plan);
    trials(&mut text, plan);
    configurations(&mut text, rendered);
    differences(&mut text, plan, rendered);
    text
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr $(, $($arg:tt)*)?) => {
        writeln!($text $(, $($arg)*)?).expect("a string takes all that is written to it")
    };
}

fn head(text: &mut String, plan: &Plan) {
    line!(text, "study     {} ({} profile)", plan.study, plan.profile);
    line!(text, "question  {}", plan.question);
    line!(text, "baseline  {}", plan.baseline);
    line!(text, "blocks    {}, order shuffled by seed {}", plan.blocks, plan.seed);
    match plan.bring_up {
        BringUp::Trial => {}
        BringUp::Block => line!(text, "bring-up  once for all loads of an arm in a block"),
        BringUp::Run => line!(text, "bring-up  once for each arm, all side by side"),
    }
    line!(text, "trials    {}, about {}", plan.trials.len(), minutes(plan.estimate_s()));
    for warning in &plan.warnings {
        line!(text, "warning   {warning}");
    }
}

/// The application, which is the same in every variant.
fn application(text: &mut String, plan: &Plan) {
    let Some((_, deployment)) = plan.ready().next() else { return };
    line!(text, "\nAPPLICATION, entered at {}", deployment.entry);
    for service in &deployment.services {
        line!(text, "  {:<14} {}", service.name, service_in_words(service));
    }
}

fn service_in_words(service: &Service) -> String {
    let program = match &service.program {
        Program::BuiltIn(built_in) => built_in_in_words(built_in),
        Program::Command(command) => command.join(" "),
        Program::Gateway if service.tls => "Envoy as an ingress gateway that ends TLS".into(),
        Program::Gateway => "Envoy as an ingress gateway".into(),
        Program::Nginx(nginx) => format!("nginx with a page of {} bytes", nginx.bytes),
        Program::Postgres(_) => "PostgreSQL on fresh data".into(),
        Program::Petclinic(petclinic) => petclinic_in_words(*petclinic),
        Program::Collector => "the collector of spans, toll's own".into(),
    };
    let replicas = match service.replicas {
        0 | 1 => String::new(),
        replicas => format!(", {replicas} replicas"),
    };
    let calls = match service.calls.as_slice() {
        [] => String::new(),
        calls => format!("; calls {}", calls.join(", ")),
    };
    let metrics = service.metrics.iter();
    let metrics: String =
        metrics.map(|m| format!("; metrics at port {}, {}", m.port, m.path)).collect();
    format!("{program}, port {}{replicas}{calls}{metrics}", service.port)
}

fn petclinic_in_words(petclinic: Petclinic) -> String {
    let part = match petclinic.part {
        PetclinicPart::Gateway => "gateway",
        PetclinicPart::Vets => "vets",
    };
    format!("the Petclinic's {part}, on a JVM with a heap of {} MiB", petclinic.heap_mib)
}

fn built_in_in_words(service: &BuiltIn) -> String {
    let runtime = match service.runtime {
        Runtime::Native => "built-in service",
        Runtime::Spring => "built-in service on Spring Boot",
    };
    let queries = service.queries.as_ref();
    let queries = queries.map(|queries| {
        let writes = if queries.write.is_some() { "reads and writes" } else { "reads" };
        format!(", {writes} over {} connections", queries.connections)
    });
    format!("{runtime}, {:?} of work{}", service.work, queries.unwrap_or_default())
}

fn variants(text: &mut String, plan: &Plan) {
    line!(text, "\nVARIANTS");
    for PlannedVariant { name, describes, state } in &plan.variants {
        match state {
            VariantState::Ready(deployment) => {
                line!(text, "  {name:<14} {describes}");
                settings(text, &deployment.data_plane);
            }
            VariantState::Skipped(reason) => line!(text, "  {name:<14} skipped: {reason}"),
        }
    }
}

/// What an agent is told beside its name and the collector's address.
fn settings(text: &mut String, data_plane: &DataPlane) {
    let DataPlane::Agent(agent) = data_plane else { return };
    if let AgentKind::EaseAgent { jar } = &agent.kind {
        line!(text, "  {:<14} from {}", "", jar.display());
    }
    for (name, value) in &agent.settings {
        line!(text, "  {:<14} {name}: {value}", "");
    }
}

fn loads(text: &mut String, plan: &Plan) {
    line!(text, "\nLOADS");
    for load in &plan.loads {
        let request = &load.request;
        line!(text, "  {:<14} {} {}, {}", load.name, request.method, request.path, in_words(load));
        if let Some(content_type) = &request.content_type {
            line!(text, "  {:<14} with {content_type}: {}", "", request.body);
        }
        if let Release::Users(users) = &load.release {
            users_in_detail(text, users);
        }
        if !load.spans.is_empty() {
            line!(text, "  {:<14} spans of a traced request: {}", "", spans_in_words(load));
        }
    }
    line!(text, "  {:<14} {} s before each load, to measure the idle cost", "(idle)", plan.idle_s);
    if let Some(settle) = plan.settle {
        line!(
            text,
            "  {:<14} on fresh services: closed loop, {} connections, in slices of {} s until stable, {} s at the most",
            "(discarded)",
            settle.connections,
            settle.slice_s,
            settle.max_s
        );
        if settle.rehearse {
            line!(
                text,
                "  {:<14} then every load once in every arm, block 0, which counts for nothing",
                ""
            );
        }
        if settle.rest_s > 0.0 {
            line!(
                text,
                "  {:<14} then no request until they are quiet, {} s at the most",
                "",
                settle.rest_s
            );
        }
    }
}

fn in_words(load: &PlannedLoad) -> String {
    let release = match load.release {
        Release::Closed { connections } => format!("closed loop, {connections} connections"),
        Release::Users(users) => format!("{} virtual users", users.users),
        Release::Open { rate, poisson, .. } => {
            let law = if poisson { "Poisson" } else { "constant" };
            format!("open loop, {}, {law} arrivals", rate_in_words(rate))
        }
    };
    let stop = match load.stop {
        Stop::AfterSeconds(seconds) => format!("{seconds} s"),
        Stop::AfterRequests(count) => format!("{count} requests"),
    };
    let warm_up = load.warm_up;
    format!("{release}; {stop} after {} to {} s of warm-up", warm_up.min_s, warm_up.max_s)
}

/// How users come and go, what each does, and how many there are here and why.
fn users_in_detail(text: &mut String, users: &PlannedUsers) {
    let PlannedUsers { users: most, start, ramp_s, hold_s, ramp_down_s, think_s, parallel, .. } =
        *users;
    let start = start.min(most);
    line!(
        text,
        "  {:<14} {start} at the begin, {ramp_s} s up, {hold_s} s all, {ramp_down_s} s down to {start}; each: {}, then {think_s} s of thought",
        "",
        match parallel {
            1 => "a request, its answer".into(),
            several => format!("{several} requests at once, all answers"),
        }
    );
    match users.made_for_knee_per_s {
        Some(there) => line!(
            text,
            "  {:<14} users here: {most}, times the knee of the slowest variant here / {there} requests/s where they were chosen; never more than {most}",
            ""
        ),
        None => line!(text, "  {:<14} users here: {most}, whatever the machine can hold", ""),
    }
}

/// `gateway 1, vets 9; 10 in all`
fn spans_in_words(load: &PlannedLoad) -> String {
    let each: Vec<String> =
        load.spans.iter().map(|(service, spans)| format!("{service} {spans}")).collect();
    format!("{}; {} in all", each.join(", "), load.spans.values().sum::<u64>())
}

fn rate_in_words(rate: PlannedRate) -> String {
    match rate {
        PlannedRate::PerSecond(rate) => format!("{rate} requests/s"),
        PlannedRate::OfKnee(share) => {
            format!("{:.0} % of the knee of the slowest variant, searched for first", share * 100.0)
        }
    }
}

fn trials(text: &mut String, plan: &Plan) {
    line!(text, "\nTRIALS, IN ORDER");
    for trial in &plan.trials {
        line!(
            text,
            "  {:>4}  block {:<3} {:<14} {}",
            trial.index,
            trial.block,
            trial.load,
            trial.arm.label()
        );
    }
}

fn configurations(text: &mut String, rendered: &[(String, Vec<Rendered>)]) {
    for (variant, files) in rendered {
        for file in files {
            line!(text, "\n===== {variant}: {}", file.name);
            text.push_str(file.text.trim_end());
            text.push('\n');
        }
    }
}

/// How each variant differs from the baseline, file by file (METHOD.md rule 8).
fn differences(text: &mut String, plan: &Plan, rendered: &[(String, Vec<Rendered>)]) {
    let Some((_, baseline)) = rendered.iter().find(|(name, _)| *name == plan.baseline) else {
        return;
    };
    for (variant, files) in rendered.iter().filter(|(name, _)| *name != plan.baseline) {
        line!(text, "\nDIFFERENCE {} -> {variant}", plan.baseline);
        for file in files {
            let before = baseline.iter().find(|b| b.name == file.name);
            difference(text, before.map_or("", |b| b.text.as_str()), file, before.is_some());
        }
    }
}

fn difference(text: &mut String, before: &str, file: &Rendered, in_both: bool) {
    if !in_both {
        line!(text, "  only here: {} ({} lines, above)", file.name, file.text.lines().count());
    } else if before == file.text {
        line!(text, "  the same:  {}", file.name);
    } else {
        line!(text, "  differs:   {}", file.name);
        let diff = TextDiff::from_lines(before, &file.text);
        let unified = diff.unified_diff().context_radius(1).to_string();
        unified.lines().for_each(|changed| line!(text, "    {changed}"));
    }
}

fn minutes(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if whole < 60 {
        format!("{whole} s")
    } else {
        format!("{} min {:02} s", whole / 60, whole % 60)
    }
}
