//! Finds the origins that plans name, each set of them once: a plan that goes where an earlier one went waits
//! neither for a resolver nor for certificates to be read.

use std::net::TcpStream;
use std::time::Duration;

use crate::requests::OriginKey;
use crate::transport::Origin;
use crate::{ConnectionPlan, LoadError};

/// All that the plans of a session have gone to.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

/// Origins, and over what they are reached.
#[derive(Debug)]
pub(crate) struct Route {
    connection: ConnectionPlan,
    keys: Vec<OriginKey>,
    /// In the order of the keys.
    pub origins: Vec<Origin>,
}

impl Routes {
    /// The number of the route to these origins, which is found now if no plan went there before, and the time
    /// that names took to resolve.
    ///
    /// # Errors
    /// When a host has no address, or the plan's certificates cannot be used.
    pub fn find(
        &mut self,
        connection: &ConnectionPlan,
        keys: &[OriginKey],
        timeout: Duration,
    ) -> Result<(usize, Duration), LoadError> {
        let known = |route: &Route| route.keys == keys && route.connection == *connection;
        if let Some(number) = self.0.iter().position(known) {
            return Ok((number, Duration::ZERO));
        }
        let (mut origins, mut resolved_in) = (Vec::new(), Duration::ZERO);
        for key in keys {
            let (origin, took) = Origin::find(key.scheme, &key.host, key.port, connection)?;
            resolved_in += took;
            origins.push(reachable(origin, timeout));
        }
        self.0.push(Route { connection: connection.clone(), keys: keys.into(), origins });
        Ok((self.0.len() - 1, resolved_in))
    }

    /// The route with this number.
    pub fn route(&self, number: usize) -> &Route {
        &self.0[number]
    }
}

/// Chooses the first of several addresses that accepts a connection.
fn reachable(mut origin: Origin, timeout: Duration) -> Origin {
    let candidates = origin.addresses().to_vec();
    if candidates.len() > 1 {
        let accepts = |address| TcpStream::connect_timeout(address, timeout).is_ok();
        if let Some(address) = candidates.iter().find(|address| accepts(address)) {
            origin.choose(*address);
        }
    }
    origin
}
