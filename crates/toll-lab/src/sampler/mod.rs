//! Reads the cumulative counters of every component and of the host at one instant.
//!
//! Counters, not gauges (docs/method.md rule 5): the difference of two samples is exact for the time between them.
//! Where a counter is not there the reading says why; nothing is estimated.

mod clock;
mod family;
mod format;
mod host;
mod source;

use std::io;

use crate::host::hierarchy::Hierarchies;
use crate::{Component, ComponentSample, HostSample, Reading, Role, Sample};

pub(crate) use clock::monotonic_ns;
pub(crate) use host::read as read_host;
pub(crate) use source::Source;

/// The components of one environment and their counters, in the order of the deployment.
#[derive(Debug)]
pub(crate) struct Sampler {
    components: Vec<Watched>,
    /// A process of toll's own beside this one.
    helper: Option<Watched>,
    /// The host's last reading.
    host: HostSample,
}

impl Sampler {
    /// Watches the host, and no component yet.
    ///
    /// # Errors
    /// When the host's counters cannot be read.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { components: Vec::new(), helper: None, host: host::read()? })
    }

    /// Reads `source` for `component` from now on, in place of what was read for it before.
    pub(crate) fn watch(&mut self, component: Component, source: Source) {
        match self.components.iter_mut().find(|known| known.component == component) {
            Some(known) => known.go_on_with(source),
            None => self.components.push(Watched::new(component, source)),
        }
    }

    /// Counts what `source` reads as toll's own from now on.
    pub(crate) fn watch_helper(&mut self, source: Source) {
        self.helper = Some(Watched::new(harness(), source));
    }

    /// All counters now; toll's own come last. A host that cannot be read this time stays as it was: zeros
    /// would be a machine that did less than its components.
    pub(crate) fn sample(&mut self) -> Sample {
        let at_ns = monotonic_ns();
        let mut components: Vec<_> = self.components.iter_mut().map(Watched::read).collect();
        components.push(self.harness());
        self.host = host::read().unwrap_or_else(|_| self.host.clone());
        let took_ns = monotonic_ns() - at_ns;
        Sample { at_ns, took_ns, components, host: self.host.clone(), metrics: Vec::new() }
    }

    /// toll itself: threads of this process, wherever it runs, and its helper.
    fn harness(&mut self) -> ComponentSample {
        let own = Source::of(&Hierarchies::default(), nix::unistd::getpid());
        let mut toll = Watched::new(harness(), own).read();
        if let Some(helper) = &mut self.helper {
            let its = helper.read();
            // One that has ended used no more than was last read.
            toll.cpu_ns = sum(toll.cpu_ns, &Reading::Value(helper.last_ns));
            toll.memory.current = sum(toll.memory.current, &its.memory.current);
            toll.memory.anonymous = sum(toll.memory.anonymous, &its.memory.anonymous);
            toll.memory.peak = sum(toll.memory.peak, &its.memory.peak);
        }
        toll
    }
}

/// What has no second part is as large as its first.
fn sum(first: Reading<u64>, second: &Reading<u64>) -> Reading<u64> {
    match (first, second) {
        (Reading::Value(first), Reading::Value(second)) => Reading::Value(first + second),
        (first, _) => first,
    }
}

/// A component, and the counters of the processes that it was, one after the other.
#[derive(Debug)]
struct Watched {
    component: Component,
    source: Source,
    /// CPU time that is not in the source: that of earlier processes, nanoseconds.
    before_ns: u64,
    /// The highest CPU time that was read, nanoseconds.
    last_ns: u64,
}

impl Watched {
    fn new(component: Component, source: Source) -> Self {
        Self { component, source, before_ns: 0, last_ns: 0 }
    }

    fn read(&mut self) -> ComponentSample {
        ComponentSample {
            component: self.component.clone(),
            cpu_ns: self.cpu_ns(),
            memory: self.source.memory(),
        }
    }

    fn cpu_ns(&mut self) -> Reading<u64> {
        let reading = match self.source.cpu_ns() {
            Reading::Value(ns) => Reading::Value(self.before_ns + ns),
            missing => missing,
        };
        if let Reading::Value(ns) = reading {
            self.last_ns = ns;
        }
        reading
    }

    /// A cgroup goes on counting with the next process; a process's clock begins at zero.
    fn go_on_with(&mut self, source: Source) {
        self.cpu_ns();
        self.before_ns = if source.cpu_is_of_one_process() { self.last_ns } else { 0 };
        self.source = source;
    }
}

/// The component that toll itself is.
fn harness() -> Component {
    Component { role: Role::Harness, pod: "toll".into() }
}

#[cfg(test)]
mod tests;
