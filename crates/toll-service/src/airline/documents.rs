//! What the airline's databases hold and its answers show. `S` is the text: borrowed from a row, or owned.

use serde::{Deserialize, Serialize};

/// A flight and its seats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Flight<S> {
    pub(super) number: i32,
    pub(super) code: S,
    pub(super) carrier: S,
    pub(super) from: S,
    pub(super) to: S,
    pub(super) departs: S,
    pub(super) arrives: S,
    pub(super) aircraft: S,
    pub(super) terminal: S,
    pub(super) gate: S,
    pub(super) fare: S,
    pub(super) baggage: S,
    /// Cents.
    pub(super) price: i32,
    pub(super) currency: S,
    pub(super) seats: i32,
    /// Seats that are not taken; never below nothing.
    pub(super) free: i32,
}

/// A customer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Customer<S> {
    pub(super) number: i32,
    pub(super) name: S,
    pub(super) email: S,
    pub(super) phone: S,
    pub(super) street: S,
    pub(super) postcode: S,
    pub(super) city: S,
    pub(super) country: S,
    pub(super) born: S,
    pub(super) nationality: S,
    pub(super) passport: S,
    pub(super) passport_until: S,
    pub(super) programme: S,
    pub(super) tier: S,
    pub(super) miles: i32,
    pub(super) seat: S,
    pub(super) meal: S,
    pub(super) language: S,
    pub(super) since: S,
}

/// A seat of a flight that a customer has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Booking<S> {
    /// The client's own; seeds begin with [`SEED`].
    pub(super) key: S,
    pub(super) customer: i32,
    pub(super) passenger: S,
    pub(super) flight: i32,
    pub(super) carrier: S,
    pub(super) from: S,
    pub(super) to: S,
    pub(super) departs: S,
    pub(super) terminal: S,
    pub(super) cabin: S,
    pub(super) baggage: S,
    /// Cents.
    pub(super) price: i32,
    pub(super) currency: S,
    pub(super) status: S,
}

/// What a booking needs of a customer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Passenger<S> {
    pub(super) number: i32,
    pub(super) name: S,
}

/// What a flight is, apart from its seats: the answer to who took one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ticket<S> {
    pub(super) flight: i32,
    pub(super) carrier: S,
    pub(super) from: S,
    pub(super) to: S,
    pub(super) departs: S,
    pub(super) terminal: S,
    pub(super) baggage: S,
    /// Cents.
    pub(super) price: i32,
    pub(super) currency: S,
}

/// What the keys begin with of the bookings that are there at first.
pub(super) const SEED: &str = "seed-";

/// A JSON array that is written one value after the other.
#[derive(Debug)]
pub(super) struct JsonArray(Vec<u8>);

impl JsonArray {
    pub(super) fn new() -> Self {
        let mut text = Vec::with_capacity(1024);
        text.push(b'[');
        Self(text)
    }

    pub(super) fn push(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, value)
    }

    pub(super) fn into_text(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}

/// One value as JSON.
pub(super) fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, value)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_json_however_many_values_it_has() {
        let text = |values: &[i32]| {
            let mut array = JsonArray::new();
            values.iter().for_each(|value| array.push(value).unwrap());
            String::from_utf8(array.into_text()).unwrap()
        };
        assert_eq!([text(&[]), text(&[1]), text(&[1, 2, 3])], ["[]", "[1]", "[1,2,3]"]);
    }
}
