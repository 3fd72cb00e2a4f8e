//! How long a plan takes: what a person reads before it runs. Rough, and on the long side.

use toll_lab::{
    AirlineDatabase, BuiltIn, Compilers, DataPlane, DatabaseServer, Deployment, Program, Runtime,
};

use super::{Arm, Plan, PlannedLoad, PlannedSettle, REHEARSED_S};

/// Bring-up and tear-down of services that start at once, seconds.
const UP_AND_DOWN_S: f64 = 1.0;
/// What a PostgreSQL server adds: copying its data, starting, filling it, seconds.
const DATABASE_S: f64 = 0.5;
/// What a MongoDB server adds: starting, on a JVM where it is the stand-in, and filling it, seconds.
const MONGODB_S: f64 = 3.0;
/// What an egress gateway adds: a pod more, seconds.
const EGRESS_S: f64 = 0.5;
/// What an external database adds to the proof: a look into it and a handshake from each calling pod, before and after,
/// seconds.
const PROOF_OF_EXTERNAL_S: f64 = 0.4;
/// Bring-up and tear-down with services on a JVM, which are slow to start, seconds.
const JVM_UP_AND_DOWN_S: f64 = 12.0;
/// What an agent adds to that: it rewrites classes while they load, seconds.
const AGENT_S: f64 = 4.0;
/// What each further pod of a service adds to that, without and with a sidecar, seconds.
const FURTHER_POD_S: [f64; 2] = [0.01, 0.05];
/// What each further pod adds to the proof of path, without and with a sidecar, seconds.
const PROOF_OF_POD_S: [f64; 2] = [0.001, 0.003];
/// How long after the last slice its spans arrive at the collector, seconds.
const LAST_SPANS_S: f64 = 1.0;
/// Until the last request of a slice is answered and the next arm's turn comes, seconds.
const DRAIN_S: f64 = 0.05;
/// The slices at the end of settling that say what a variant carries, seconds.
const CAPACITY_S: f64 = 2.6;
/// Share of the time that settling may take which it usually does: a study sets the limit with little to spare.
const USUAL_SHARE: f64 = 0.8;

/// How long a run takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Rounds: as many as are planned or fit into the time; where the width decides, the fewest that there can be.
    pub rounds: usize,
    /// Environments that come up and go down in a round.
    pub bring_ups: usize,
    /// For a round, seconds.
    pub round_s: f64,
    /// For the capacity, once, seconds.
    pub capacity_s: f64,
}

impl Budget {
    /// All of it, seconds.
    pub fn total_s(&self) -> f64 {
        self.rounds as f64 * self.round_s + self.capacity_s
    }
}

impl Plan {
    /// How long the run will take.
    pub fn budget(&self) -> Budget {
        let sizes = self.sizes();
        let round_s = (0..sizes.len()).map(|size| self.size_s(size, &sizes[size])).sum();
        let measured = if self.needs_capacity() { self.ready().count() } else { 0 };
        let capacity_s = measured as f64 * CAPACITY_S;
        let bring_ups = sizes.len() * self.arms.len();
        Budget { rounds: self.rounds_of(round_s, capacity_s), bring_ups, round_s, capacity_s }
    }

    /// How long after its last answer an arm's agents may still export, seconds; 0 without agents.
    pub fn exports_after_s(&self) -> f64 {
        let delay = |deployment: &Deployment| match &deployment.data_plane {
            DataPlane::Agent(agent) => agent.batch_delay().as_secs_f64(),
            _ => 0.0,
        };
        self.ready().map(|(_, deployment)| delay(deployment)).fold(0.0, f64::max)
    }

    fn rounds_of(&self, round_s: f64, capacity_s: f64) -> usize {
        match (self.extent.rounds, self.extent.for_s) {
            (Some(rounds), _) => rounds,
            (None, Some(for_s)) => (((for_s - capacity_s) / round_s) as usize).max(1),
            (None, None) => self.extent.least_rounds,
        }
    }

    /// What a round takes at one size: the arms come up one after another, settle and rest, and bear their loads in turn.
    fn size_s(&self, size: usize, loads: &[&PlannedLoad]) -> f64 {
        let arm_s = |arm: &Arm| self.deployment_at(arm, size).map(|of_arm| self.arm_s(&of_arm));
        let arms_s: f64 = self.arms.iter().filter_map(arm_s).sum();
        let cycles_s = self.cycles as f64 * self.cycle_s(loads);
        arms_s + self.settle.rest_s + self.idle_s + self.rehearsal_s(size, loads) + cycles_s
    }

