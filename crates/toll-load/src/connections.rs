//! What an event loop keeps from one plan to the next: for each kind of load its open connections.
//!
//! Plans are of one kind when they go to the same origins over the same connection plan, and their pools have the
//! same shape. Each kind has an event queue of its own, so that a plan hears nothing of the connections of others.

use nix::sys::eventfd::EventFd;

use crate::LoadError;
use crate::poller::Poller;
use crate::pool::{Pool, Shape};
use crate::setup::Setup;

/// The connections of one kind of load, and the queue of their events.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Number of the route that they take.
    pub route: usize,
    /// Where their events come in.
    pub poller: Poller,
    /// The connections.
    pub pool: Pool,
}

/// Those of all kinds that an event loop has carried and does not carry now.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<Connections>);

impl Kept {
    /// The connections that an earlier plan of this kind has left, or a pool that is still empty.
    ///
    /// # Errors
    /// When the kernel gives no event queue.
    pub fn take(
        &mut self,
        setup: &Setup,
        shape: Shape,
        call: &EventFd,
    ) -> Result<Connections, LoadError> {
        let fits = |c: &Connections| c.route == setup.route && c.pool.shape() == shape;
        if let Some(at) = self.0.iter().position(fits) {
            let mut found = self.0.swap_remove(at);
            found.poller.idle_as(setup.plan.idle);
            return Ok(found);
        }
        Ok(Connections {
            route: setup.route,
            poller: Poller::new(setup.plan.idle, call)?,
            pool: Pool::new(shape, &setup.origins, &setup.plan.connection),
        })
    }

    /// Keeps what a plan has left for the next of its kind.
    pub fn keep(&mut self, mut connections: Connections) {
        connections.pool.pause();
        self.0.push(connections);
    }
}
