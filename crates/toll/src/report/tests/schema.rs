//! That `report.json` is as its schema says.

use serde_json::Value;

use super::all;
use crate::report::{json, json_schema};

#[test]
fn every_report_is_as_the_schema_says() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    for findings in all() {
        let report: Value = serde_json::from_str(&json(&findings)).unwrap();
        jsonschema::validate(&schema, &report).unwrap();
    }
}

#[test]
fn no_figure_stands_without_a_name() {
    for findings in all() {
        let report: Value = serde_json::from_str(&json(&findings)).unwrap();
        assert_eq!(unnamed(&report, "report"), None);
    }
}

/// The first list that has values of several kinds, or lists in it: a tuple.
fn unnamed(value: &Value, at: &str) -> Option<String> {
    match value {
        Value::Array(items) => {
            let kind = |value: &Value| std::mem::discriminant(value);
            let is_tuple = items.iter().any(Value::is_array)
                || items.windows(2).any(|two| kind(&two[0]) != kind(&two[1]));
            let inner = || items.iter().find_map(|item| unnamed(item, at));
            is_tuple.then(|| at.to_owned()).or_else(inner)
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| unnamed(value, &format!("{at}.{key}")))
        }
        _ => None,
    }
}
