//! Why a body was not taken, and the status that says so in HTTP and in gRPC.

use hyper::StatusCode;

/// The largest body that is taken, bytes, packed or not: eight times what an exporter sends at its defaults.
pub(crate) const LARGEST_BODY: usize = 1 << 24;

/// Why a body was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("a body of more than {LARGEST_BODY} bytes is not taken")]
    TooLarge,
    #[error("content encoding {0:?} is not known: send gzip or none")]
    Encoding(String),
    #[error("content type {0:?} is not taken here: send application/x-protobuf")]
    ContentType(String),
    #[error("the body cannot be understood: {0}")]
    Malformed(String),
    #[error("nothing is taken at {0}: `toll-collector --help` lists the paths")]
    NoSuchPath(String),
}

impl Refusal {
    /// As HTTP has it.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoding(_) | Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::NoSuchPath(_) => StatusCode::NOT_FOUND,
        }
    }

    /// As gRPC has it: invalid argument or unimplemented. A status that fits a length better would make an exporter
    /// send the same again.
    /// Source: <https://opentelemetry.io/docs/specs/otlp/#failures>.
    pub(crate) fn grpc_status(&self) -> &'static str {
        match self {
            Self::TooLarge | Self::Malformed(_) => "3",
            Self::Encoding(_) | Self::ContentType(_) | Self::NoSuchPath(_) => "12",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_refusal_makes_an_exporter_send_the_same_again() {
        let text = String::new;
        let refusals = [
            Refusal::TooLarge,
            Refusal::Encoding(text()),
            Refusal::ContentType(text()),
            Refusal::Malformed(text()),
            Refusal::NoSuchPath(text()),
        ];
        // The statuses after which OTLP lets an exporter try again.
        for refusal in refusals {
            assert!(![429, 502, 503, 504].contains(&refusal.status().as_u16()), "{refusal}");
            let grpc = refusal.grpc_status();
            assert!(!["1", "4", "8", "10", "11", "14", "15"].contains(&grpc), "{refusal}");
        }
    }
}
