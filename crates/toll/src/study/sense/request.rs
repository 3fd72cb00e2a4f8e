//! Whether what a load asks can be answered, and its answers checked.

use super::placeholder::{is_placeholder, placeholders};
use super::{Violation, airline, at_key, at_value, booking, program_at};
use crate::study::fault::Problem;
use crate::study::model::{Load, Method, Program, Request, Service, Study};
use crate::study::quantity::Name;
use crate::study::tree::Pointer;

/// All that does not fit in what the loads ask.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, load) in &study.loads {
        let at_load = Pointer::to(&["loads", name.as_str()]);
        found.extend(request_beside_mix(load, &at_load));
        for (request, kind) in load.asked() {
            let at = match kind {
                Some(kind) => at_load.child("mix").child(kind),
                None => at_load.child("request"),
            };
            found.extend(surplus_keys(request, &at));
            found.extend(unknown_placeholders(request, &at));
            found.extend(read_only_services(study, request, &at));
            found.extend(post_to_nginx(study, request, &at));
            found.extend(airline::unanswered(study, request, &at));
            found.extend(booking::check(study, request, &at));
        }
    }
    found
}

/// A mix takes the place of the one request.
fn request_beside_mix(load: &Load, at: &Pointer) -> Option<Violation> {
    let surplus = !load.mix.is_empty() && load.request != Request::default();
    surplus.then(|| {
        let found = at_key(Problem::RequestBesideMix, at.child("request"));
        found.because_of(at.child("mix"))
    })
}

/// A body that no request would carry, and a content type of no body.
fn surplus_keys(request: &Request, at: &Pointer) -> Vec<Violation> {
    let gets = request.method == Method::Get;
    let body = (gets && request.body.is_some()).then(|| {
        let found = at_key(Problem::BodyOfGet, at.child("body"));
        found.because_of(at.child("method"))
    });
    let content_type = (request.content_type.is_some() && request.body.is_none()).then(|| {
        let found = at_key(Problem::TypeOfNoBody, at.child("content_type"));
        found.because_of(at.child("body"))
    });
    body.into_iter().chain(content_type).collect()
}

fn unknown_placeholders(request: &Request, at: &Pointer) -> Vec<Violation> {
    let texts = [("path", Some(request.path.as_str())), ("body", request.body.as_deref())];
    let unknown = |(key, text): (&str, Option<&str>)| {
        let name = placeholders(text.unwrap_or_default()).find(|name| !is_placeholder(name))?;
        let known = ["counter", "random", "random.1.100"].map(str::to_owned).to_vec();
        let problem = Problem::UnknownName { kind: "placeholder", name: name.into(), known };
        Some(at_value(problem, at.child(key)))
    };
    texts.into_iter().filter_map(unknown).collect()
}

/// Services behind the entry that query a database and have no answer to a POST.
fn read_only_services(study: &Study, request: &Request, at: &Pointer) -> Vec<Violation> {
    if request.method == Method::Get {
        return Vec::new();
    }
    let read_only = study.app.reached().into_iter().filter(|(_, service)| {
        service.program.queries().is_some_and(|queries| queries.write.is_none())
    });
    let found = |name: &Name| {
        let postgres = program_at(name, "built_in", "postgres");
        let problem = Problem::PostToReadOnly { service: name.to_string() };
        let found = at_value(problem, at.child("method")).from(&["app", "entry"]);
        let found = found.because_of(postgres.child("write"));
        found.see_key(postgres, "`write` is missing here")
    };
    read_only.map(|(name, _)| found(name)).collect()
}

/// A page that is read, and nothing that takes what is posted.
fn post_to_nginx(study: &Study, request: &Request, at: &Pointer) -> Option<Violation> {
    let reached = study.app.reached();
    let is_nginx = |service: &Service| matches!(service.program, Program::Nginx(_));
    let (name, _) = reached.into_iter().find(|(_, service)| is_nginx(service))?;
    let problem = Problem::PostToNginx { service: name.to_string() };
    (request.method == Method::Post).then(|| {
        let found = at_value(problem, at.child("method")).from(&["app", "entry"]);
        found.because_of(program_at(name, "nginx", "bytes"))
    })
}
