//! Writes down what an environment leaves in the system, so that a later toll can remove it.
//!
//! One file an environment, a JSON line for each thing, written *before* the thing is made where its name is
//! known. A process is known by its id and start time together, because ids are used again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};
use serde::{Deserialize, Serialize};

use super::cgroups;

/// How long a killed process may take to end.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// One thing that must not outlive the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    /// The toll that made all the others; always first.
    Owner(Identity),
    /// The leader of a session.
    Process(Identity),
    /// A cgroup directory.
    Cgroup(PathBuf),
    /// A directory of files.
    Directory(PathBuf),
    /// A number of the system's that was raised.
    Setting(Setting),
    /// The data directory of a database server: of its processes, and of its shared memory, only it tells when the
    /// server has been killed.
    DataDirectory(PathBuf),
}

impl Entry {
    /// Processes go before the cgroups and directories that they are in.
    fn rank(&self) -> u8 {
        match self {
            Self::Owner(_) | Self::Process(_) | Self::DataDirectory(_) => 0,
            Self::Cgroup(_) | Self::Setting(_) => 1,
            Self::Directory(_) => 2,
        }
    }

    fn leader(&self) -> Option<Identity> {
        match self {
            Self::Process(leader) => Some(*leader),
            _ => None,
        }
    }
}

/// A file below `/proc/sys` that holds one number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    path: PathBuf,
    before: u64,
    raised_to: u64,
}

impl Setting {
    /// Whether nobody has changed it since.
    fn stands(&self) -> bool {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.trim().parse() == Ok(self.raised_to)
    }

    fn restore(&self) -> io::Result<()> {
        if self.stands() { fs::write(&self.path, self.before.to_string()) } else { Ok(()) }
    }
}

/// A process that cannot be taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: i32,
    /// Clock ticks since boot.
    started: u64,
}

impl Identity {
    fn of(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid: pid.as_raw(), started: start_time(&stat)? })
    }

    fn is_alive(self) -> bool {
        Self::of(Pid::from_raw(self.pid)) == Some(self)
    }
}

/// Field 22 of `/proc/PID/stat`. The name before it may hold blanks and parentheses.
fn start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Ends what is left of the database server on a data directory; whether there was anything.
pub(crate) type EndServer = fn(&Path) -> io::Result<bool>;

/// The ledger of one environment.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Unique among all environments of this machine.
    pub(crate) id: String,
    path: PathBuf,
    file: File,
    end_server: EndServer,
}

impl Ledger {
    /// Opens a new ledger in the state directory of the caller.
    ///
    /// # Errors
    /// When the directory cannot be made or belongs to somebody else.
    pub(crate) fn open(end_server: EndServer) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let owner = Identity::of(getpid()).ok_or(io::ErrorKind::NotFound)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{}-{number}", owner.pid, owner.started);
        let path = state_directory()?.join(format!("{id}.ledger"));
        // Under its own name only with its owner in it: else another toll takes it for abandoned.
        let unfinished = path.with_extension("new");
        let file = OpenOptions::new().create(true).append(true).open(&unfinished)?;
        let mut ledger = Self { id, path, file, end_server };
        ledger.write(&Entry::Owner(owner))?;
        fs::rename(unfinished, &ledger.path)?;
        Ok(ledger)
    }

    /// A process has been started.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn process(&mut self, pid: Pid) -> io::Result<()> {
        // One that has ended already needs no entry.
        Identity::of(pid).map_or(Ok(()), |process| self.write(&Entry::Process(process)))
    }

    /// A cgroup is about to be made.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn cgroup(&mut self, path: &Path) -> io::Result<()> {
        self.write(&Entry::Cgroup(path.into()))
    }

    /// A directory is about to be made.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn directory(&mut self, path: &Path) -> io::Result<()> {
        self.write(&Entry::Directory(path.into()))
    }

    /// Raises a number of the system's to `number`, until the ledger is settled. Two environments that run at once
    /// and both need more than the system gave share what the first raised.
    ///
    /// # Errors
    /// When it cannot be written down, or is not the caller's to raise.
    pub(crate) fn raise(&mut self, path: &Path, number: u64) -> io::Result<()> {
        let before = fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)?;
        self.write(&Entry::Setting(Setting { path: path.into(), before, raised_to: number }))?;
        fs::write(path, number.to_string())
    }

    /// A database server is about to get this data directory, or is about to make it.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn data_directory(&mut self, path: &Path) -> io::Result<()> {
        self.write(&Entry::DataDirectory(path.into()))
    }

    /// Removes all that is written down, then the ledger itself.
    ///
    /// # Errors
    /// What could not be removed, in words.
    pub(crate) fn settle(&self) -> Result<(), Vec<String>> {
        settle(&self.path, self.end_server).map(|_| ())
    }

    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Removes what dead owners left, and says what that was. What a living toll owns is not touched.
