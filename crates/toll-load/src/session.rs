//! An engine that carries plan after plan: its event loops and their connections outlive a plan.
//!
//! An event loop has a file table of its own, so connections stay on the thread that has opened them. Between two
//! plans the loops wait on a channel: nothing is sent and nothing is read. What the peers did meanwhile each loop
//! finds out before the next plan begins.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use nix::libc::STDERR_FILENO;
use nix::sched::{CloneFlags, unshare};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::close;

use crate::connections::Kept;
use crate::control::{Control, Outbox, mailbox};
use crate::engine::{Coordinator, Listener};
use crate::error::kernel;
use crate::routes::Routes;
use crate::setup::Setup;
use crate::shard::{Finished, Shard};
use crate::{LoadError, LoadEvent, LoadPlan, LoadReport};

/// Carries one plan after the other. Plans that go to the same origins, over the same connection plan and with as
/// many connections, find the connections open that an earlier one has left. `{{counter}}` goes on from plan to plan.
#[derive(Debug, Default)]
pub struct Session {
    loops: Vec<EventLoop>,
    routes: Routes,
    /// Numbers of requests below this are used up.
    next_number: u64,
}

/// A thread that carries its share of one plan after the other.
#[derive(Debug)]
struct EventLoop {
    /// Closed with its last owner, here: on the loop's thread the number is another file's.
    call: Arc<EventFd>,
    shares: Sender<Share>,
    ended: Receiver<Result<Finished, LoadError>>,
    thread: JoinHandle<()>,
}

/// What an event loop is to carry of a plan.
struct Share {
    setup: Arc<Setup>,
    control: Arc<Control>,
    outbox: Outbox,
}

impl Session {
    /// A session that has carried nothing yet.
    pub fn new() -> Session {
        Session::default()
    }

    /// Runs a plan to its end and gives its report, which is of this plan alone. Connections that the peer has closed
    /// since an earlier plan are opened anew before this one begins.
    ///
    /// # Errors
    /// When the plan cannot be carried out, not one connection can be made, or it was stopped before anything was
    /// measured. Failed requests are no error.
    pub fn run(
        &mut self,
        plan: &LoadPlan,
        listener: Listener<'_>,
    ) -> Result<LoadReport, LoadError> {
        let setup = Arc::new(Setup::new(plan, &mut self.routes, self.next_number)?);
        setup.raise_file_limit()?;
        self.start_loops(plan.threads)?;
        let loops = &self.loops[..plan.threads as usize];
        let calls = loops.iter().map(|l| Arc::clone(&l.call)).collect();
        let control = Arc::new(Control::new(calls));
        let (inbox, outboxes) = mailbox(plan.threads, listener.samples.is_some());
        for (event_loop, outbox) in loops.iter().zip(outboxes) {
            let (setup, control) = (Arc::clone(&setup), Arc::clone(&control));
            event_loop.carry(Share { setup, control, outbox });
        }
        let mut coordinator = Coordinator::new(&setup, &control, inbox, listener);
        let followed = coordinator.follow();
        let finished = all_or_the_reason(loops.iter().map(EventLoop::ended).collect());
        followed?;
        let finished = finished?;
        self.next_number = finished.iter().map(|f| f.next_number).max().unwrap_or(0);
        Ok(coordinator.into_report(finished))
    }

    fn start_loops(&mut self, threads: u32) -> Result<(), LoadError> {
        for thread in self.loops.len() as u32..threads {
            self.loops.push(EventLoop::start(thread)?);
        }
        Ok(())
    }
}

/// The connections are closed before the session is gone.
impl Drop for Session {
    fn drop(&mut self) {
        for EventLoop { call, shares, thread, .. } in self.loops.drain(..) {
            drop(shares);
            // A loop that panicked has said so when its plan ended.
            let _ = thread.join();
            drop(call);
        }
    }
}

