//! Turns a number into the flight, the customer or the bookings that the airline begins with under it. Arithmetic
//! alone, so that each part knows a flight's timetable from its number, and every run begins with the same.

use std::borrow::Cow;

use super::documents::{Booking, Customer, Flight, Passenger, SEED, Ticket};

/// `A0` to `A9`.
pub(super) const AIRPORTS: [&str; 10] =
    ["A0", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9"];

/// A booking each of these numbers is there at first, of each customer.
const SEEDS: i32 = 4;

/// Ordered pairs of two airports.
const PAIRS: i32 = 90;

const AIRCRAFT: [&str; 3] = ["Airbus A320neo", "Airbus A330-900", "Embraer E195-E2"];
const TERMINALS: [&str; 3] = ["T1", "T2", "T3"];
const GATES: [&str; 4] = ["A04", "B12", "C07", "D21"];
const GIVEN: [&str; 8] = ["Ada", "Alan", "Barbara", "Edsger", "Frances", "Grace", "Ken", "Radia"];
const FAMILY: [&str; 7] =
    ["Lovelace", "Turing", "Liskov", "Dijkstra", "Allen", "Hopper", "Thompson"];
const CITIES: [&str; 5] = ["Aarhus", "Bergen", "Coimbra", "Dresden", "Eindhoven"];
const TIERS: [&str; 3] = ["blue", "silver", "gold"];
const CABINS: [&str; 2] = ["economy", "business"];

/// The flight of `number` before any seat is taken.
pub(super) fn flight(number: i32, seats: i32) -> Flight<Cow<'static, str>> {
    let ticket = ticket(number);
    Flight {
        number,
        code: format!("TL{number:04}").into(),
        carrier: ticket.carrier,
        from: ticket.from,
        to: ticket.to,
        departs: ticket.departs,
        arrives: hours_after_departure(number, 2).into(),
        aircraft: pick(&AIRCRAFT, number).into(),
        terminal: ticket.terminal,
        gate: pick(&GATES, number).into(),
        fare: "Economy Classic".into(),
        baggage: ticket.baggage,
        price: ticket.price,
        currency: ticket.currency,
        seats,
        free: seats,
    }
}

/// What the flight of `number` is, apart from its seats.
pub(super) fn ticket(number: i32) -> Ticket<Cow<'static, str>> {
    let (from, to) = pair(number % PAIRS);
    Ticket {
        flight: number,
        carrier: "Toll Airways".into(),
        from: from.into(),
        to: to.into(),
        departs: hours_after_departure(number, 0).into(),
        terminal: pick(&TERMINALS, number).into(),
        baggage: "23 kg".into(),
        price: 4_900 + number * 37 % 30_000,
        currency: "EUR".into(),
    }
}

/// The airports of a pair: each flies to all others.
fn pair(number: i32) -> (&'static str, &'static str) {
    let from = number / 9;
    (pick(&AIRPORTS, from), pick(&AIRPORTS, from + 1 + number % 9))
}

/// Flights of the same pair leave on different days.
fn hours_after_departure(number: i32, hours: i32) -> String {
    let (day, hour, minute) = (1 + number / PAIRS % 28, 6 + number % 12, number % 4 * 15);
    format!("2026-05-{day:02}T{:02}:{minute:02}:00Z", hour + hours)
}

/// The customer of `number`.
pub(super) fn customer(number: i32) -> Customer<Cow<'static, str>> {
    let (given, family) = (pick(&GIVEN, number), pick(&FAMILY, number));
    Customer {
        number,
        name: passenger(number).name,
        email: format!("{given}.{family}.{number}@airline.example").to_lowercase().into(),
        phone: format!("+49 555 01{:05}", number % 100_000).into(),
        street: format!("Rue de l'Aviation {}", 1 + number % 200).into(),
        postcode: format!("{:05}", 10_000 + number % 80_000).into(),
        city: pick(&CITIES, number).into(),
        country: "Germany".into(),
        born: format!("19{:02}-{:02}-{:02}", 50 + number % 50, 1 + number % 12, 1 + number % 28)
            .into(),
        nationality: "DE".into(),
        passport: format!("C01X{:05}", number % 100_000).into(),
        passport_until: "2031-12-31".into(),
        programme: "Toll Miles".into(),
        tier: pick(&TIERS, number).into(),
        miles: number * 137 % 250_000,
        seat: "window".into(),
        meal: "vegetarian".into(),
        language: "en".into(),
        since: "2019-03-01".into(),
    }
}

fn passenger(number: i32) -> Passenger<Cow<'static, str>> {
    let name = format!("{} {}", pick(&GIVEN, number), pick(&FAMILY, number));
    Passenger { number, name: name.into() }
}

