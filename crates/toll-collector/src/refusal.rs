//! Why a body was not taken, and the status that says so in HTTP and in gRPC.

use hyper::StatusCode;

use crate::packing::LARGEST_BODY;

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

    /// As gRPC has it; none of these makes an exporter try again.
    /// Source: <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>.
    pub(crate) fn grpc_status(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "3",
            Self::TooLarge => "11",
            Self::Encoding(_) | Self::ContentType(_) | Self::NoSuchPath(_) => "12",
        }
    }
}