    /// A short slice of each load for each arm, seconds.
    fn rehearsal_s(&self, size: usize, loads: &[&PlannedLoad]) -> f64 {
        let slice_s = |load: &&PlannedLoad| load.guard_s(self.guard_s) + REHEARSED_S + DRAIN_S;
        let one_arm_s: f64 = loads.iter().map(slice_s).sum();
        (self.rehearsal(size).len() / loads.len().max(1)) as f64 * one_arm_s
    }

    /// A slice of each load for each arm, there and back, seconds.
    fn cycle_s(&self, loads: &[&PlannedLoad]) -> f64 {
        let exports_s = self.exports_after_s();
        let slice_s = |load: &&PlannedLoad| {
            load.guard_s(self.guard_s) + load.slice_s(None) + DRAIN_S + exports_s
        };
        2.0 * self.arms.len() as f64 * loads.iter().map(slice_s).sum::<f64>()
    }

    /// What a round takes before its first slice and after its last, in cycles.
    pub fn setup_cycles(&self) -> f64 {
        let cycle_s: f64 = self.sizes().iter().map(|loads| self.cycle_s(loads)).sum();
        self.budget().round_s / cycle_s - self.cycles as f64
    }

    /// Bring-up, settling, proof and tear-down of an arm, seconds.
    fn arm_s(&self, deployment: &Deployment) -> f64 {
        let external = deployment.services.iter().filter(|s| s.external.is_some()).count();
        let spans_s = if has_agent(deployment) { LAST_SPANS_S } else { 0.0 };
        let proof_s = each_further_pod_s(deployment, PROOF_OF_POD_S)
            + external as f64 * PROOF_OF_EXTERNAL_S
            + spans_s;
        up_and_down_s(deployment) + self.settle.usual_s() + proof_s
    }
}

impl PlannedSettle {
    /// How long it usually takes, seconds: most of what it may, but never less than can show it stable.
    fn usual_s(&self) -> f64 {
        let least_s = self.slice_s * f64::from(crate::study::Settle::SLICES);
        (self.max_s * USUAL_SHARE).max(least_s).min(self.max_s)
    }
}

fn has_agent(deployment: &Deployment) -> bool {
    matches!(deployment.data_plane, DataPlane::Agent(_))
}

/// Whether a JVM is in it, whose starts take long and whose compilers take longer.
pub fn is_on_jvm(deployment: &Deployment) -> bool {
    let on_jvm = |program: &Program| {
        let spring = matches!(program, Program::BuiltIn(BuiltIn { runtime: Runtime::Spring, .. }));
        spring || matches!(program, Program::Petclinic(_))
    };
    has_agent(deployment) || deployment.services.iter().any(|service| on_jvm(&service.program))
}

/// Whether a JVM in it compiles as it likes.
pub fn compiles_for_long(deployment: &Deployment) -> bool {
    let is_quick = |service: &toll_lab::Service| match service.program {
        Program::Petclinic(petclinic) => petclinic.compilers == Compilers::First,
        _ => false,
    };
    is_on_jvm(deployment) && !deployment.services.iter().any(is_quick)
}

fn up_and_down_s(deployment: &Deployment) -> f64 {
    let programs = deployment.services.iter().map(|service| &service.program);
    let first_pods_s = if is_on_jvm(deployment) {
        JVM_UP_AND_DOWN_S + if has_agent(deployment) { AGENT_S } else { 0.0 }
    } else {
        // They start side by side: the slowest counts.
        UP_AND_DOWN_S + programs.map(database_s).fold(0.0, f64::max)
    };
    let egress_s = deployment.data_plane.egress_gateway().map_or(0.0, |_| EGRESS_S);
    first_pods_s + egress_s + each_further_pod_s(deployment, FURTHER_POD_S)
}

/// What a server takes beyond services that start at once, seconds.
fn database_s(program: &Program) -> f64 {
    match program {
        Program::AirlineDatabase(AirlineDatabase { server: DatabaseServer::MongoDb, .. }) => {
            MONGODB_S
        }
        program if program.is_database() => DATABASE_S,
        _ => 0.0,
    }
}

/// For all pods but the first of each service, seconds; of a pod without and with a sidecar.
fn each_further_pod_s(deployment: &Deployment, [bare_s, sidecar_s]: [f64; 2]) -> f64 {
    let has_sidecars = deployment.data_plane.has_sidecars();
    let of_service = |service: &toll_lab::Service| {
        let meshed = has_sidecars && service.program.takes_sidecar();
        let each_s = if meshed { sidecar_s } else { bare_s };
        service.replicas.saturating_sub(1) as f64 * each_s
    };
    deployment.services.iter().map(of_service).sum()
}