impl EventLoop {
    fn start(thread: u32) -> Result<EventLoop, LoadError> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let call = Arc::new(EventFd::from_flags(flags).map_err(kernel("eventfd"))?);
        let (shares, tasks) = channel();
        let (results, ended) = channel();
        let its_call = Arc::clone(&call);
        let run = move || carry_all(thread, &its_call, &tasks, &results);
        let name = format!("load-{thread}");
        let thread = thread::Builder::new().name(name).spawn(run).map_err(LoadError::Thread)?;
        Ok(EventLoop { call, shares, ended, thread })
    }

    fn carry(&self, share: Share) {
        self.shares.send(share).expect("an event loop lives as long as its session");
    }

    /// Waits for the end of the share.
    fn ended(&self) -> Result<Finished, LoadError> {
        self.ended.recv().expect("an event loop does not panic")
    }
}

/// What an event loop's thread does.
fn carry_all(
    thread: u32,
    call: &EventFd,
    shares: &Receiver<Share>,
    results: &Sender<Result<Finished, LoadError>>,
) {
    own_file_table(call);
    let mut kept = Kept::default();
    for share in shares {
        // The session waits for it.
        let _ = results.send(carry(thread, share, &mut kept));
    }
}

fn carry(thread: u32, share: Share, kept: &mut Kept) -> Result<Finished, LoadError> {
    let Share { setup, control, outbox } = share;
    let result = Shard::new(&setup, thread, &control, outbox, kept).and_then(Shard::run);
    // The others must not wait for ever for one that does not run.
    let (finished, connections) = result.inspect_err(|_| control.stop())?;
    kept.keep(connections);
    Ok(finished)
}

/// What the loops leave, or why one of them could not run: the others say only that they were stopped.
fn all_or_the_reason(ended: Vec<Result<Finished, LoadError>>) -> Result<Vec<Finished>, LoadError> {
    let (mut finished, mut reason) = (Vec::new(), None);
    for end in ended {
        match end {
            Ok(end) => finished.push(end),
            Err(error) if matches!(reason, None | Some(LoadError::Stopped)) => reason = Some(error),
            Err(_) => {}
        }
    }
    reason.map_or(Ok(finished), Err)
}

/// Gives this thread a file table of its own. Where threads share one, the kernel counts references to a file in
/// each system call; and they contend for new numbers. Without the permission it works as well, only slower.
///
/// The copies of the process's other files are closed: who closes one of those means it to be closed.
fn own_file_table(call: &EventFd) {
    if unshare(CloneFlags::CLONE_FILES).is_err() {
        return;
    }
    let Ok(files) = std::fs::read_dir("/proc/thread-self/fd") else { return };
    let number = |file: std::io::Result<std::fs::DirEntry>| {
        file.ok()?.file_name().to_str()?.parse::<i32>().ok()
    };
    let copies: Vec<i32> = files.filter_map(number).collect();
    for file in copies {
        if file > STDERR_FILENO && file != call.as_raw_fd() {
            // The folder that was read is closed already.
            let _ = close(file);
        }
    }
}

/// Runs a plan to its end and gives the report; `emit` gets the events before it, each without delay.
///
/// # Errors
/// When the plan cannot be carried out or not one connection can be made. Failed requests are no error.
pub fn run(plan: &LoadPlan, emit: &mut dyn FnMut(LoadEvent)) -> Result<LoadReport, LoadError> {
    run_until(plan, &AtomicBool::new(false), emit)
}

/// As [`run`]; once `stop` is set, the load ends within a second and the report tells what was measured.
///
/// # Errors
/// As [`run`]; [`LoadError::Stopped`] when nothing was measured yet.
pub fn run_until(
    plan: &LoadPlan,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(LoadEvent),
) -> Result<LoadReport, LoadError> {
    run_with(plan, Listener { stop, emit, samples: None })
}

/// As [`run_until`], for a listener who may want every single request.
///
/// # Errors
/// As [`run_until`].
pub fn run_with(plan: &LoadPlan, listener: Listener<'_>) -> Result<LoadReport, LoadError> {
    Session::new().run(plan, listener)
}
