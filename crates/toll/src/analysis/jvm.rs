//! What the JVMs of an application tell of themselves in their slices, pod by pod, held against the
//! baseline. Reads the series of the Prometheus Java client; another JVM's endpoint that names them so will do.
//!
//! Counters are taken by their growth between the first and the last scrape of each slice, over the time between
//! these two, added up; levels by the mean of all scrapes. CPU per request is not the JVM's word: it comes from the
//! pod's cgroup, as everywhere (docs/method.md rule 5).

use std::collections::BTreeMap;

use toll_lab::{Reading, Sample};

use super::effects::{self, measured};
use super::findings::{JvmRow, JvmUse};
use super::memory;
use super::tally::{Arms, Slice, Tally};

const MIB: f64 = 1024.0 * 1024.0;

/// One a JVM, in the order of the samples. `arms` has the baseline first; `cores` are those of the machine.
pub fn rows(arms: &[Arms<'_>], cores: Option<usize>) -> Vec<JvmRow> {
    let row = |pod: &String| JvmRow { pod: pod.clone(), uses: uses(arms, pod, cores) };
    let slices = arms.iter().flat_map(|(_, tallies)| tallies).flat_map(|tally| &tally.slices);
    pods(slices.flat_map(|slice| &slice.record.samples)).iter().map(row).collect()
}

/// Pods that report a JVM.
pub fn pods<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<String> {
    let mut pods: Vec<String> = Vec::new();
    for metrics in samples.flat_map(|sample| &sample.metrics) {
        let Reading::Value(series) = &metrics.series else { continue };
        let is_jvm = series.keys().any(|key| key.starts_with("jvm_"));
        if is_jvm && !pods.contains(&metrics.pod) {
            pods.push(metrics.pod.clone());
        }
    }
    pods
}

fn uses(arms: &[Arms<'_>], pod: &str, cores: Option<usize>) -> Vec<JvmUse> {
    let Some(((_, baseline), others)) = arms.split_first() else { return vec![] };
    let of = |(variant, tallies): &Arms<'_>, against: Option<&[&Tally<'_>]>| JvmUse {
        variant: (*variant).into(),
        cpu_load: measured(tallies, against, |t| cpu_load(t, pod, cores)),
        cpu_per_request_us: measured(tallies, against, |t| cpu_per_request_us(t, pod)),
        heap_used_mib: measured(tallies, against, |t| heap_used_mib(t, pod)),
        heap_live_mib: measured(tallies, against, |t| scrapes(t, pod).last()?.heap_live_mib()),
        gc_share: measured(tallies, against, |t| share_of_time(t, pod, GC_TIME)),
        jit_share: measured(tallies, against, |t| share_of_time(t, pod, JIT_TIME)),
        threads: measured(tallies, against, |t| {
            mean(t, pod, |scrape| scrape.sum("jvm_threads_current"))
        }),
    };
    let first = of(&arms[0], None);
    std::iter::once(first).chain(others.iter().map(|arm| of(arm, Some(baseline)))).collect()
}

const CPU_TIME: &str = "process_cpu_seconds_total";
const GC_TIME: &str = "jvm_gc_collection_seconds_sum";
const JIT_TIME: &str = "jvm_compilation_time_seconds_total";

/// CPU time of the process by that of all cores, 0..1.
pub fn cpu_load(tally: &Tally<'_>, pod: &str, cores: Option<usize>) -> Option<f64> {
    let cores = cores.filter(|cores| *cores > 0)?;
    share_of_time(tally, pod, CPU_TIME).map(|busy| busy / cores as f64)
}

/// CPU time of the pod per completed request by its cgroup, microseconds; `None` for one of a service with so many
/// that they are one owner.
pub fn cpu_per_request_us(tally: &Tally<'_>, pod: &str) -> Option<f64> {
    let is_there = scrapes(tally, pod).next().is_some() && memory::has_pod(tally, pod);
    let cpu = || effects::cpu_per_request(tally, |owner| owner.is_in(pod));
    is_there.then(cpu).flatten()
}

/// Mean of the heap in use, MiB.
pub fn heap_used_mib(tally: &Tally<'_>, pod: &str) -> Option<f64> {
    mean(tally, pod, |scrape| scrape.sum("jvm_memory_used_bytes{area=\"heap\"")).map(|b| b / MIB)
}

fn mean(tally: &Tally<'_>, pod: &str, level: impl Fn(&Scrape<'_>) -> Option<f64>) -> Option<f64> {
    let levels: Vec<f64> = scrapes(tally, pod).filter_map(|scrape| level(&scrape)).collect();
    (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64)
}

