//! What the lab in a cluster is made with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What the lab in a cluster is made with.
#[derive(Debug, Clone)]
pub struct KubernetesOptions {
    /// The image of all pods: toll, and the programs that the study needs, as `toll image` writes it.
    pub image: String,
    /// Load pods of each arm, at least one; they share the load.
    pub load_pods: usize,
    /// Whether pods that mount the nodes' counters read them; without, nothing is known of CPU and memory.
    pub exact_cpu: bool,
    /// How long the command may be silent before the driver removes the run.
    pub longest_silence: Duration,
    /// Holds keys on their way into the cluster.
    pub work_dir: PathBuf,
    /// Set when the user wants to leave: whoever waits for pods stops waiting.
    pub interrupt: Arc<AtomicBool>,
}

impl KubernetesOptions {
    /// How long the command may be silent unless somebody wants to see the run removed.
    pub const LONGEST_SILENCE: Duration = Duration::from_secs(90);
}