/// The bookings that the customer of `number` begins with; they take none of the seats that are sold now.
pub(super) fn bookings(
    number: i32,
    flights: i32,
) -> impl Iterator<Item = Booking<Cow<'static, str>>> {
    (0..SEEDS).map(move |seed| {
        let ticket = ticket((number * SEEDS + seed) % flights);
        let key = format!("{SEED}{number}-{seed}").into();
        booking(key, passenger(number), ticket, Cow::Borrowed)
    })
}

/// The booking of a `passenger` who has `ticket`; `text` makes a text of a constant one.
pub(super) fn booking<S>(
    key: S,
    passenger: Passenger<S>,
    ticket: Ticket<S>,
    text: impl Fn(&'static str) -> S,
) -> Booking<S> {
    Booking {
        key,
        customer: passenger.number,
        passenger: passenger.name,
        flight: ticket.flight,
        carrier: ticket.carrier,
        from: ticket.from,
        to: ticket.to,
        departs: ticket.departs,
        terminal: ticket.terminal,
        cabin: text(pick(&CABINS, passenger.number)),
        baggage: ticket.baggage,
        price: ticket.price,
        currency: ticket.currency,
        status: text("confirmed"),
    }
}

fn pick(texts: &[&'static str], number: i32) -> &'static str {
    let length = i32::try_from(texts.len()).expect("a handful of texts");
    texts[usize::try_from(number.rem_euclid(length)).expect("a remainder is not negative")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::airline::documents::{JsonArray, to_json};

    /// What a study of an egress gateway begins with.
    const FLIGHTS: i32 = 200;
    const SEATS: i32 = 1_000_000;
    const CUSTOMERS: i32 = 1000;

    fn mean(sizes: impl Iterator<Item = usize>) -> f64 {
        let (sum, count) = sizes.fold((0, 0), |(sum, count), size| (sum + size, count + 1));
        sum as f64 / f64::from(count)
    }

    fn array(values: impl Iterator<Item = impl serde::Serialize>) -> usize {
        let mut array = JsonArray::new();
        values.for_each(|value| array.push(&value).unwrap());
        array.into_text().len()
    }

    fn flights_of(from: &str, to: &str) -> impl Iterator<Item = Flight<Cow<'static, str>>> {
        let all = (0..FLIGHTS).map(|number| flight(number, SEATS));
        all.filter(move |flight| flight.from == from && flight.to == to)
    }

    #[test]
    fn every_ordered_pair_of_airports_has_flights_and_at_most_four() {
        for from in AIRPORTS {
            for to in AIRPORTS.into_iter().filter(|to| *to != from) {
                assert!((1..=4).contains(&flights_of(from, to).count()), "{from} {to}");
            }
        }
    }

    #[test]
    fn no_flight_lands_where_it_left() {
        assert!((0..PAIRS).map(pair).all(|(from, to)| from != to));
        assert_eq!((0..PAIRS).map(pair).collect::<BTreeSet<_>>().len(), 90);
    }

    /// 40 % flights, 20 % each bookings, customer and book: the published study's mean payload is 620 bytes.
    #[test]
    fn the_mean_answer_of_the_mix_has_some_620_bytes() {
        let pairs = || AIRPORTS.into_iter().flat_map(|from| AIRPORTS.map(|to| (from, to)));
        let asked = pairs().filter(|(from, to)| from != to);
        let flights = mean(asked.map(|(from, to)| array(flights_of(from, to))));
        let list = mean((0..CUSTOMERS).map(|number| array(bookings(number, FLIGHTS))));
        let customers = mean((0..CUSTOMERS).map(|n| to_json(&customer(n)).unwrap().len()));
        let key = || "12345-1234567890123456789";
        let booked = |n| booking(key().into(), passenger(n), ticket(n % FLIGHTS), Cow::Borrowed);
        let booked = mean((0..CUSTOMERS).map(|n| to_json(&booked(n)).unwrap().len()));
        let mix = 0.4 * flights + 0.2 * (list + customers + booked);
        println!("{flights} {list} {customers} {booked} {mix}");
        assert!((610.0..630.0).contains(&mix), "{flights} {list} {customers} {booked}: {mix}");
    }

    #[test]
    fn customers_differ_in_number_and_their_keys_are_seeds() {
        let keys: BTreeSet<_> =
            (0..CUSTOMERS).flat_map(|n| bookings(n, FLIGHTS)).map(|b| b.key).collect();
        assert_eq!(keys.len(), 4 * 1000);
        assert!(keys.iter().all(|key| key.starts_with(SEED)));
    }
}
