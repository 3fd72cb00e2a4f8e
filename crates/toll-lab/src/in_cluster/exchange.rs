//! A request to one of toll's own pods, and the answer to it.

use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request, read to its end.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: Method,
    /// Path and query, from the slash on.
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl Question {
    /// The segments of the path, and the value of a query's field by its name.
    pub(super) fn segments(&self) -> Vec<&str> {
        let path = self.path.split('?').next().unwrap_or_default();
        path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    pub(super) fn field<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        let query = self.path.split_once('?')?.1;
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| *key == name)?.1.parse().ok()
    }

    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Reply> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Reply::refused(StatusCode::BAD_REQUEST, &error.to_string()))
    }
}

/// The answer to one.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Reply {
    pub(super) fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).expect("plain fields always have a JSON form");
        Self { status: StatusCode::OK, body: body.into() }
    }

    pub(super) fn done() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Bytes::new() }
    }

    pub(super) fn refused(status: StatusCode, reason: &str) -> Self {
        Self { status, body: Bytes::copy_from_slice(reason.as_bytes()) }
    }

    pub(super) fn unknown() -> Self {
        Self::refused(StatusCode::NOT_FOUND, "this pod does not do that")
    }
}
