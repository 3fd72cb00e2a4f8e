//! Stands in the place of ServiceComb's service-center, the registry that Mesher wants: knows all instances from its
//! configuration, so that nobody has to wait for another's registration, and takes what Mesher tells of itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::request::WholeRequest;
use crate::service::Answer;

/// Below it is all of the registry's interface.
const BASE: &str = "/v4/default/registry/";

/// The version that all services have, as their `microservice.yaml` says.
const VERSION: &str = "0.0.1";

type Reply = (StatusCode, Value);

/// What the registry is to know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    pub(crate) registry: Instances,
}

/// Endpoints by the name of the service, for instance `rest://10.77.0.3:30101`: one for each of its pods.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Instances {
    instances: BTreeMap<String, Vec<String>>,
}

/// What Mesher asks for.
#[derive(Debug, Deserialize)]
struct Query {
    services: Vec<Wanted>,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    service: Named,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    service_name: String,
}

impl Instances {
    /// The answer to a request.
    pub(crate) fn answer(&self, request: &WholeRequest) -> Answer {
        let (status, value) = self.reply(request);
        let mut answer = Response::new(Full::new(Bytes::from(value.to_string())));
        *answer.status_mut() = status;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer
    }

    fn reply(&self, request: &WholeRequest) -> Reply {
        let Some(rest) = request.uri().path().strip_prefix(BASE) else { return nothing() };
        let segments: Vec<&str> = rest.split('/').collect();
        match (request.method(), segments.as_slice()) {
            (&Method::GET, ["existence"]) => self.existence(request.uri().query().unwrap_or("")),
            (&Method::POST, ["instances", "action"]) => self.query(request.body()),
            (&Method::POST, ["microservices", service, "instances"]) => {
                told(json!({"instanceId": format!("{service}-self")}))
            }
            (&Method::POST | &Method::PUT | &Method::DELETE, ["microservices", ..]) => {
                told(json!({}))
            }
            (&Method::GET, ["microservices", service]) => {
                let name = service.strip_suffix("-id").unwrap_or(service);
                told(json!({"service": {
                    "serviceId": service, "serviceName": name, "appId": "default", "version": VERSION,
                }}))
            }
            _ => nothing(),
        }
    }

    fn existence(&self, query: &str) -> Reply {
        let name = query.split('&').find_map(|pair| pair.strip_prefix("serviceName="));
        match name.filter(|name| self.instances.contains_key(*name)) {
            Some(name) => told(json!({"serviceId": id_of(name)})),
            None => nothing(),
        }
    }

    /// The index of each service counts in the request's own list. Services that nobody plays are left out.
    fn query(&self, body: &[u8]) -> Reply {
        let Ok(query) = serde_json::from_slice::<Query>(body) else {
            return (StatusCode::BAD_REQUEST, json!({"errorMessage": "no list of services"}));
        };
        let wanted = query.services.iter().enumerate();
        let updated: Vec<Value> = wanted
            .filter_map(|(index, Wanted { service })| {
                let endpoints = self.instances.get(&service.service_name)?;
                let instances = instances_of(&service.service_name, endpoints);
                Some(json!({"index": index, "rev": "1", "instances": instances}))
            })
            .collect();
        told(json!({"services": {"updated": updated}}))
    }
}

fn instances_of(name: &str, endpoints: &[String]) -> Vec<Value> {
    let instance = |(number, endpoint): (usize, &String)| {
        json!({
            "instanceId": format!("{name}-{number}"), "serviceId": id_of(name), "status": "UP",
            "version": VERSION, "endpoints": [endpoint],
        })
    };
    endpoints.iter().enumerate().map(instance).collect()
}

fn id_of(name: &str) -> String {
    format!("{name}-id")
}

fn told(value: Value) -> Reply {
    (StatusCode::OK, value)
}

fn nothing() -> Reply {
    (StatusCode::NOT_FOUND, json!({"errorMessage": "the registry has no such thing"}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn known() -> Instances {
        let instances = [("server".to_owned(), vec!["rest://10.77.0.3:30101".to_owned()])];
        Instances { instances: instances.into() }
    }

    fn status(method: Method, path: &str, body: &str) -> StatusCode {
        known().reply(&request(method, path, body)).0
    }

    fn request(method: Method, path: &str, body: &str) -> WholeRequest {
        let uri = format!("/v4/default/registry{path}");
        Request::builder().method(method).uri(uri).body(body.to_owned().into()).unwrap()
    }

    fn answered(method: Method, path: &str, body: &str) -> Value {
        let (status, value) = known().reply(&request(method, path, body));
        assert_eq!(status, StatusCode::OK);
        value
    }

    #[test]
    fn instances_are_told_with_the_place_of_the_service_in_the_question() {
        let wanted = |name: &str| json!({"service": {"appId": "default", "serviceName": name, "version": "0+"}});
        let asked = json!({"consumerServiceId": "client-id", "services": [wanted("CseConfigCenter"), wanted("server")]});
        let path = "/instances/action?type=query&rev=0";
        let told = answered(Method::POST, path, &asked.to_string());
        let endpoints = json!(["rest://10.77.0.3:30101"]);
        assert_eq!(told["services"]["updated"].as_array().unwrap().len(), 1, "{told}");
        let server = &told["services"]["updated"][0];
        assert_eq!((&server["index"], &server["rev"]), (&json!(1), &json!("1")));
        let instance = &server["instances"][0];
        assert_eq!((&instance["version"], &instance["endpoints"]), (&json!("0.0.1"), &endpoints));
    }

    #[test]
    fn a_service_that_is_known_exists_and_may_register_itself() {
        let existence =
            "/existence?type=microservice&appId=default&serviceName=server&version=0.0.1";
        assert_eq!(answered(Method::GET, existence, "")["serviceId"], "server-id");
        let registered = answered(Method::POST, "/microservices/server-id/instances", "{}");
        assert_eq!(registered["instanceId"], "server-id-self");
        let heartbeat = "/microservices/server-id/instances/server-id-self/heartbeat";
        assert_eq!(status(Method::PUT, heartbeat, ""), StatusCode::OK);
        assert_eq!(status(Method::GET, "/existence?serviceName=nobody", ""), StatusCode::NOT_FOUND);
        assert_eq!(status(Method::GET, "/elsewhere", ""), StatusCode::NOT_FOUND);
    }
}
