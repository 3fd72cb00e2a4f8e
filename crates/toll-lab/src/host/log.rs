//! The log of a program that writes as much as its author likes: the first MiB and the last four are kept.
//!
//! The program writes into a pipe, as in a container; a thread reads it. The last bytes go round in the file, whose order
//! is put right when the program has ended or an error shows its last lines.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, pipe};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};

use super::error::HostError;

/// How much of the begin and of the end of a log is kept.
#[derive(Debug, Clone, Copy)]
struct Kept {
    first: u64,
    last: u64,
}

const KEPT: Kept = Kept { first: 1 << 20, last: 4 << 20 };

/// Room in the pipe: a program that writes in bursts does not wait for the reader.
const PIPE_BYTES: i32 = 1 << 20;

/// How long the rest of a log is waited for: a process that left its group may hold the pipe open.
const REST_WITHIN: Duration = Duration::from_millis(300);

/// A log that is being kept.
#[derive(Debug)]
pub(crate) struct KeptLog {
    file: Arc<Mutex<LogFile>>,
    reader: JoinHandle<()>,
}

impl KeptLog {
    /// Has `command` write into a pipe, read nothing, and print nothing; what it writes comes into `path`.
    ///
    /// # Errors
    /// When the log cannot be made.
    pub(crate) fn of(command: &mut Command, path: &Path) -> Result<Self, HostError> {
        let mut make = || {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
            let file = Arc::new(Mutex::new(LogFile::new(file, KEPT)));
            let (reader, writer) = pipe()?;
            // Without the privilege for more the kernel's own size must do.
            let _ = fcntl(&reader, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
            command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            let into = Arc::clone(&file);
            let name = "toll-log".to_owned();
            let reader = thread::Builder::new().name(name).spawn(move || copy(reader, &into))?;
            Ok(Self { file, reader })
        };
        make().map_err(|source: io::Error| HostError::Write { path: path.to_owned(), source })
    }

    /// Waits for what is still in the pipe, and puts the file in order.
    pub(crate) fn settle(&self) {
        let end = Instant::now() + REST_WITHIN;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        locked(&self.file).settle();
    }

    /// All that was written, bytes, where not all of it is kept.
    pub(crate) fn cut_bytes(&self) -> Option<u64> {
        let file = locked(&self.file);
        (file.left_out() > 0).then_some(file.written)
    }
}

fn locked(file: &Mutex<LogFile>) -> MutexGuard<'_, LogFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A full disk costs the log its lines, not the program its life: the pipe is read on.
fn copy(mut reader: PipeReader, into: &Mutex<LogFile>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        let _ = locked(into).write(&buffer[..count]);
    }
    locked(into).settle();
}

/// The first bytes, a note once some are left out, and the last bytes, which begin at `at` and go round.
#[derive(Debug)]
struct LogFile {
    file: File,
    kept: Kept,
    written: u64,
    /// Where in the room of the last bytes the next one goes.
    at: u64,
    has_note: bool,
}

/// The note's length, however many bytes it tells of.
const NOTE: usize = 72;

impl LogFile {
    fn new(file: File, kept: Kept) -> Self {
        Self { file, kept, written: 0, at: 0, has_note: false }
    }

    fn left_out(&self) -> u64 {
        self.written.saturating_sub(self.kept.first + self.kept.last)
    }

    /// Where the last bytes have their room.
    fn room(&self) -> u64 {
        self.kept.first + if self.has_note { NOTE as u64 } else { 0 }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (offset, space) = match self.kept.first.checked_sub(self.written) {
                Some(space @ 1..) => (self.written, space),
                _ => (self.room() + self.at, self.kept.last - self.at),
            };
            let is_first = self.written < self.kept.first;
            let count = bytes.len().min(usize::try_from(space).unwrap_or(usize::MAX));
            let (now, rest) = bytes.split_at(count);
            self.written += count as u64;
            if !is_first {
                self.at = (self.at + count as u64) % self.kept.last;
            }
            self.file.write_all_at(now, offset)?;
            bytes = rest;
        }
        Ok(())
    }

    /// Puts the last bytes in order, behind a note of what is left out. What comes later goes on from there.
    fn settle(&mut self) {
        if self.left_out() > 0
            && let Err(error) = self.put_in_order()
        {
            tracing::warn!("the log stays out of order: {error}");
        }
    }

    fn put_in_order(&mut self) -> io::Result<()> {
        let mut last = vec![0; usize::try_from(self.kept.last).expect("a few MiB")];
        self.file.read_exact_at(&mut last, self.room())?;
        last.rotate_left(usize::try_from(self.at).expect("inside of them"));
        let note = format!("\n[{} bytes are left out here]", self.left_out());
        let note = format!("{note:<width$}\n", width = NOTE - 1);
        (self.has_note, self.at) = (true, 0);
        self.file.write_all_at(note.as_bytes(), self.kept.first)?;
        self.file.write_all_at(&last, self.room())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file holds that keeps 4 and 6 bytes of these writes.
    fn kept_of(writes: &[&str]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = LogFile::new(file.reopen().unwrap(), Kept { first: 4, last: 6 });
        for text in writes {
            log.write(text.as_bytes()).unwrap();
        }
        log.settle();
        log.settle();
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn a_log_that_fits_is_kept_as_it_was_written() {
        assert_eq!(kept_of(&["ab", "cdef", "ghij"]), "abcdefghij");
    }

    #[test]
    fn of_a_longer_log_its_begin_and_its_end_are_kept_and_what_is_left_out_is_said() {
        let kept = kept_of(&["abcdefg", "hijklmnop", "qrs", "tuvwxyz"]);
        assert_eq!(kept.len(), 4 + NOTE + 6);
        assert!(kept.starts_with("abcd\n[16 bytes are left out here] "), "{kept}");
        assert!(kept.ends_with(" \nuvwxyz"), "{kept}");
    }

    #[test]
    fn a_log_that_was_put_in_order_goes_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = LogFile::new(file.reopen().unwrap(), Kept { first: 4, last: 6 });
        for text in ["abcdefghijklmn", "opq", "rstuvwxyz"] {
            log.write(text.as_bytes()).unwrap();
            log.settle();
        }
        let kept = std::fs::read_to_string(file.path()).unwrap();
        assert!(kept.starts_with("abcd\n[16 bytes are left out here] "), "{kept}");
        assert!(kept.ends_with(" \nuvwxyz"), "{kept}");
    }

    #[test]
    fn a_program_that_writes_without_end_fills_no_disk() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; head -c 9000000 /dev/zero; echo; echo last"]);
        let log = KeptLog::of(&mut command, file.path()).unwrap();
        command.status().unwrap();
        drop(command);
        log.settle();
        let kept = std::fs::read(file.path()).unwrap();
        assert_eq!(kept.len() as u64, KEPT.first + KEPT.last + NOTE as u64);
        assert!(kept.starts_with(b"first\n") && kept.ends_with(b"\nlast\n"));
        assert_eq!(log.cut_bytes(), Some(6 + 9_000_000 + 6));
    }
}
