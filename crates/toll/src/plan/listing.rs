//! A plan as text: what runs, in which order, with which configurations, and how the variants differ.
//!
//! A sweep is shown as the matrix that it is, and a text that many pods have, once.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use similar::TextDiff;
use toll_lab::{
    AgentKind, Airline, AirlineDatabase, AirlinePart, BuiltIn, DataPlane, DatabaseServer,
    Petclinic, PetclinicPart, Program, Rendered, Runtime, Service,
};
use toll_load::Body;

use super::{
    Cell, LEAST_REQUESTS, Plan, PlannedKind, PlannedLoad, PlannedRate, PlannedRequest,
    PlannedUsers, PlannedVariant, Release, SliceLength, VariantState, sizes_of_round,
};

mod texts;

/// Longer bodies are shown by their length.
const LONGEST_BODY: usize = 200;

/// The whole plan. `rendered` holds, for each variant that runs, the files that the lab would write for its largest
/// deployment.
pub fn listing(plan: &Plan, rendered: &[(String, Vec<Rendered>)]) -> String {
    let mut text = String::new();
    head(&mut text, plan);
    application(&mut text, plan);
    variants(&mut text, plan);
    loads(&mut text, plan);
    first_cycle(&mut text, plan);
    configurations(&mut text, plan, rendered);
    differences(&mut text, plan, rendered);
    text
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr $(, $($arg:tt)*)?) => {
        writeln!($text $(, $($arg)*)?).expect("a string takes all that is written to it")
    };
}

/// A line of a section: what it is about, and what there is to say.
fn row(text: &mut String, name: &str, what: impl fmt::Display) {
    line!(text, "  {name:<14} {what}");
}

fn head(text: &mut String, plan: &Plan) {
    line!(text, "study     {} ({} profile)", plan.study, plan.profile);
    line!(text, "question  {}", plan.question);
    line!(text, "baseline  {}", plan.baseline);
    let headline: Vec<String> = plan.headline.iter().map(ToString::to_string).collect();
    line!(text, "headline  {}", headline.join(", "));
    let budget = plan.budget();
    let arrangement = if plan.side_by_side { "side by side" } else { "one after another" };
    let sizes = match plan.sizes().len() {
        1 => String::new(),
        sizes => format!(", at each of {sizes} sizes"),
    };
    let arms = plan.arms.len();
    line!(
        text,
        "rounds    {}; each starts {arms} arms {arrangement}{sizes}",
        rounds_in_words(plan)
    );
    line!(
        text,
        "cycles    {} a round: for each load a slice of every arm, then again in the reverse order; shuffled by seed {}",
        plan.cycles,
        plan.seed
    );
    let capacity = match budget.capacity_s {
        0.0 => String::new(),
        capacity_s => format!("capacity {}, ", minutes(capacity_s)),
    };
    line!(
        text,
        "takes     about {} ({capacity}{} rounds of {})",
        minutes(budget.total_s()),
        budget.rounds,
        minutes(budget.round_s)
    );
    for warning in plan.warnings.iter().chain(&plan.few_rounds()) {
        line!(text, "warning   {warning}");
    }
}

