//! Whether what a load asks can be answered, and its answers checked.

use super::placeholder::{is_placeholder, placeholders};
use super::{Violation, airline, at_key, at_value, booking, program_at};
use crate::study::environment::OF_ENVIRONMENT;
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
            found.extend(unsendable_headers(request, &at));
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
    let method = request.method;
    let key = if request.body.is_some() { "body" } else { "body_file" };
    let body = (method.reads() && request.has_body()).then(|| {
        let found = at_key(Problem::BodyOfRead { method: method.name() }, at.child(key));
        found.because_of(at.child("method"))
    });
    let content_type = (request.content_type.is_some() && !request.has_body()).then(|| {
        let found = at_key(Problem::TypeOfNoBody, at.child("content_type"));
        found.because_of(at.child("body")).because_of(at.child("body_file"))
    });
    let twice = (request.body.is_some() && request.body_file.is_some()).then(|| {
        let found = at_key(Problem::TwoBodies, at.child("body_file"));
        found.because_of(at.child("body"))
    });
    [body, content_type, twice].into_iter().flatten().collect()
}

/// Names that HTTP does not allow, and those that toll sets itself.
fn unsendable_headers(request: &Request, at: &Pointer) -> Vec<Violation> {
    const OF_TOLL: [&str; 4] = ["host", "content-length", "content-type", "transfer-encoding"];
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let problem = |name: &str| {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token) {
            return Some(Problem::NoHeader { name: name.into() });
        }
        let of_toll = OF_TOLL.contains(&lower.as_str());
        of_toll.then(|| Problem::HeaderOfToll { name: name.into() })
    };
    let at_headers = at.child("headers");
    let found = |name: &String| Some(at_key(problem(name)?, at_headers.child(name)));
    request.headers.keys().filter_map(found).collect()
}

fn unknown_placeholders(request: &Request, at: &Pointer) -> Vec<Violation> {
    let texts = [("path", Some(request.path.as_str())), ("body", request.body.as_deref())];
    let texts = texts.into_iter().map(|(key, text)| (at.child(key), text.unwrap_or_default()));
    let at_headers = at.child("headers");
    let headers =
        request.headers.iter().map(|(name, value)| (at_headers.child(name), value.as_str()));
    let unknown = |(at, text): (Pointer, &str)| {
        let is_known = |name: &&str| is_placeholder(name) || name.starts_with(OF_ENVIRONMENT);
        let name = placeholders(text).find(|name| !is_known(name))?;
        let known = ["counter", "random", "random.1.100"].map(str::to_owned).to_vec();
        let problem = Problem::UnknownName { kind: "placeholder", name: name.into(), known };
        Some(at_value(problem, at))
    };
    texts.chain(headers).filter_map(unknown).collect()
}

/// Services behind the entry that query a database and have no answer to a POST.
fn read_only_services(study: &Study, request: &Request, at: &Pointer) -> Vec<Violation> {
    if request.method != Method::Post {
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
    (!request.method.reads()).then(|| {
        let found = at_value(problem, at.child("method")).from(&["app", "entry"]);
        found.because_of(program_at(name, "nginx", "bytes"))
    })
}
