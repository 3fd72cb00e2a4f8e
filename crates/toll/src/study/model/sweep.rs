//! What a load is swept over, and the combinations that it then consists of.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Load, LoadModel};
use crate::study::quantity::{Name, Rate};

/// What a load is swept over; each combination is a cell, a load of its own called `LOAD-20x90` (rate or connections x replicas).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{"rate": ["20/s", "50/s"], "replicas": {"nginx": [1, 10, 50, 90]}}]))]
pub struct Matrix {
    /// Arrival rates of an open load, instead of its own.
    #[schemars(length(min = 1), extend("examples" = [["20/s", "50/s"]]))]
    pub rate: Vec<Rate>,
    /// Connections of a closed loop, instead of its own.
    #[schemars(length(min = 1), extend("examples" = [[1, 5, 10, 20]]))]
    pub connections: Vec<u32>,
    /// Replicas of one service, instead of its own.
    #[schemars(extend("minProperties" = 1, "examples" = [{"nginx": [1, 10, 50, 90]}]))]
    pub replicas: IndexMap<Name, Vec<u32>>,
    /// Nodes, instead of the application's.
    #[schemars(length(min = 1), extend("examples" = [[1, 2]]))]
    pub nodes: Vec<u32>,
}

/// One combination of a [`Matrix`]; what is not swept is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Combination {
    /// Arrival rate.
    pub rate: Option<Rate>,
    /// Connections of a closed loop.
    pub connections: Option<u32>,
    /// The service that is swept, and its replicas.
    pub replicas: Option<(Name, u32)>,
    /// Nodes.
    pub nodes: Option<u32>,
}

impl Load {
    /// The names under which it is borne: its own, those of its cells, or those of a curve's rates.
    pub fn names(&self, name: &Name) -> Vec<String> {
        match (&self.matrix, &self.model) {
            (Some(matrix), _) => {
                matrix.combinations().iter().map(|cell| cell.name(name.as_str())).collect()
            }
            (None, LoadModel::Curve(curve)) => {
                curve.percents().map(|percent| format!("{name}-{percent}")).collect()
            }
            (None, _) => vec![name.to_string()],
        }
    }
}

impl Matrix {
    /// Every combination; the rates, or the numbers of connections, of one size follow each other.
    pub fn combinations(&self) -> Vec<Combination> {
        let replicas = self.replicas.iter().flat_map(|(name, counts)| {
            counts.iter().map(move |replicas| (name.clone(), *replicas))
        });
        let (nodes, replicas) = (axis(self.nodes.iter().copied()), axis(replicas));
        let sizes = nodes.iter().flat_map(|nodes| replicas.iter().map(move |r| (nodes, r)));
        let cell = |(nodes, replicas): (&Option<u32>, &Option<(Name, u32)>),
                    (rate, connections): &(Option<Rate>, Option<u32>)| {
            Combination {
                rate: *rate,
                connections: *connections,
                replicas: replicas.clone(),
                nodes: *nodes,
            }
        };
        let steps = self.steps();
        sizes.flat_map(|size| steps.iter().map(move |step| cell(size, step))).collect()
    }

    /// What is swept at one size: rates of an open load, or connections of a closed one.
    fn steps(&self) -> Vec<(Option<Rate>, Option<u32>)> {
        let connections = axis(self.connections.iter().copied());
        let rates = axis(self.rate.iter().copied());
        let at = |rate: Option<Rate>| connections.iter().map(move |clients| (rate, *clients));
        rates.into_iter().flat_map(at).collect()
    }
}

/// The values of an axis; one without a value when it is not swept.
fn axis<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let values: Vec<Option<T>> = values.map(Some).collect();
    if values.is_empty() { vec![None] } else { values }
}

impl Combination {
    /// `get-20x90-on-2`: rate (or connections) x replicas on nodes, without what is not swept.
    pub fn name(&self, load: &str) -> String {
        let rate = self.rate.map(|rate| match rate {
            // Names have no dots.
            Rate::PerSecond(rate) => rate.to_string().replace('.', "-"),
            Rate::OfCapacity(share) => share.to_string(),
        });
        let connections = self.connections.map(|connections| connections.to_string());
        let replicas = self.replicas.as_ref().map(|(_, replicas)| replicas.to_string());
        let cell: Vec<String> = rate.into_iter().chain(connections).chain(replicas).collect();
        let cell = if cell.is_empty() { String::new() } else { format!("-{}", cell.join("x")) };
        let nodes = self.nodes.map_or_else(String::new, |nodes| format!("-on-{nodes}"));
        format!("{load}{cell}{nodes}")
    }
}
