//! The messages by which ztunnel is given its pods: `proto/zds.proto` of ztunnel, as bytes and back.
//!
//! Ztunnel says hello and answers each message with an acknowledgement; a pod's message carries its network beside
//! the bytes.

use prost::Message;

use super::workload::Workload;

/// The version of the protocol that is spoken here.
const V1: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ZdsHello {
    #[prost(int32, tag = "1")]
    pub(crate) version: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkloadRequest {
    #[prost(oneof = "Payload", tags = "1, 3")]
    pub(crate) payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Payload {
    #[prost(message, tag = "1")]
    Add(AddWorkload),
    #[prost(message, tag = "3")]
    SnapshotSent(SnapshotSent),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AddWorkload {
    #[prost(string, tag = "1")]
    pub(crate) uid: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) workload_info: Option<WorkloadInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkloadInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) namespace: String,
    #[prost(string, tag = "3")]
    pub(crate) service_account: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SnapshotSent {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WorkloadResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) ack: Option<Ack>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ack {
    #[prost(string, tag = "1")]
    pub(crate) error: String,
}

/// Gives ztunnel a pod.
pub(crate) fn add(workload: &Workload) -> Vec<u8> {
    let info = WorkloadInfo {
        name: workload.pod.clone(),
        namespace: workload.namespace.clone(),
        service_account: workload.service_account.clone(),
    };
    let add = AddWorkload { uid: workload.uid.clone(), workload_info: Some(info) };
    WorkloadRequest { payload: Some(Payload::Add(add)) }.encode_to_vec()
}

/// Tells ztunnel that it has all its pods.
pub(crate) fn snapshot_sent() -> Vec<u8> {
    WorkloadRequest { payload: Some(Payload::SnapshotSent(SnapshotSent {})) }.encode_to_vec()
}

/// Whether ztunnel's first message is a hello in a version that is spoken here.
///
/// # Errors
/// What it is instead.
pub(crate) fn hello(bytes: &[u8]) -> Result<(), String> {
    match ZdsHello::decode(bytes) {
        Ok(ZdsHello { version: V1 }) => Ok(()),
        Ok(ZdsHello { version }) => Err(format!("it speaks version {version}, not {V1}")),
        Err(e) => Err(format!("its first message is no hello: {e}")),
    }
}

/// Whether ztunnel took what it was sent.
///
/// # Errors
/// Why not, in its own words.
pub(crate) fn acknowledged(bytes: &[u8]) -> Result<(), String> {
    match WorkloadResponse::decode(bytes) {
        Ok(WorkloadResponse { ack: Some(Ack { error }) }) if error.is_empty() => Ok(()),
        Ok(WorkloadResponse { ack: Some(Ack { error }) }) => Err(error),
        Ok(WorkloadResponse { ack: None }) => Err("its answer is no acknowledgement".to_owned()),
        Err(e) => Err(format!("its answer is no acknowledgement: {e}")),
    }
}
