//! A user's own settings of the sidecars, put into the configuration that toll makes.

use serde_json::{Map, Value, json};

use crate::deployment::EnvoySettings;
use crate::envoy::admin::ADMIN_CLUSTER;

/// The configuration with the user's settings.
pub(crate) fn applied(mut bootstrap: Value, settings: &EnvoySettings) -> Value {
    for_each_manager(&mut bootstrap, &mut |manager| {
        if settings.access_log {
            manager["access_log"] = json!([to_stdout()]);
        }
        if let Some(filters) = manager["http_filters"].as_array_mut() {
            // The last one is the router, which ends the chain.
            let before_router = filters.len().saturating_sub(1);
            filters.splice(before_router..before_router, settings.filters.iter().cloned());
        }
    });
    if let Some(overlay) = &settings.overlay {
        merge(&mut bootstrap, overlay);
    }
    bootstrap
}

fn to_stdout() -> Value {
    json!({
        "name": "envoy.access_loggers.stdout",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
        },
    })
}

/// Every HTTP connection manager but that of the admin interface, which toll reads through.
fn for_each_manager(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Object(fields) if fields.contains_key("http_filters") && !is_admins(fields) => {
            change(value);
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| for_each_manager(field, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_manager(item, change)),
        _ => {}
    }
}

fn is_admins(manager: &Map<String, Value>) -> bool {
    manager.get("stat_prefix").and_then(Value::as_str) == Some(ADMIN_CLUSTER)
}

/// JSON Merge Patch (RFC 7396): mappings are merged, `null` removes, all else takes the place of what is there.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in patch {
        match value {
            Value::Null => drop(fields.remove(key)),
            value => merge(fields.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::listener::{Direction, http_connection_manager};

    fn bootstrap() -> Value {
        let manager = |prefix| http_connection_manager(Direction::Inbound, prefix, vec![]);
        json!({
            "admin": {"address": "here"},
            "listeners": [manager("inbound"), manager(ADMIN_CLUSTER)],
        })
    }

    fn managers(settings: &EnvoySettings) -> [Value; 2] {
        let applied = applied(bootstrap(), settings);
        [0, 1].map(|at: usize| applied["listeners"][at]["typed_config"].clone())
    }

    #[test]
    fn a_filter_stands_before_the_router_of_every_manager_but_the_admins() {
        let filter = json!({"name": "mine"});
        let settings = EnvoySettings { filters: vec![filter.clone()], ..Default::default() };
        let [inbound, admin] = managers(&settings);
        let filters = inbound["http_filters"].as_array().unwrap();
        assert_eq!(filters[filters.len() - 2], filter);
        assert_eq!(filters.last().unwrap()["name"], "envoy.filters.http.router");
        assert_eq!(admin, managers(&EnvoySettings::default())[1]);
    }

    #[test]
    fn an_access_log_goes_where_the_sidecars_log_is() {
        let settings = EnvoySettings { access_log: true, ..Default::default() };
        let [inbound, _] = managers(&settings);
        assert_eq!(inbound["access_log"][0]["name"], "envoy.access_loggers.stdout");
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn an_overlay_is_merged_as_the_standard_says() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut target, patch, merged) in cases {
            merge(&mut target, &patch);
            assert_eq!(target, merged);
        }
    }
}
