//! What a run's objects are called, and by which labels they are found again.

use serde_json::{Value, json};

/// Labels that every object of toll's has.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "toll");

/// The label that says which run an object is of.
pub(super) const RUN_LABEL: &str = "toll/run";

/// The label of a pod that says which service it plays.
pub(super) const SERVICE_LABEL: &str = "toll/service";

/// Selects all that toll ever made.
pub(super) const ALL_RUNS: &str = "app.kubernetes.io/managed-by=toll,toll/run";

/// One run's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunName(String);

impl RunName {
    /// Told apart from other runs by these bits.
    pub(super) fn new(bits: u32) -> Self {
        Self(format!("{bits:08x}"))
    }

    /// The namespace of toll's own pods.
    pub(super) fn namespace(&self) -> String {
        format!("toll-{}", self.0)
    }

    /// The namespace of an arm; `number` tells arms and rounds apart.
    pub(super) fn arm_namespace(&self, variant: &str, number: usize) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let variant: String = variant.chars().map(plain).take(24).collect();
        format!("toll-{}-{number}-{}", self.0, variant.trim_matches('-'))
    }

    /// Selects this run's objects.
    pub(super) fn selector(&self) -> String {
        format!("{RUN_LABEL}={}", self.0)
    }

    /// The labels of an object of this run.
    pub(super) fn labels(&self) -> Value {
        json!({MANAGED_BY.0: MANAGED_BY.1, RUN_LABEL: self.0})
    }

    /// The same with those of one service's pods.
    pub(super) fn service_labels(&self, service: &str) -> Value {
        let mut labels = self.labels();
        labels[SERVICE_LABEL] = json!(service);
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_dns_label_whatever_the_variant_is_called() {
        let run = RunName::new(0x3f9a);
        assert_eq!(run.arm_namespace("Istio (again)", 7), "toll-00003f9a-7-istio--again");
        assert!(run.arm_namespace(&"x".repeat(90), 1_000_000).len() <= 63);
    }
}
