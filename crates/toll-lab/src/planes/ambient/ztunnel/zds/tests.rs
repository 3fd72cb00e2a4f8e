//! The server against a client that speaks as ztunnel's sources do: no ztunnel could be had.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{FromRawFd, RawFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessageOwned, connect, recvmsg, setsockopt, sockopt};
use nix::sys::stat::fstat;
use nix::sys::time::TimeVal;
use prost::Message;
use tempfile::TempDir;

use super::messages::{Ack, Payload, WorkloadRequest, WorkloadResponse, ZdsHello};
use super::*;

/// What ztunnel does, as far as its sources tell.
pub(crate) struct FakeZtunnel(OwnedFd);

impl FakeZtunnel {
    fn connect(path: &Path) -> Self {
        let flags = SockFlag::SOCK_CLOEXEC;
        let peer = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
        connect(peer.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
        setsockopt(&peer, sockopt::ReceiveTimeout, &TimeVal::new(5, 0)).unwrap();
        Self(peer)
    }

    fn say(&self, message: &impl Message) {
        send(&self.0, &message.encode_to_vec(), None).unwrap();
    }

    pub(crate) fn hello(path: &Path) -> Self {
        let client = Self::connect(path);
        client.say(&ZdsHello { version: 1 });
        client
    }

    pub(crate) fn answer(&self, error: &str) {
        self.say(&WorkloadResponse { ack: Some(Ack { error: error.to_owned() }) });
    }

    pub(crate) fn receive(&self) -> (Option<Payload>, Vec<OwnedFd>) {
        let (mut bytes, mut space) = (vec![0; 1024], nix::cmsg_space!(RawFd));
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let got = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags).unwrap();
        let length = got.bytes;
        let mut networks = Vec::new();
        for message in got.cmsgs().unwrap() {
            let ControlMessageOwned::ScmRights(fds) = message else { panic!("{message:?}") };
            // SAFETY: the kernel has just made them for this process.
            networks.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
        (WorkloadRequest::decode(&bytes[..length]).unwrap().payload, networks)
    }
}

struct Served {
    zds: Zds,
    pods: Vec<Pod>,
    folder: TempDir,
}

impl Served {
    /// Files stand for networks: descriptors are descriptors.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pod = |name: &str| Pod {
            workload: Workload {
                uid: format!("Kubernetes//Pod/default/{name}"),
                pod: name.to_owned(),
                namespace: "default".to_owned(),
                service_account: "server".to_owned(),
            },
            network: Arc::new(File::create(folder.path().join(name)).unwrap().into()),
        };
        let pods = vec![pod("server-1"), pod("server-2")];
        let zds = Zds::serve(&folder.path().join("zds.sock"), pods.clone()).unwrap();
        Self { zds, pods, folder }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("zds.sock")
    }

    fn await_state(&self, wanted: &State) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.zds.state() != *wanted {
            assert!(Instant::now() < deadline, "{:?}", self.zds.state());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// One ztunnel that takes all.
    fn take_all(&self) -> FakeZtunnel {
        let client = FakeZtunnel::hello(&self.socket());
        for pod in &self.pods {
            let (payload, networks) = client.receive();
            let Some(Payload::Add(add)) = payload else { panic!("{payload:?}") };
            let (info, of) = (add.workload_info.unwrap(), &pod.workload);
            assert_eq!((&add.uid, &info.name), (&of.uid, &of.pod));
            assert_eq!((&info.namespace[..], &info.service_account[..]), ("default", "server"));
            let [network] = &networks[..] else { panic!("{networks:?}") };
            let identity = |fd: &OwnedFd| fstat(fd).map(|file| (file.st_dev, file.st_ino));
            assert_eq!(identity(network), identity(&pod.network));
            assert_eq!(self.zds.state(), State::Waiting);
            client.answer("");
        }
        let (payload, networks) = client.receive();
        assert!(matches!(payload, Some(Payload::SnapshotSent(_))), "{payload:?}");
        assert!(networks.is_empty());
        assert_eq!(self.zds.state(), State::Waiting);
        client.answer("");
        client
    }
}

#[test]
fn a_fake_ztunnel_gets_each_pod_with_its_very_network_and_then_the_end_of_the_list() {
    let served = Served::new();
    let _client = served.take_all();
    served.await_state(&State::Served);
}

#[test]
fn a_fake_ztunnel_that_comes_back_is_told_all_again() {
    let served = Served::new();
    drop(served.take_all());
    let _again = served.take_all();
    served.await_state(&State::Served);
}

#[test]
fn a_fake_ztunnel_that_dies_half_way_is_waited_for() {
    let served = Served::new();
    let client = FakeZtunnel::hello(&served.socket());
    client.receive();
    drop(client);
    let _again = served.take_all();
    served.await_state(&State::Served);
}

#[test]
fn what_a_fake_ztunnel_refuses_is_told_in_its_words() {
    let served = Served::new();
    let client = FakeZtunnel::hello(&served.socket());
    client.receive();
    client.answer("no such namespace");
    served.await_state(&State::Refused("server-1: no such namespace".to_owned()));
}

#[test]
fn a_fake_ztunnel_of_another_version_is_refused() {
    let served = Served::new();
    let client = FakeZtunnel::connect(&served.socket());
    client.say(&ZdsHello { version: 2 });
    served.await_state(&State::Refused("it speaks version 2, not 1".to_owned()));
}

#[test]
fn the_thread_ends_with_the_environment_whether_anybody_came_or_not() {
    let began = Instant::now();
    drop(Served::new());
    let Served { zds, .. } = &Served::new();
    assert_eq!(zds.state(), State::Waiting);
    let served = Served::new();
    let _client = served.take_all();
    drop(served);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_message_has_the_bytes_that_the_protocol_says() {
    let workload = Workload {
        uid: "u".to_owned(),
        pod: "p".to_owned(),
        namespace: "n".to_owned(),
        service_account: "s".to_owned(),
    };
    // Field 1 of the request: field 1 the uid, field 2 the name, namespace and service account.
    let add = [&[0x0a, 14][..], &[0x0a, 1, b'u', 0x12, 9], b"\x0a\x01p\x12\x01n\x1a\x01s"].concat();
    assert_eq!(messages::add(&workload), add);
    assert_eq!(messages::snapshot_sent(), [0x1a, 0]);
    assert_eq!(messages::hello(&[0x08, 1]), Ok(()));
    assert_eq!(messages::acknowledged(&[0x0a, 0]), Ok(()));
}
