//! What the coordinator and the event loops tell each other. Atomics and channels only: no loop waits for
//! another, and the coordinator costs them nothing between two intervals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::sys::eventfd::EventFd;

use crate::clock::{now_ns, unix_ns};
use crate::recorder::Taken;
use crate::{Histogram, Phase, Sample};

/// Histograms that an event loop has in reserve for the intervals to come.
const SPARE_HISTOGRAMS: usize = 2;
/// Samples that are handed over at a time.
const SAMPLES: usize = 4096;
/// Batches of samples under way; what comes beyond is lost, and counted.
const MOST_BATCHES: usize = 256;
/// An instant that has not been decided.
const UNDECIDED: u64 = u64::MAX;

/// What the coordinator has decided; read by all event loops.
#[derive(Debug)]
pub(crate) struct Control {
    begin_ns: AtomicU64,
    measure_ns: AtomicU64,
    stopped: AtomicBool,
    calls: Vec<Arc<EventFd>>,
    unix_offset_ns: u64,
}

impl Control {
    /// Nothing decided yet; `calls` wake the event loops, in their order.
    pub fn new(calls: Vec<Arc<EventFd>>) -> Control {
        Control {
            begin_ns: AtomicU64::new(UNDECIDED),
            measure_ns: AtomicU64::new(UNDECIDED),
            stopped: AtomicBool::new(false),
            calls,
            unix_offset_ns: unix_ns() - now_ns(),
        }
    }

    /// The load begins at `begin_ns` and is measured from `measure_ns` on.
    pub fn begin_at(&self, begin_ns: u64, measure_ns: u64) {
        self.measure_ns.store(measure_ns, Ordering::Relaxed);
        self.begin_ns.store(begin_ns, Ordering::Release);
        self.call_all();
    }

    /// The load is measured earlier than it was said.
    pub fn measure_at(&self, measure_ns: u64) {
        self.measure_ns.fetch_min(measure_ns, Ordering::Relaxed);
        self.call_all();
    }

    /// The load ends as soon as it can.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.call_all();
    }

    fn call_all(&self) {
        for call in &self.calls {
            // Only a counter that is full would refuse, and then the loop has been called already.
            let _ = call.write(1);
        }
    }

    /// What wakes an event loop.
    pub fn call(&self, thread: u32) -> &EventFd {
        &self.calls[thread as usize]
    }

    /// Whether the load has begun.
    pub fn has_begun(&self, now_ns: u64) -> bool {
        self.begin_ns() <= now_ns
    }

    /// When the first phase begins, nanoseconds.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns.load(Ordering::Acquire)
    }

    /// When the measured phase begins, nanoseconds.
    pub fn measure_ns(&self) -> u64 {
        self.measure_ns.load(Ordering::Relaxed)
    }

    /// Whether the load is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// What to add to an instant to have nanoseconds since 1970.
    pub fn unix_offset_ns(&self) -> u64 {
        self.unix_offset_ns
    }
}

/// What an event loop says.
#[derive(Debug)]
pub(crate) enum Signal {
    /// Its connections are there.
    Ready,
    /// An interval is over.
    Interval {
        /// The phase under way.
        phase: Phase,
        /// Its numbers.
        taken: Taken,
        /// When it ended, nanoseconds.
        end_ns: u64,
        /// Share of the phase's requests that were released, when they are its bound.
        share: Option<f64>,
    },
    /// Single requests.
    Samples(Vec<Sample>),
    /// Nothing falls due any more.
    Draining {
        /// Since when, nanoseconds.
        at_ns: u64,
    },
    /// It has ended.
    Ended,
}

/// An event loop's end of the channel.
#[derive(Debug)]
pub(crate) struct Outbox {
    thread: usize,
    signals: Sender<(usize, Signal)>,
    spare: Receiver<Box<Histogram>>,
    samples: Option<Samples>,
}

#[derive(Debug)]
struct Samples {
    batch: Vec<Sample>,
    under_way: Arc<AtomicUsize>,
    lost: u64,
}

/// The coordinator's end.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// What the event loops say, with their numbers.
    pub signals: Receiver<(usize, Signal)>,
    spare: Vec<Sender<Box<Histogram>>>,
    under_way: Arc<AtomicUsize>,
}

/// A channel from so many event loops to the coordinator.
pub(crate) fn mailbox(threads: u32, with_samples: bool) -> (Inbox, Vec<Outbox>) {
    let (sender, signals) = channel();
    let under_way = Arc::new(AtomicUsize::new(0));
    let mut inbox = Inbox { signals, spare: Vec::new(), under_way: Arc::clone(&under_way) };
    let outboxes = (0..threads as usize)
        .map(|thread| {
            let (give_back, spare) = channel();
            inbox.spare.push(give_back);
            (0..SPARE_HISTOGRAMS).for_each(|_| inbox.give_back(thread, Box::default()));
            let samples = with_samples.then(|| Samples {
                batch: Vec::with_capacity(SAMPLES),
                under_way: Arc::clone(&under_way),
                lost: 0,
            });
            Outbox { thread, signals: sender.clone(), spare, samples }
        })
        .collect();
    (inbox, outboxes)
}

impl Inbox {
    /// Gives an event loop a histogram for the intervals to come.
    pub fn give_back(&self, thread: usize, mut histogram: Box<Histogram>) {
        histogram.clear();
        // A loop that has ended needs none.
        let _ = self.spare[thread].send(histogram);
    }

    /// A batch of samples was taken care of.
    pub fn took_samples(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Outbox {
    /// The first connections are there.
    pub fn ready(&self) {
        self.signal(Signal::Ready);
    }

    /// Says something to the coordinator.
    pub fn signal(&self, signal: Signal) {
        // The coordinator outlives the loops.
        let _ = self.signals.send((self.thread, signal));
    }

    /// An empty histogram, if one is left.
    pub fn empty_histogram(&self) -> Option<Box<Histogram>> {
        self.spare.try_recv().ok()
    }

    /// Whether anybody wants single requests.
    pub fn wants_samples(&self) -> bool {
        self.samples.is_some()
    }

    /// Samples that were dropped because too many were under way.
    pub fn samples_lost(&self) -> u64 {
        self.samples.as_ref().map_or(0, |samples| samples.lost)
    }

    /// Hands a sample over, with others.
    pub fn sample(&mut self, sample: Sample) {
        let Some(samples) = &mut self.samples else { return };
        samples.batch.push(sample);
        if samples.batch.len() >= SAMPLES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let Some(samples) = &mut self.samples else { return };
        if samples.under_way.fetch_add(1, Ordering::Relaxed) >= MOST_BATCHES {
            samples.under_way.fetch_sub(1, Ordering::Relaxed);
            samples.lost += samples.batch.len() as u64;
            samples.batch.clear();
            return;
        }
        let batch = std::mem::replace(&mut samples.batch, Vec::with_capacity(SAMPLES));
        let _ = self.signals.send((self.thread, Signal::Samples(batch)));
    }

    /// The loop has ended; the last samples go.
    pub fn close(&mut self) {
        if self.samples.as_ref().is_some_and(|samples| !samples.batch.is_empty()) {
            self.hand_over();
        }
    }
}

/// However a loop ends, the coordinator hears of it.
impl Drop for Outbox {
    fn drop(&mut self) {
        self.close();
        self.signal(Signal::Ended);
    }
}
