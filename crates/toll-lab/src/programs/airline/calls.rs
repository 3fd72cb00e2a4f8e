//! Which calls and operations the requests of the airline's entry lead to. Pure: a table, and requests held against
//! it. The airline that does so is `crates/toll-service/src/airline`; it sends nothing again of its own accord.

use AirlinePart::{Bookings, Customers, Flights, Web};

use crate::claim::Asked;
use crate::deployment::{AirlinePart, Deployment, Program, Service};
use crate::proof::bounds::Bounds;
use crate::proof::expected::KnownCalls;

/// What the entry can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    FindFlights,
    Book,
    ListBookings,
    ShowCustomer,
}

/// Where a part sends a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    Part(AirlinePart),
    Database,
}

/// All calls: each is made once for each request that asks so, unless something fails before it.
const CALLS: [(Ask, AirlinePart, Callee); 12] = [
    (Ask::FindFlights, Web, Callee::Part(Flights)),
    (Ask::FindFlights, Flights, Callee::Database),
    (Ask::Book, Web, Callee::Part(Bookings)),
    (Ask::Book, Bookings, Callee::Part(Customers)),
    (Ask::Book, Customers, Callee::Database),
    (Ask::Book, Bookings, Callee::Part(Flights)),
    (Ask::Book, Flights, Callee::Database),
    (Ask::Book, Bookings, Callee::Database),
    (Ask::ListBookings, Web, Callee::Part(Bookings)),
    (Ask::ListBookings, Bookings, Callee::Database),
    (Ask::ShowCustomer, Web, Callee::Part(Customers)),
    (Ask::ShowCustomer, Customers, Callee::Database),
];

/// Calls that a request leads to beside those of [`CALLS`] only when it fails: a seat that was taken is given back.
const CALLS_OF_FAILURES: [(Ask, AirlinePart, Callee); 2] =
    [(Ask::Book, Bookings, Callee::Part(Flights)), (Ask::Book, Flights, Callee::Database)];

impl Ask {
    /// None for what the entry answers without asking anybody.
    fn of(asked: &Asked) -> Option<Self> {
        let path = asked.path.split(['?', '#']).next().unwrap_or_default();
        match (asked.method.as_str(), path) {
            ("GET", "/flights") => Some(Self::FindFlights),
            ("POST", "/bookings") => Some(Self::Book),
            ("GET", "/bookings") => Some(Self::ListBookings),
            ("GET", path) if path.starts_with("/customers/") => Some(Self::ShowCustomer),
            _ => None,
        }
    }
}

/// Calls between the parts, and of the database, that these requests lead to.
pub(crate) fn known_calls<'a>(deployment: &'a Deployment, asked: &[Asked]) -> KnownCalls<'a> {
    let mut known = KnownCalls::new();
    for caller in &deployment.services {
        let Some(caller_part) = part(caller) else { continue };
        for callee in caller.calls.iter().filter_map(|name| deployment.service(name)) {
            let to = match callee.program.is_database() {
                true => Some(Callee::Database),
                false => part(callee).map(Callee::Part),
            };
            let Some(to) = to else { continue };
            known.insert((&caller.name, &callee.name), calls(asked, caller_part, to));
        }
    }
    known
}

fn part(service: &Service) -> Option<AirlinePart> {
    match &service.program {
        Program::Airline(airline) => Some(airline.part),
        _ => None,
    }
}

/// Calls of one part that these requests lead to. One that was not answered with success may have led to fewer, or to
/// a seat that was given back.
fn calls(asked: &[Asked], caller: AirlinePart, callee: Callee) -> Bounds {
    let leads_to_it = |table: &[(Ask, AirlinePart, Callee)], asked: &Asked| {
        Ask::of(asked).is_some_and(|ask| table.contains(&(ask, caller, callee)))
    };
    let given_back = bounds(asked, |asked| leads_to_it(&CALLS_OF_FAILURES, asked));
    let failures = Bounds { least: 0, most: given_back.most - given_back.least };
    bounds(asked, |asked| leads_to_it(&CALLS, asked)) + failures
}

/// Bookings that these requests make: a request that was not answered with success may have made one.
pub(super) fn bookings(asked: &[Asked]) -> Bounds {
    bounds(asked, |asked| Ask::of(asked) == Some(Ask::Book))
}

fn bounds(asked: &[Asked], wanted: impl Fn(&Asked) -> bool) -> Bounds {
    let wanted = asked.iter().filter(|asked| wanted(asked));
    wanted.map(|asked| Bounds { least: asked.acknowledged, most: asked.requests }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str, requests: u64, acknowledged: u64) -> Asked {
        let (method, path) = (method.into(), path.into());
        Asked { method, path, requests, acknowledged, ..Asked::default() }
    }

    /// The database's operations, by part.
    fn operations(asked: &[Asked]) -> [u64; 3] {
        [Flights, Bookings, Customers].map(|part| {
            let Bounds { least, most } = calls(asked, part, Callee::Database);
            assert_eq!(least, most);
            least
        })
    }

    #[test]
    fn each_request_leads_to_the_operations_of_its_row() {
        for (method, path, expected) in [
            ("GET", "/flights?from=A1&to=A2", [1, 0, 0]),
            ("POST", "/bookings", [1, 1, 1]),
            ("GET", "/bookings?customer={{random.0.1999}}", [0, 1, 0]),
            ("GET", "/customers/{{random.0.1999}}", [0, 0, 1]),
        ] {
            assert_eq!(operations(&[asked(method, path, 1, 1)]), expected, "{method} {path}");
        }
    }

    #[test]
    fn what_the_entry_does_not_know_leads_to_nothing() {
        for (method, path) in [("GET", "/"), ("POST", "/flights"), ("GET", "/customers")] {
            assert_eq!(operations(&[asked(method, path, 9, 9)]), [0; 3], "{method} {path}");
            assert_eq!(calls(&[asked(method, path, 9, 9)], Web, Callee::Part(Flights)).most, 0);
        }
    }

    #[test]
    fn a_part_calls_another_at_most_once_for_each_request() {
        for (index, call) in CALLS.iter().enumerate() {
            assert!(!CALLS[..index].contains(call), "{call:?}");
        }
    }

    #[test]
    fn a_request_that_failed_may_have_led_to_nothing() {
        let failed = [asked("POST", "/bookings", 10, 7)];
        assert_eq!(bookings(&failed), Bounds { least: 7, most: 10 });
        let customers = calls(&failed, Bookings, Callee::Part(Customers));
        assert_eq!(customers, Bounds { least: 7, most: 10 });
    }

    #[test]
    fn a_booking_that_failed_may_have_taken_a_seat_and_given_it_back() {
        let failed = [asked("POST", "/bookings", 10, 7)];
        for (caller, callee) in [(Bookings, Callee::Part(Flights)), (Flights, Callee::Database)] {
            assert_eq!(calls(&failed, caller, callee), Bounds { least: 7, most: 13 });
        }
    }
}