/// What a counter of seconds grew by in the slices, over the time in which it did.
fn share_of_time(tally: &Tally<'_>, pod: &str, counter: &str) -> Option<f64> {
    let (mut grown, mut seconds) = (0.0, 0.0);
    for slice in &tally.slices {
        let mut scrapes = scrapes_in(slice, pod);
        let Some((first, last)) = scrapes.next().and_then(|first| Some((first, scrapes.last()?)))
        else {
            continue;
        };
        let (before, after) = (first.sum(counter)?, last.sum(counter)?);
        // A counter that fell is that of another process.
        (after >= before).then_some(())?;
        grown += after - before;
        seconds += last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
    }
    (seconds > 0.0).then(|| grown / seconds)
}

/// What the JVM of a pod reported at one instant.
pub struct Scrape<'a> {
    /// When it was asked, on the samples' clock.
    pub at_ns: u64,
    series: &'a BTreeMap<String, f64>,
}

/// What a pod's endpoint answered, slice after slice; times without an answer are left out.
fn scrapes<'a>(tally: &'a Tally<'_>, pod: &'a str) -> impl Iterator<Item = Scrape<'a>> {
    tally.slices.iter().flat_map(move |slice| scrapes_in(slice, pod))
}

fn scrapes_in<'a>(slice: &'a Slice<'_>, pod: &'a str) -> impl Iterator<Item = Scrape<'a>> {
    scrapes_of(&slice.record.samples, pod)
}

/// What a pod's endpoint answered, in order.
pub fn scrapes_of<'a>(samples: &'a [Sample], pod: &'a str) -> impl Iterator<Item = Scrape<'a>> {
    let of_pod = samples.iter().flat_map(|s| &s.metrics).filter(move |m| m.pod == pod);
    of_pod.filter_map(|metrics| match &metrics.series {
        Reading::Value(series) => Some(Scrape { at_ns: metrics.at_ns, series }),
        Reading::Missing(_) => None,
    })
}

impl Scrape<'_> {
    /// Heap in use after the last collection of each pool, MiB. A pool of old objects that was never collected
    /// stands at zero: then it is not known.
    pub fn heap_live_mib(&self) -> Option<f64> {
        let pools: Vec<(&str, f64)> =
            self.starting("jvm_memory_pool_collection_used_bytes{").collect();
        let never = |(key, bytes): &(&str, f64)| !is_young(key) && *bytes == 0.0;
        let known = !pools.is_empty() && !pools.iter().any(never);
        known.then(|| pools.iter().map(|(_, bytes)| bytes).sum::<f64>() / MIB)
    }

    /// Collections of the old generation since the process began; `None` of a collector that has none.
    pub fn old_collections(&self) -> Option<f64> {
        let counts: Vec<f64> = self
            .starting("jvm_gc_collection_seconds_count{")
            .filter(|(key, _)| collects_old(key))
            .map(|(_, count)| count)
            .collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }

    /// The sum of the series of this name, or of those that begin with it and its first labels.
    fn sum(&self, series: &str) -> Option<f64> {
        let values: Vec<f64> = self.named(series).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    fn named(&self, series: &str) -> impl Iterator<Item = f64> {
        let ends = move |key: &str| {
            key.strip_prefix(series)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['{', ',', '}']))
        };
        self.starting(series).filter(move |(key, _)| ends(key)).map(|(_, value)| value)
    }

    fn starting(&self, prefix: &str) -> impl Iterator<Item = (&str, f64)> {
        let all = self.series.iter().map(|(key, value)| (key.as_str(), *value));
        all.filter(move |(key, value)| key.starts_with(prefix) && value.is_finite())
    }
}

/// Whether a pool's objects are young, by the names that HotSpot's collectors give their pools.
fn is_young(key: &str) -> bool {
    ["Eden", "Survivor", "Young"].iter().any(|name| key.contains(name))
}

/// Whether a collector's cycles take in old objects, by the names that HotSpot gives its collectors. ZGC counts
/// its cycles, and the pauses within them, apart.
fn collects_old(key: &str) -> bool {
    let of_old = ["MarkSweep", "Old", "Major", "ZGC"].iter().any(|name| key.contains(name));
    of_old && !["Minor", "Pauses"].iter().any(|name| key.contains(name))
}