/// `8`, `as many as fit into 5 min 00 s`, `until half-widths are at most 3 %, at least 8`.
fn rounds_in_words(plan: &Plan) -> String {
    let extent = &plan.extent;
    let time = extent.for_s.map(|for_s| format!("as many as fit into {}", minutes(for_s)));
    let width = extent.width.map(|width| {
        let percent = format!("{:.3}", width * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let least = extent.least_rounds;
        format!("until headline half-widths are at most {percent} %, {least} at the least")
    });
    let rounds = extent.rounds.map(|rounds| rounds.to_string());
    let both: Vec<String> = rounds.into_iter().chain(time).chain(width).collect();
    both.join(", or ")
}

/// The application, which is the same in every variant.
fn application(text: &mut String, plan: &Plan) {
    let Some((_, deployment)) = plan.ready().next() else { return };
    line!(text, "\nAPPLICATION, entered at {}", deployment.entry);
    for service in &deployment.services {
        row(text, &service.name, service_in_words(service, &swept_pods(plan, service)));
    }
    match swept(plan, |cell| cell.nodes).as_slice() {
        [] if deployment.nodes > 1 => row(text, "(nodes)", deployment.nodes),
        [] => {}
        several => row(text, "(nodes)", listed(several)),
    }
}

/// What the plan sweeps, each value once.
fn swept<T: PartialEq>(plan: &Plan, axis: impl Fn(&Cell) -> Option<T>) -> Vec<T> {
    let mut values = Vec::new();
    for value in plan.loads.iter().filter_map(|load| axis(load.cell.as_ref()?)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The replicas that a service has in turn; empty when it is not swept.
fn swept_pods(plan: &Plan, service: &Service) -> Vec<usize> {
    swept(plan, |cell| match &cell.replicas {
        Some((name, replicas)) if *name == service.name => Some(*replicas),
        _ => None,
    })
}

fn listed(values: &[usize]) -> String {
    values.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn service_in_words(service: &Service, swept: &[usize]) -> String {
    let program = match &service.program {
        Program::BuiltIn(built_in) => built_in_in_words(built_in),
        Program::Command(program) => program.argv.join(" "),
        Program::Gateway if service.tls => "Envoy as an ingress gateway that ends TLS".into(),
        Program::Gateway => "Envoy as an ingress gateway".into(),
        Program::Nginx(nginx) => format!("nginx with a page of {} bytes", nginx.bytes),
        Program::Postgres(_) => "PostgreSQL on fresh data".into(),
        Program::Airline(airline) => airline_in_words(airline),
        Program::AirlineDatabase(database) => airline_database_in_words(database),
        Program::Petclinic(petclinic) => petclinic_in_words(*petclinic),
        Program::Collector => "the collector of spans, toll's own".into(),
    };
    let replicas = match (swept, service.replicas) {
        ([], 0 | 1) => String::new(),
        ([], replicas) => format!(", {replicas} replicas"),
        (swept, _) => format!(", {} replicas in turn", listed(swept)),
    };
    let calls = match service.calls.as_slice() {
        [] => String::new(),
        calls => format!("; calls {}", calls.join(", ")),
    };
    let metrics = service.metrics.iter();
    let metrics: String =
        metrics.map(|m| format!("; metrics at port {}, {}", m.port, m.path)).collect();
    let external = service.external.iter();
    let external: String =
        external.map(|e| format!("; outside of the mesh as {}, over TLS", e.host)).collect();
    format!("{program}, port {}{replicas}{calls}{metrics}{external}", service.port)
}

fn airline_in_words(airline: &Airline) -> String {
    let part = match airline.part {
        AirlinePart::Web => "web",
        AirlinePart::Flights => "flights",
        AirlinePart::Bookings => "bookings",
        AirlinePart::Customers => "customers",
    };
    let connections = match airline.part {
        AirlinePart::Web => String::new(),
        _ => format!(", at most {} connections to its database", airline.connections),
    };
    format!("the airline's {part}, {:?} of work{connections}", airline.work)
}

fn airline_database_in_words(database: &AirlineDatabase) -> String {
    let server = match database.server {
        DatabaseServer::MongoDb => "MongoDB",
        DatabaseServer::Postgres => "PostgreSQL",
    };
    let AirlineDatabase { flights, seats, customers, .. } = database;
    format!("{server} on fresh data ({flights} flights of {seats} seats, {customers} customers)")
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

/// What an agent is given beside its name and the collector's address.
fn settings(text: &mut String, data_plane: &DataPlane) {
    let DataPlane::Agent(agent) = data_plane else { return };
    if let AgentKind::EaseAgent { jar } = &agent.kind {
        row(text, "", format_args!("from {}", jar.display()));
    }
    for (name, value) in &agent.settings {
        row(text, "", format_args!("{name}: {value}"));
    }
    if !agent.spans.is_empty() {
        row(text, "", format_args!("spans of each request: {}", by_service(&agent.spans)));
    }
}

fn loads(text: &mut String, plan: &Plan) {
    line!(text, "\nLOADS");
    for cells in plan.loads.chunk_by(|one, other| load_of(one) == load_of(other)) {
        if cells[0].cell.is_some() {
            sweep(text, cells);
            continue;
        }
        let load = &cells[0];
        row(text, &load.name, format_args!("{}, {}", asked_in_words(load), in_words(load)));
        asked_in_detail(text, load);
        if let Release::Users(users) = &load.release {
            users_in_detail(text, users);
        }
        if !load.spans.is_empty() {
            row(text, "", format_args!("spans of a traced request: {}", spans_in_words(load)));
        }
    }
    row(
        text,
        "(idle)",
        format_args!("{} s of each round without load, to measure the idle cost", plan.idle_s),
    );
    discarded(text, plan);
}

/// What is sent and counts for nothing.
fn discarded(text: &mut String, plan: &Plan) {
    let settle = &plan.settle;
    row(text, "(discarded)", format_args!("the first {} s of each slice", plan.guard_s));
    row(
        text,
        "",
        format_args!(
            "on fresh services: closed loop, {} connections, slices of {} s until stable, {} s an arm at the most",
            settle.connections, settle.slice_s, settle.max_s
        ),
    );
    if settle.rest_s > 0.0 {
        row(
            text,
            "",
            format_args!("then no request until they are quiet, {} s at the most", settle.rest_s),
        );
    }
    if !plan.rehearsal(0).is_empty() {
        row(text, "", "then a slice of each load for every arm, as JVMs compile for its pace");
    }
}

/// `GET /flights`, or how many requests are mixed.
fn asked_in_words(load: &PlannedLoad) -> String {
    match load.mix.len() {
        0 => format!("{} {}", load.request.method, load.request.path),
        kinds => format!("a mix of {kinds} requests"),
    }
}

/// What a request carries, and what a mix is made of.
fn asked_in_detail(text: &mut String, load: &PlannedLoad) {
    let body = |text: &mut String, request: &PlannedRequest| {
        for (name, value) in &request.headers {
            row(text, "", format_args!("with {name}: {value}"));
        }
        if let Some(content_type) = &request.content_type {
            row(text, "", format_args!("with {content_type}: {}", body_in_words(&request.body)));
        }
        if !request.expect.is_empty() {
            let expected: Vec<String> = request.expect.iter().map(u16::to_string).collect();
            row(text, "", format_args!("good with status {}", expected.join(", ")));
        }
    };
    if load.mix.is_empty() {
        return body(text, &load.request);
    }
    let total: u32 = load.mix.iter().map(|kind| kind.weight).sum();
    for PlannedKind { name, weight, request } in &load.mix {
        let share = f64::from(*weight) * 100.0 / f64::from(total);
        let (method, path) = (&request.method, &request.path);
        row(text, "", format_args!("{share:.0} % {name}: {method} {path}"));
        body(text, request);
    }
}

/// A body that fits into a line, else how long it is.
fn body_in_words(body: &Body) -> String {
    match std::str::from_utf8(&body.0) {
        Ok(text) if text.len() <= LONGEST_BODY && !text.contains('\n') => text.into(),
        _ => format!("{} bytes", body.0.len()),
    }
}

/// The load as the study names it.
fn load_of(load: &PlannedLoad) -> &str {
    load.cell.as_ref().map_or(&load.name, |cell| &cell.load)
}

/// The cells of one load: what they share, then a line for each step, with a column for each size.
fn sweep(text: &mut String, cells: &[PlannedLoad]) {
    let first = &cells[0];
    row(text, load_of(first), format_args!("{}, {}", asked_in_words(first), shared(first)));
    asked_in_detail(text, first);
    let mut sizes: Vec<&Cell> = Vec::new();
    for cell in cells.iter().filter_map(|load| load.cell.as_ref()) {
        if !sizes.iter().any(|known| Cell::shares_deployment(Some(known), Some(cell))) {
            sizes.push(cell);
        }
    }
    let titles: Vec<String> = sizes.iter().map(|cell| size_in_words(cell)).collect();
    let names = cells.iter().map(|load| load.name.len());
    let width = names.chain(titles.iter().map(String::len)).max().unwrap_or(0);
    let columns: String = titles.iter().map(|title| format!("  {title:>width$}")).collect();
    let steps: Vec<String> =
        cells.iter().filter_map(|load| load.cell.as_ref()).map(step_in_words).collect();
    let margin = steps.iter().map(String::len).max().unwrap_or(0).max(6);
    if sizes.iter().any(|cell| cell.replicas.is_some() || cell.nodes.is_some()) {
        row(text, "", format_args!("{:<margin$}{columns}", ""));
    }
    for (number, step) in steps.iter().enumerate() {
        if steps[..number].contains(step) {
            continue;
        }
        let of_step = cells.iter().zip(&steps).filter(|(_, other)| *other == step);
        let names: String = of_step.map(|(load, _)| format!("  {:>width$}", load.name)).collect();
        row(text, "", format_args!("{step:<margin$}{names}"));
    }
}

/// `20/s`, `20 connections`, `20 % of the capacity`; nothing when none is swept.
fn step_in_words(cell: &Cell) -> String {
    if let Some(share) = cell.share {
        return format!("{:.0} % of the capacity", share * 100.0);
    }
    match (cell.rate_per_s, cell.connections) {
        (Some(rate), _) => format!("{rate}/s"),
        (None, Some(1)) => "1 connection".into(),
        (None, Some(connections)) => format!("{connections} connections"),
        (None, None) => String::new(),
    }
}

/// `nginx x 90`, `nginx x 90 on 2 nodes`
fn size_in_words(cell: &Cell) -> String {
    let replicas =
        cell.replicas.as_ref().map(|(service, replicas)| format!("{service} x {replicas}"));
    let nodes = cell.nodes.map(|nodes| format!("on {nodes} nodes"));
    let both: Vec<String> = replicas.into_iter().chain(nodes).collect();
    if both.is_empty() { "as it is".into() } else { both.join(" ") }
}

/// What the cells of a load have in common.
fn shared(load: &PlannedLoad) -> String {
    let cell = load.cell.as_ref();
    let is_step = cell.is_some_and(|cell| !step_in_words(cell).is_empty());
    match load.release {
        Release::Open { poisson, .. } if is_step => {
            format!("open loop, {} arrivals; {}", law(poisson), length_in_words(load))
        }
        Release::Closed { .. } if is_step => format!("closed loop; {}", length_in_words(load)),
        _ => in_words(load),
    }
}

fn law(poisson: bool) -> &'static str {
    if poisson { "Poisson" } else { "constant" }
}

fn in_words(load: &PlannedLoad) -> String {
    let release = match load.release {
        Release::Closed { connections } => format!("closed loop, {connections} connections"),
        Release::Users(users) => format!("{} virtual users", users.users),
        Release::Open { rate, poisson, .. } => {
            format!("open loop, {}, {} arrivals", rate_in_words(rate), law(poisson))
        }
    };
    format!("{release}; {}", length_in_words(load))
}

fn length_in_words(load: &PlannedLoad) -> String {
    match (load.release, load.slice) {
        (Release::Users(users), _) => format!("slices of {} s", users.length_s()),
        (_, SliceLength::Seconds(seconds)) => {
            format!("slices of {seconds} s, {LEAST_REQUESTS} requests at the least")
        }
        (_, SliceLength::Requests(count)) => format!("slices of {count} requests"),
    }
}

/// How users come and go, what each does, and how many there are here and why.
fn users_in_detail(text: &mut String, users: &PlannedUsers) {
    let PlannedUsers { users: most, start, ramp_s, hold_s, ramp_down_s, think_s, parallel, .. } =
        *users;
    let start = start.min(most);
    let stages = match (ramp_s, ramp_down_s) {
        (0.0, 0.0) => format!("they come in over {think_s} s, which is discarded"),
        _ => format!(
            "{start} at the begin, {ramp_s} s up, {hold_s} s all, {ramp_down_s} s down to {start}"
        ),
    };
    row(
        text,
        "",
        format_args!(
            "{stages}; each: {}, then {think_s} s of thought",
            match parallel {
                1 => "a request, its answer".into(),
                several => format!("{several} requests at once, all answers"),
            }
        ),
    );
    match users.made_for_per_s {
        Some(there) => row(
            text,
            "",
            format_args!(
                "users here: {most}, times the capacity of the slowest variant here / {there} requests/s where they were chosen; never more than {most}"
            ),
        ),
        None => row(text, "", format_args!("users here: {most}, whatever the machine can hold")),
    }
}

/// `gateway 1, vets 9; 10 in all`
fn by_service(spans: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> =
        spans.iter().map(|(service, spans)| format!("{service} {spans}")).collect();
    each.join(", ")
}

fn spans_in_words(load: &PlannedLoad) -> String {
    format!("{}; {} in all", by_service(&load.spans), load.spans.values().sum::<u64>())
}

fn rate_in_words(rate: PlannedRate) -> String {
    match rate {
        PlannedRate::PerSecond(rate) => format!("{rate} requests/s"),
        PlannedRate::OfCapacity(share) => {
            format!("{:.0} % of the capacity of the slowest variant, measured first", share * 100.0)
        }
    }
}

/// In which order the load goes round the arms: a line for each load, and back the same way.
fn first_cycle(text: &mut String, plan: &Plan) {
    line!(text, "\nROUND 1, CYCLE 1, IN ORDER");
    let sizes = plan.sizes();
    for size in sizes_of_round(plan, 1) {
        if let Some(cell) = sizes[size][0].cell.as_ref().filter(|_| sizes.len() > 1) {
            line!(text, "  {}", size_in_words(cell));
        }
        let slices = plan.slices(1, size);
        let there = slices.iter().filter(|slice| slice.cycle == 1 && !slice.back);
        let there: Vec<_> = there.collect();
        for turn in there.chunk_by(|one, next| one.load == next.load) {
            let arms: Vec<String> = turn.iter().map(|slice| slice.arm.label()).collect();
            row(text, &turn[0].load, format_args!("{}, and back", arms.join(", ")));
        }
    }
}

/// Every text once: those of further pods of a service, and those that the baseline has as well, are only named.
fn configurations(text: &mut String, plan: &Plan, rendered: &[(String, Vec<Rendered>)]) {
    let of_baseline = rendered.iter().find(|(name, _)| *name == plan.baseline);
    for (variant, files) in rendered {
        let pods = texts::Pods::of(plan, variant);
        for file in files.iter().filter(|file| !pods.is_further(file)) {
            let other = of_baseline.filter(|(name, _)| name != variant);
            let known = other.is_some_and(|(_, others)| others.contains(file));
            if known {
                line!(text, "\n===== {variant}: {}, as in {}", file.name, plan.baseline);
                continue;
            }
            line!(text, "\n===== {variant}: {}{}", file.name, pods.others_like(file, files));
            text.push_str(texts::folded(&file.text).trim_end());
            text.push('\n');
        }
    }
}

/// How each variant differs from the baseline, file by file (docs/method.md rule 8).
fn differences(text: &mut String, plan: &Plan, rendered: &[(String, Vec<Rendered>)]) {
    let Some((_, baseline)) = rendered.iter().find(|(name, _)| *name == plan.baseline) else {
        return;
    };
    for (variant, files) in rendered.iter().filter(|(name, _)| *name != plan.baseline) {
        line!(text, "\nDIFFERENCE {} -> {variant}", plan.baseline);
        let pods = texts::Pods::of(plan, variant);
        for file in files.iter().filter(|file| !pods.is_further(file)) {
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
