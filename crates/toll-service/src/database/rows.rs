//! Turns rows into a JSON array of objects, one value after the other into the answer's buffer.

use std::error::Error as StdError;

use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Column, Row};

use super::Cause;

/// The types that have a value in JSON.
pub(super) static TYPES: [Type; 9] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::TEXT,
    Type::VARCHAR,
    Type::NAME,
];

/// Checks that all `columns` can be written.
pub(super) fn check(columns: &[Column]) -> Result<(), Cause> {
    match columns.iter().find(|column| !Value::accepts(column.type_())) {
        Some(unknown) => Err(Cause::UnknownType {
            column: unknown.name().into(),
            found: unknown.type_().clone(),
        }),
        None => Ok(()),
    }
}

/// The rows as objects by column name. A number that JSON has not (NaN, infinity) is null.
///
/// # Errors
/// When a value is not what its type says.
pub(super) fn to_json(rows: &[Row]) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::with_capacity(128);
    serde_json::Serializer::new(&mut json).collect_seq(rows.iter().map(Object))?;
    Ok(json)
}

struct Object<'a>(&'a Row);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for (index, column) in self.0.columns().iter().enumerate() {
            let value: Option<Value> = self.0.try_get(index).map_err(S::Error::custom)?;
            object.serialize_entry(column.name(), &value)?;
        }
        object.end()
    }
}

/// A value, borrowed from its row.
#[derive(Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Truth(bool),
    Whole(i64),
    /// Apart from `Double`: 0.1 as a single is no 0.1 as a double.
    Single(f32),
    Double(f64),
    Text(&'a str),
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(found: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *found {
            Type::BOOL => Self::Truth(bool::from_sql(found, raw)?),
            Type::INT2 => Self::Whole(i16::from_sql(found, raw)?.into()),
            Type::INT4 => Self::Whole(i32::from_sql(found, raw)?.into()),
            Type::INT8 => Self::Whole(i64::from_sql(found, raw)?),
            Type::FLOAT4 => Self::Single(f32::from_sql(found, raw)?),
            Type::FLOAT8 => Self::Double(f64::from_sql(found, raw)?),
            _ => Self::Text(<&str>::from_sql(found, raw)?),
        })
    }

    fn accepts(found: &Type) -> bool {
        TYPES.contains(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(found: Type, raw: &[u8]) -> String {
        serde_json::to_string(&Value::from_sql(&found, raw).unwrap()).unwrap()
    }

    #[test]
    fn each_type_has_its_value_in_json() {
        assert_eq!(json(Type::BOOL, &[1]), "true");
        assert_eq!(json(Type::INT2, &(-2_i16).to_be_bytes()), "-2");
        assert_eq!(json(Type::INT4, &i32::MAX.to_be_bytes()), "2147483647");
        assert_eq!(json(Type::INT8, &i64::MIN.to_be_bytes()), "-9223372036854775808");
        assert_eq!(json(Type::FLOAT4, &0.1_f32.to_be_bytes()), "0.1");
        assert_eq!(json(Type::FLOAT8, &0.1_f64.to_be_bytes()), "0.1");
        for text in [Type::TEXT, Type::VARCHAR, Type::NAME] {
            assert_eq!(json(text, "a \"q\" é\n".as_bytes()), r#""a \"q\" é\n""#);
        }
    }

    #[test]
    fn what_json_cannot_write_is_null() {
        assert_eq!(json(Type::FLOAT8, &f64::NAN.to_be_bytes()), "null");
        assert_eq!(json(Type::FLOAT4, &f32::INFINITY.to_be_bytes()), "null");
    }

    #[test]
    fn other_types_are_not_taken_for_texts() {
        for other in [Type::JSON, Type::NUMERIC, Type::TIMESTAMPTZ, Type::TEXT_ARRAY, Type::BPCHAR]
        {
            assert!(!Value::accepts(&other), "{other}");
        }
    }
}
