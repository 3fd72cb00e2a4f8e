//! Turns a request of a part of the airline into what is asked of it. Judges only the form; what is not a path of the
//! part is nothing.

use std::borrow::Cow;

use hyper::Method;
use serde::Deserialize;

use super::inventory::AIRPORTS;
use crate::request::WholeRequest;

/// The part that the entry hands a request to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Flights,
    Bookings,
    Customers,
}

/// What is asked of the flights.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfFlights {
    Find { from: &'static str, to: &'static str },
    TakeSeat(u32),
    GiveSeatBack(u32),
}

/// What is asked of the bookings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfBookings<'a> {
    List { customer: u32 },
    Book(Order<'a>),
}

/// A seat that is to be booked.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Order<'a> {
    /// The client's own, by which the booking is found again.
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    pub(super) customer: u32,
    pub(super) flight: u32,
}

/// Why a request is not answered as it wishes.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unasked {
    #[error("there is nothing at this path")]
    NoSuchPath,
    #[error("the query lacks `{0}`")]
    Lacking(&'static str),
    #[error("`{0}` is no number")]
    NoNumber(String),
    #[error("the order cannot be understood: {0}")]
    NoOrder(#[from] serde_json::Error),
}

/// The part that a request of the entry is for.
pub(super) fn of_web(request: &WholeRequest) -> Result<Part, Unasked> {
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET, "/flights") => Ok(Part::Flights),
        (&Method::GET | &Method::POST, "/bookings") => Ok(Part::Bookings),
        (&Method::GET, _) if path.starts_with("/customers/") => Ok(Part::Customers),
        _ => Err(Unasked::NoSuchPath),
    }
}

/// What a request asks of the flights.
pub(super) fn of_flights(request: &WholeRequest) -> Result<OfFlights, Unasked> {
    let path = request.uri().path();
    let seats = path.strip_prefix("/flights/").and_then(|rest| rest.strip_suffix("/seats"));
    match (request.method(), seats) {
        (&Method::GET, None) if path == "/flights" => {
            let (from, to) = airports(parameter(request, "from")?, parameter(request, "to")?)?;
            Ok(OfFlights::Find { from, to })
        }
        (&Method::POST, Some(flight)) => Ok(OfFlights::TakeSeat(number(flight)?)),
        (&Method::DELETE, Some(flight)) => Ok(OfFlights::GiveSeatBack(number(flight)?)),
        _ => Err(Unasked::NoSuchPath),
    }
}

/// What a request asks of the bookings.
pub(super) fn of_bookings(request: &WholeRequest) -> Result<OfBookings<'_>, Unasked> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/bookings") => {
            Ok(OfBookings::List { customer: number(parameter(request, "customer")?)? })
        }
        (&Method::POST, "/bookings") => {
            Ok(OfBookings::Book(serde_json::from_slice(request.body())?))
        }
        _ => Err(Unasked::NoSuchPath),
    }
}

/// The customer that a request asks for.
pub(super) fn of_customers(request: &WholeRequest) -> Result<u32, Unasked> {
    match (request.method(), request.uri().path().strip_prefix("/customers/")) {
        (&Method::GET, Some(customer)) => number(customer),
        _ => Err(Unasked::NoSuchPath),
    }
}

/// Airports beyond the last begin again with the first; nobody flies to where they are, but to the next.
fn airports(from: &str, to: &str) -> Result<(&'static str, &'static str), Unasked> {
    let [from, to] = [airport(from)?, airport(to)?];
    let to = if to == from { (to + 1) % AIRPORTS.len() } else { to };
    Ok((AIRPORTS[from], AIRPORTS[to]))
}

fn airport(text: &str) -> Result<usize, Unasked> {
    let number = number(text.strip_prefix('A').unwrap_or(text))?;
    Ok(number as usize % AIRPORTS.len())
}

fn parameter<'a>(request: &'a WholeRequest, name: &'static str) -> Result<&'a str, Unasked> {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    values.next().ok_or(Unasked::Lacking(name))
}

fn number(text: &str) -> Result<u32, Unasked> {
    text.parse().map_err(|_| Unasked::NoNumber(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::Request;

    fn asked(method: Method, path: &str, body: &'static str) -> WholeRequest {
        let request = Request::builder().method(method).uri(path);
        request.body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    fn get(path: &str) -> WholeRequest {
        asked(Method::GET, path, "")
    }

    #[test]
    fn the_entry_hands_each_request_to_the_part_it_is_for() {
        for (request, part) in [
            (get("/flights?from=A1&to=A2"), Part::Flights),
            (get("/bookings?customer=7"), Part::Bookings),
            (asked(Method::POST, "/bookings", "{}"), Part::Bookings),
            (get("/customers/7"), Part::Customers),
        ] {
            assert_eq!(of_web(&request).unwrap(), part);
        }
    }

    #[test]
    fn the_entry_has_no_other_path() {
        for request in [
            get("/"),
            get("/flights/7/seats"),
            asked(Method::POST, "/flights/7/seats", ""),
            asked(Method::DELETE, "/bookings", ""),
            asked(Method::POST, "/customers/7", ""),
        ] {
            assert!(matches!(of_web(&request), Err(Unasked::NoSuchPath)), "{request:?}");
        }
    }

    #[test]
    fn flights_are_found_between_two_different_airports() {
        for (query, from, to) in [
            ("from=A3&to=A7", "A3", "A7"),
            ("to=A7&from=A3", "A3", "A7"),
            ("from=A3&to=A3", "A3", "A4"),
            ("from=A9&to=A9", "A9", "A0"),
            ("from=A13&to=A107", "A3", "A7"),
        ] {
            let asked = of_flights(&get(&format!("/flights?{query}"))).unwrap();
            assert_eq!(asked, OfFlights::Find { from, to }, "{query}");
        }
    }

    #[test]
    fn a_seat_is_taken_by_post_and_given_back_by_delete() {
        let seats = |method| of_flights(&asked(method, "/flights/17/seats", "")).ok();
        assert_eq!(seats(Method::POST), Some(OfFlights::TakeSeat(17)));
        assert_eq!(seats(Method::DELETE), Some(OfFlights::GiveSeatBack(17)));
        assert_eq!(seats(Method::GET), None);
    }

    #[test]
    fn an_order_has_a_key_a_customer_and_a_flight() {
        let order = r#"{"key":"1-2","customer":3,"flight":4}"#;
        let asked = asked(Method::POST, "/bookings", order);
        let order = Order { key: "1-2".into(), customer: 3, flight: 4 };
        assert_eq!(of_bookings(&asked).unwrap(), OfBookings::Book(order));
    }

    #[test]
    fn what_is_wrong_with_a_request_is_told() {
        let told = |why: Unasked| why.to_string();
        assert_eq!(told(of_flights(&get("/flights?from=A1")).unwrap_err()), "the query lacks `to`");
        assert_eq!(told(of_customers(&get("/customers/x")).unwrap_err()), "`x` is no number");
        let order = asked(Method::POST, "/bookings", r#"{"key":"1"}"#);
        let why = told(of_bookings(&order).unwrap_err());
        assert!(why.contains("missing field `customer`"), "{why}");
    }
}
