//! A node pod: reads the counters of the containers on its node, at the instant at which it is asked.
//!
//! It finds a container's cgroup by its id, which every runtime puts into the directory's name, below the node's own
//! hierarchies, which are mounted into it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hyper::{Method, StatusCode};

use super::exchange::{Question, Reply};
use super::protocol::{ContainerCounters, NodeCounters, Watch};
use crate::HostSample;
use crate::host::hierarchy::Hierarchies;
use crate::sampler::{Source, monotonic_ns, read_host};

/// The variable that says where the node's `/sys/fs/cgroup` is mounted.
pub(crate) const CGROUPS_VARIABLE: &str = "TOLL_CGROUPS";

/// How deep below a hierarchy a container's directory may be: kubepods, quality of service, pod, container, and what a
/// node that is itself a container has above them.
const DEEPEST: usize = 9;

/// A node pod's state.
#[derive(Debug)]
pub(super) struct Node {
    mounts: Hierarchies,
    /// The host's last reading.
    host: Mutex<HostSample>,
    /// By arm, then by container id.
    watched: Mutex<BTreeMap<String, BTreeMap<String, Source>>>,
}

impl Node {
    pub(super) fn open() -> io::Result<Self> {
        let root = env::var(CGROUPS_VARIABLE).unwrap_or_else(|_| "/sys/fs/cgroup".to_owned());
        Ok(Self {
            mounts: hierarchies_below(Path::new(&root)),
            host: Mutex::new(read_host()?),
            watched: Mutex::default(),
        })
    }

    pub(super) fn reply(&self, question: &Question) -> Reply {
        match (&question.method, question.segments().as_slice()) {
            (&Method::PUT, ["counters", arm]) => match question.read::<Watch>() {
                Ok(watch) => self.watch(arm, &watch),
                Err(refused) => refused,
            },
            (&Method::GET, ["counters", arm]) => Reply::json(&self.counters(arm)),
            (&Method::DELETE, ["counters", arm]) => {
                self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(*arm);
                Reply::done()
            }
            _ => Reply::unknown(),
        }
    }

    /// Keeps the counters of these containers open for an arm, and of no others.
    fn watch(&self, arm: &str, watch: &Watch) -> Reply {
        let mut arms = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = arms.entry(arm.to_owned()).or_default();
        watched.retain(|id, _| watch.containers.contains(id));
        let missing: Vec<String> =
            watch.containers.iter().filter(|id| !watched.contains_key(*id)).cloned().collect();
        for (id, groups) in find(&self.mounts, &missing) {
            watched.insert(id, Source::of_group(&groups));
        }
        let lost: Vec<&String> =
            watch.containers.iter().filter(|id| !watched.contains_key(*id)).collect();
        match lost.as_slice() {
            [] => Reply::done(),
            [first, ..] => Reply::refused(
                StatusCode::NOT_FOUND,
                &format!("{} containers have no cgroup here, for instance {first}", lost.len()),
            ),
        }
    }

    fn counters(&self, arm: &str) -> NodeCounters {
        let at_ns = monotonic_ns();
        let arms = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |source: &Source| ContainerCounters {
            cpu_ns: source.cpu_ns(),
            memory: source.memory(),
        };
        let watched = arms.get(arm).into_iter().flatten();
        let containers = watched.map(|(id, source)| (id.clone(), read(source))).collect();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        // Zeros would be a machine that did less than its containers.
        *host = read_host().unwrap_or_else(|_| host.clone());
        NodeCounters { at_ns, took_ns: monotonic_ns() - at_ns, host: host.clone(), containers }
    }
}

/// The hierarchies of a node by their usual places: its mounts are not this pod's.
fn hierarchies_below(root: &Path) -> Hierarchies {
    let with = |places: &[&str], file: &str| {
        let places = places.iter().map(|place| root.join(place));
        places.into_iter().find(|place| place.join(file).exists())
    };
    Hierarchies {
        unified: with(&["", "unified"], "cgroup.controllers"),
        cpuacct: with(&["cpu,cpuacct", "cpuacct", "cpuacct,cpu"], "cpuacct.usage"),
        memory: with(&["memory"], "memory.usage_in_bytes"),
    }
}

/// The directories of these containers, by id.
fn find(mounts: &Hierarchies, ids: &[String]) -> BTreeMap<String, Hierarchies> {
    let mut found: BTreeMap<String, Hierarchies> = BTreeMap::new();
    let mut note = |mount: &Option<PathBuf>, slot: fn(&mut Hierarchies) -> &mut Option<PathBuf>| {
        let Some(mount) = mount else { return };
        let mut left = ids.to_vec();
        walk(mount, DEEPEST, &mut left, &mut |id, dir| {
            *slot(found.entry(id.to_owned()).or_default()) = Some(dir.to_owned());
        });
    };
    note(&mounts.unified, |groups| &mut groups.unified);
    note(&mounts.cpuacct, |groups| &mut groups.cpuacct);
    note(&mounts.memory, |groups| &mut groups.memory);
    found
}

fn walk(dir: &Path, deeper: usize, left: &mut Vec<String>, found: &mut dyn FnMut(&str, &Path)) {
    if deeper == 0 || left.is_empty() {
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match left.iter().position(|id| name.contains(id.as_str())) {
            Some(at) => {
                found(&left.swap_remove(at), &path);
                if left.is_empty() {
                    return;
                }
            }
            None => walk(&path, deeper - 1, left, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_found_by_its_id_however_the_runtime_nests_and_names_it() {
        let root = tempfile::tempdir().unwrap();
        let dirs = [
            "cpuacct/kubepods/burstable/pod1/aaa111",
            "cpuacct/kubepods.slice/kubepods-pod2.slice/cri-containerd-bbb222.scope",
            "memory/kubepods/burstable/pod1/aaa111",
        ];
        for dir in dirs {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        fs::write(root.path().join("cpuacct/cpuacct.usage"), "0").unwrap();
        fs::write(root.path().join("memory/memory.usage_in_bytes"), "0").unwrap();
        let mounts = hierarchies_below(root.path());
        let ids = ["aaa111", "bbb222", "ccc333"].map(str::to_owned);
        let found = find(&mounts, &ids);
        assert_eq!(found["aaa111"].cpuacct.as_deref(), Some(root.path().join(dirs[0]).as_path()));
        assert_eq!(found["aaa111"].memory.as_deref(), Some(root.path().join(dirs[2]).as_path()));
        assert_eq!(found["bbb222"].cpuacct.as_deref(), Some(root.path().join(dirs[1]).as_path()));
        assert!(!found.contains_key("ccc333"));
    }
}
