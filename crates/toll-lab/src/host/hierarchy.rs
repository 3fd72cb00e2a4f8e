//! Turns `/proc/self/mountinfo` into the cgroup hierarchies of this machine. Creates nothing.
//!
//! Format: proc_pid_mountinfo(5). A machine may mount cgroup v1 controllers and a v2 hierarchy side by side.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Where the hierarchies that count something are mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    /// cgroup v2.
    pub(crate) unified: Option<PathBuf>,
    /// cgroup v1 with the `cpuacct` controller.
    pub(crate) cpuacct: Option<PathBuf>,
    /// cgroup v1 with the `memory` controller.
    pub(crate) memory: Option<PathBuf>,
}

impl Hierarchies {
    /// The hierarchies that this process sees.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub(crate) fn of_this_machine() -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/self/mountinfo")?))
    }

    fn parse(mountinfo: &str) -> Self {
        let mut found = Self::default();
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            let has = |controller| mount.options.split(',').any(|o| o == controller);
            let slot = match mount.kind {
                "cgroup2" => &mut found.unified,
                "cgroup" if has("cpuacct") => &mut found.cpuacct,
                "cgroup" if has("memory") => &mut found.memory,
                _ => continue,
            };
            slot.get_or_insert_with(|| unescape(mount.point));
        }
        found
    }
}

struct Mount<'a> {
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// A variable number of optional fields ends with a lone hyphen, so the line is read from both ends.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        Some(Self {
            point: mount.split(' ').nth(4)?,
            kind: file_system.next()?,
            options: file_system.nth(1)?,
        })
    }
}

/// The kernel writes blanks in paths as octal escapes.
fn unescape(path: &str) -> PathBuf {
    PathBuf::from(path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_AND_V2: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn controllers_mounted_together_and_beside_v2_are_found() {
        let found = Hierarchies::parse(V1_AND_V2);
        assert_eq!(found.unified, Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(found.cpuacct, Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(found.memory, Some("/sys/fs/cgroup/memory".into()));
    }

    #[test]
    fn a_machine_with_v2_only_has_no_v1_controllers() {
        let line =
            "30 23 0:26 / /sys/fs/cgroup rw shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate";
        let found = Hierarchies::parse(line);
        assert_eq!(found.unified, Some("/sys/fs/cgroup".into()));
        assert_eq!((found.cpuacct, found.memory), (None, None));
    }

    #[test]
    fn the_controller_cpuset_is_not_taken_for_another() {
        let line = "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
        assert_eq!(Hierarchies::parse(line), Hierarchies::default());
    }

    #[test]
    fn an_escaped_blank_in_a_mount_point_is_read_back() {
        let line = "41 31 0:38 / /mnt/a\\040b rw - cgroup2 cgroup2 rw";
        assert_eq!(Hierarchies::parse(line).unified, Some("/mnt/a b".into()));
    }
}
