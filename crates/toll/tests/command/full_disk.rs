//! The disk that holds the run fills up: the run ends with advice, keeps what was measured, and can go on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::unistd::geteuid;

use crate::left_behind::Footprint;
use crate::run_dir::{assert_complete, assert_kept, assert_log_is_whole, ended, measured, now};
use crate::skip;
use crate::study_text::bare;
use crate::workplace::{Workplace, has, within};

/// A disk of 16 MB that only the processes of one mount namespace see; it goes with this.
struct SmallDisk {
    /// Sits in the namespace and reads a pipe that nobody writes to.
    holder: Child,
    mounted_at: PathBuf,
}

impl SmallDisk {
    /// None where nothing can be mounted.
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let script = "mount -t tmpfs -o size=16m tmpfs \"$0\" && echo mounted && exec cat";
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "sh", "-c", script]).arg(at);
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let disk = Self { holder, mounted_at: at.to_owned() };
        (said == "mounted\n").then_some(disk)
    }

    /// The command as a process that sees the disk.
    fn seen_by(&self, command: &Command) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id()));
        within(nsenter, command)
    }

    /// The same disk as seen from here.
    fn seen_from_here(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.mounted_at.strip_prefix("/").unwrap())
    }

    fn fill(&self) {
        let mut filler = File::create(self.seen_from_here().join("filler")).unwrap();
        while filler.write(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.seen_from_here().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn a_full_disk_ends_the_run_with_advice_and_the_run_can_be_resumed() {
    if !geteuid().is_root() || !has("unshare") || !has("nsenter") {
        skip!("a disk of its own needs root, unshare and nsenter");
    }
    let place = Workplace::new();
    let Some(disk) = SmallDisk::mount(&place.run_dir()) else { skip!("nothing can be mounted") };
    let run = disk.seen_from_here();
    let mut toll = place.start(disk.seen_by(&place.run_command(&bare())));
    toll.wait_for(&run, |events| ended(events) >= 1 && now(events) == "slices");
    let footprint = Footprint::of(toll.pid());
    let kept = measured(&run);
    disk.fill();
    let full = toll.finish();
    full.assert_status(1).assert_says("No space left on device");
    full.assert_says("help: the disk is full: make room, then `toll run --resume RUN`");
    footprint.assert_gone();
    place.assert_no_lab_folders();
    assert_kept(&kept, &run);

    disk.make_room();
    let resumed = place.finish(disk.seen_by(&place.resume_command()));
    resumed.assert_says(&format!("2 rounds of 3 arms, {} measured before", kept.len()));
    assert_complete(&resumed, &run);
    assert_kept(&kept, &run);
    assert_log_is_whole(&run);
}