///
/// # Errors
/// What could not be removed, in words.
pub(crate) fn clean(end_server: EndServer) -> Result<Vec<String>, Vec<String>> {
    let directory = state_directory().map_err(|e| vec![e.to_string()])?;
    let ledgers = fs::read_dir(directory).map_err(|e| vec![e.to_string()])?;
    let ledgers: Vec<PathBuf> = ledgers.flatten().map(|entry| entry.path()).collect();
    for unfinished in ledgers.iter().filter(|path| is_unfinished(path)) {
        // Another toll may have been faster.
        let _ = fs::remove_file(unfinished);
    }
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for ledger in ledgers.iter().filter(|path| is_abandoned(path)) {
        match settle(ledger, end_server) {
            Ok(words) => removed.extend(words),
            Err(words) => left.extend(words),
        }
    }
    if left.is_empty() { Ok(removed) } else { Err(left) }
}

/// Whether its owner died before it made anything: it may not even be named in it, so its file's name tells.
fn is_unfinished(ledger: &Path) -> bool {
    let is_new = ledger.extension().is_some_and(|e| e == "new");
    is_new && owner_by_name(ledger).is_some_and(|owner| !owner.is_alive())
}

fn owner_by_name(ledger: &Path) -> Option<Identity> {
    let mut id = ledger.file_stem()?.to_str()?.split('-');
    Some(Identity { pid: id.next()?.parse().ok()?, started: id.next()?.parse().ok()? })
}

fn is_abandoned(ledger: &Path) -> bool {
    let is_ledger = ledger.extension().is_some_and(|e| e == "ledger");
    let owned = read(ledger).iter().any(|e| matches!(e, Entry::Owner(owner) if owner.is_alive()));
    is_ledger && !owned
}

/// A half-written last line, from a toll that died writing it, names nothing that was made.
fn read(ledger: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn settle(ledger: &Path, end_server: EndServer) -> Result<Vec<String>, Vec<String>> {
    let mut entries = read(ledger);
    entries.sort_by_key(Entry::rank);
    let leaders: Vec<Identity> = entries.iter().filter_map(Entry::leader).collect();
    let (mut removed, mut left) = end_sessions(&leaders);
    for entry in &entries {
        match remove(entry, end_server) {
            Ok(words) => removed.extend(words),
            Err((words, e)) => left.push(format!("{words}: {e}")),
        }
    }
    if !left.is_empty() {
        return Err(left);
    }
    match fs::remove_file(ledger) {
        // Another toll settled it at the same time.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(removed),
        Err(e) => Err(vec![format!("{}: {e}", ledger.display())]),
        Ok(()) => Ok(removed),
    }
}

/// What was removed, in words; nothing when it was gone already.
fn remove(entry: &Entry, end_server: EndServer) -> Result<Option<String>, (String, io::Error)> {
    let (words, there, outcome) = match entry {
        Entry::Owner(_) | Entry::Process(_) => return Ok(None),
        Entry::Cgroup(path) => {
            (format!("cgroup {}", path.display()), path.exists(), cgroups::remove(path))
        }
        Entry::Setting(setting) => {
            (format!("raised {}", setting.path.display()), setting.stands(), setting.restore())
        }
        Entry::DataDirectory(path) => {
            let ended = end_server(path);
            let there = matches!(ended, Ok(true));
            (format!("database in {}", path.display()), there, ended.map(|_| ()))
        }
        Entry::Directory(path) => {
            (format!("directory {}", path.display()), path.exists(), remove_directory(path))
        }
    };
    match outcome {
        Ok(()) => Ok(there.then_some(words)),
        Err(e) => Err((words, e)),
    }
}

/// Kills the sessions that these processes lead or led, all at once: what was ended and what was not, in words.
fn end_sessions(leaders: &[Identity]) -> (Vec<String>, Vec<String>) {
    let words = |leader: &i32| format!("process {leader}");
    let deadline = Instant::now() + LONGEST_EXIT;
    let mut living = sessions_of(leaders);
    let found: Vec<String> = living.keys().map(words).collect();
    while !living.is_empty() && Instant::now() < deadline {
        for member in living.values().flatten() {
            let _ = kill(*member, Signal::SIGKILL);
        }
        // Not our children, so there is nothing to wait on.
        thread::sleep(Duration::from_millis(5));
        living = sessions_of(leaders);
    }
    let stuck = living.keys().map(|leader| format!("{}: it does not end", words(leader)));
    (found, stuck.collect())
}

/// The processes of each session that has any, by its leader's id. One look at all processes serves all sessions;
/// a leader's id that another process has by now stands for no session.
fn sessions_of(leaders: &[Identity]) -> BTreeMap<i32, Vec<Pid>> {
    let is_another = |leader: &&Identity| {
        Identity::of(Pid::from_raw(leader.pid)).is_some_and(|now| now != **leader)
    };
    let led: BTreeSet<i32> =
        leaders.iter().filter(|leader| !is_another(leader)).map(|leader| leader.pid).collect();
    let mut sessions = BTreeMap::<i32, Vec<Pid>>::new();
    if led.is_empty() {
        return sessions;
    }
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids.map(Pid::from_raw) {
        if let Some(leader) = session(pid).filter(|leader| led.contains(leader)) {
            sessions.entry(leader).or_default().push(pid);
        }
    }
    sessions
}

/// The session of a process that has not ended: field 6 of `/proc/PID/stat`.
fn session(pid: Pid) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    if fields.first() == Some(&"Z") { None } else { fields.get(3)?.parse().ok() }
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// The directory of all ledgers of this user.
///
/// # Errors
/// When it cannot be made, or when somebody else made it: its files say what to delete.
fn state_directory() -> io::Result<PathBuf> {
    let directory = state_path();
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let there = fs::symlink_metadata(&directory)?;
    if there.is_dir() && there.uid() == geteuid().as_raw() && there.mode() & 0o022 == 0 {
        Ok(directory)
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} belongs to another user", directory.display()),
        ))
    }
}

