//! Listens inside of network namespaces for the calling process, which stays outside: what is answered there costs
//! whoever lives there nothing but the bytes.

use std::io::{self, IoSliceMut};
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn, bind,
    listen, recvmsg, socket, socketpair,
};

use super::namespace::Namespace;

/// Listens on this port of the loopback of each of these namespaces, which are of one owner; in their order.
///
/// A child makes the sockets and hands them over: a process of several threads cannot enter a user namespace.
///
/// # Errors
/// What the kernel says, for example that the port is taken.
pub(crate) fn listen_in_each(namespaces: &[&Namespace], port: u16) -> io::Result<Vec<TcpListener>> {
    let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC);
    let (here, there) = socketpair(AddressFamily::Unix, kind, None, flags)?;
    let outcomes = Namespace::in_each(namespaces, |_| hand_over(&there, &listen_at(port)?))?;
    outcomes.into_iter().collect::<io::Result<()>>()?;
    namespaces.iter().map(|_| take_over(&here)).collect()
}

/// Does not allocate.
fn listen_at(port: u16) -> io::Result<OwnedFd> {
    let listener = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let at = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    bind(listener.as_raw_fd(), &at)?;
    listen(&listener, Backlog::MAXCONN)?;
    Ok(listener)
}

/// Does not allocate, as sendmsg of nix would.
fn hand_over(socket: &OwnedFd, listener: &OwnedFd) -> io::Result<()> {
    const OF_ONE: u32 = mem::size_of::<RawFd>() as u32;
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // More than the header and one descriptor need, and aligned as they are.
    let mut space = [0_u64; 8];
    // SAFETY: all zero is a message of nothing.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = space.as_mut_ptr().cast();
    // SAFETY: reckons only.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(OF_ONE) } as _;
    // SAFETY: the first header is within `space`, which has room for it and for one descriptor.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(OF_ONE) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(listener.as_raw_fd());
        libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn take_over(socket: &OwnedFd) -> io::Result<TcpListener> {
    let (mut byte, mut space) = ([0], cmsg_space!(RawFd));
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let got = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let descriptors = got.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    let descriptor = descriptors.ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_a_listener_of_its_own_at_the_same_port() {
        let Ok(made) = Namespace::rootless(2) else {
            eprintln!(
                "SKIP each_namespace_has_a_listener_of_its_own_at_the_same_port: no user namespaces"
            );
            return;
        };
        let namespaces: Vec<_> = made.iter().collect();
        let listeners = listen_in_each(&namespaces, 15012).unwrap();
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port());
        assert_eq!(ports.collect::<Vec<_>>(), [15012, 15012]);
        let taken = listen_in_each(&namespaces[..1], 15012).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
