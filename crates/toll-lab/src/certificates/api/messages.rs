//! The messages by which a proxy asks for a certificate: `security/v1alpha1/ca.proto` of Istio's API, as bytes and
//! back.

use std::collections::BTreeMap;

use prost::Message;

/// The field of the metadata that names whom a node's proxy asks for.
const IMPERSONATED: &str = "ImpersonatedIdentity";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CertificateRequest {
    /// PEM.
    #[prost(string, tag = "1")]
    pub(crate) csr: String,
    /// Seconds.
    #[prost(int64, tag = "3")]
    pub(crate) validity_duration: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) metadata: Option<Metadata>,
}

/// `google.protobuf.Struct`, of which only strings are read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) fields: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(string, tag = "3")]
    pub(crate) string: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CertificateResponse {
    /// PEM: the certificate first, the authority's last.
    #[prost(string, repeated, tag = "1")]
    pub(crate) cert_chain: Vec<String>,
}

impl CertificateRequest {
    /// Whom the certificate is for.
    pub(crate) fn identity(&self) -> Option<&str> {
        let value = self.metadata.as_ref()?.fields.get(IMPERSONATED)?;
        (!value.string.is_empty()).then_some(value.string.as_str())
    }

    #[cfg(test)]
    pub(crate) fn on_behalf_of(identity: &str, csr: String) -> Self {
        let value = Value { string: identity.to_owned() };
        let fields = BTreeMap::from([(IMPERSONATED.to_owned(), value)]);
        let metadata = Some(Metadata { fields });
        Self { csr, validity_duration: 86_400, metadata }
    }
}