fn state_path() -> PathBuf {
    let user = geteuid();
    if user.is_root() {
        return "/run/toll".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if Path::new(&runtime).is_dir() => Path::new(&runtime).join("toll"),
        _ => format!("/tmp/toll-{user}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_server(_: &Path) -> io::Result<bool> {
        Ok(false)
    }

    #[test]
    fn the_start_time_is_found_after_a_name_with_blanks_and_parentheses() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 0 0";
        assert_eq!(start_time(stat), Some(98_765));
    }

    #[test]
    fn a_used_again_process_id_is_not_the_same_process() {
        let this = Identity::of(getpid()).unwrap();
        assert!(this.is_alive());
        assert!(!Identity { started: this.started + 1, ..this }.is_alive());
    }

    #[test]
    fn a_session_outlives_its_leader_and_is_ended() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 600 & true"]);
        // SAFETY: one system call.
        unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(|_| ())?)) };
        let mut child = command.spawn().unwrap();
        let leader = Identity::of(Pid::from_raw(child.id().try_into().unwrap())).unwrap();
        child.wait().unwrap();
        assert_eq!(sessions_of(&[leader])[&leader.pid].len(), 1);
        assert_eq!(end_sessions(&[leader]), (vec![format!("process {}", leader.pid)], vec![]));
        assert!(sessions_of(&[leader]).is_empty());
    }

    #[test]
    fn settling_a_ledger_removes_what_it_names_and_the_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("left");
        fs::create_dir(&left).unwrap();
        let ledger = dir.path().join("1.ledger");
        let line = serde_json::to_string(&Entry::Directory(left.clone())).unwrap();
        fs::write(&ledger, format!("{line}\n{{\"direc")).unwrap();
        let removed = settle(&ledger, no_server).unwrap();
        assert_eq!(removed, [format!("directory {}", left.display())]);
        assert!(!left.exists() && !ledger.exists());
    }

    #[test]
    fn a_number_that_was_raised_is_lowered_again_unless_somebody_else_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gc_thresh3");
        for (between, after) in [("4096", "1024"), ("9000", "9000")] {
            fs::write(&path, "1024\n").unwrap();
            let mut ledger = Ledger::open(no_server).unwrap();
            ledger.raise(&path, 4096).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "4096");
            fs::write(&path, between).unwrap();
            ledger.settle().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
    }

    #[test]
    fn a_process_ends_before_the_directory_that_was_written_down_first_is_removed() {
        use std::os::unix::process::CommandExt;
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("left");
        fs::create_dir(&left).unwrap();
        let mut command = std::process::Command::new("sleep");
        command.arg("600").current_dir(&left);
        // SAFETY: one system call.
        unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(|_| ())?)) };
        let mut child = command.spawn().unwrap();
        let process = Identity::of(Pid::from_raw(child.id().try_into().unwrap())).unwrap();
        let entries = [Entry::Directory(left.clone()), Entry::Process(process)];
        let lines = entries.map(|entry| serde_json::to_string(&entry).unwrap());
        let ledger = dir.path().join("1.ledger");
        fs::write(&ledger, lines.join("\n")).unwrap();
        let removed = settle(&ledger, no_server).unwrap();
        child.wait().unwrap();
        let words = [format!("process {}", process.pid), format!("directory {}", left.display())];
        assert_eq!(removed, words);
    }

    #[test]
    fn a_ledger_that_its_owner_could_not_begin_is_unfinished_when_the_owner_is_dead() {
        let owner = Identity::of(getpid()).unwrap();
        let ledger = |started: u64| PathBuf::from(format!("{}-{started}-0.new", owner.pid));
        assert!(is_unfinished(&ledger(owner.started + 1)));
        assert!(!is_unfinished(&ledger(owner.started)));
        assert!(!is_unfinished(&ledger(owner.started + 1).with_extension("ledger")));
    }

    #[test]
    fn a_ledger_of_a_living_owner_is_not_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("1.ledger");
        let owner = Identity::of(getpid()).unwrap();
        fs::write(&ledger, serde_json::to_string(&Entry::Owner(owner)).unwrap()).unwrap();
        assert!(!is_abandoned(&ledger));
        let dead = Entry::Owner(Identity { started: 0, ..owner });
        fs::write(&ledger, serde_json::to_string(&dead).unwrap()).unwrap();
        assert!(is_abandoned(&ledger));
    }
}
