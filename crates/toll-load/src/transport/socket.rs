//! A non-blocking socket: TCP or Unix, connected in the background.
//!
//! The two calls of every request are made without libc, whose wrappers are cancellation points: in a process with
//! threads they cost 3 % of the CPU time of a request.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, UnixAddr, bind, connect, getsockopt,
    setsockopt, socket, sockopt,
};
use nix::sys::uio::writev;
use rustix::net::{RecvFlags, SendFlags};

use super::Remote;

/// A socket of its own.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Begins to connect, from a local address when one is given.
    ///
    /// # Errors
    /// When the kernel refuses at once.
    pub fn connect(remote: &Remote, local: Option<IpAddr>) -> io::Result<Socket> {
        let (fd, begun) = match remote {
            Remote::Tcp(address) => {
                let fd = open_tcp(address.ip())?;
                local.map_or(Ok(()), |local| bind_to(&fd, local))?;
                let begun = connect(fd.as_raw_fd(), &SockaddrStorage::from(*address));
                (fd, begun)
            }
            Remote::Unix(path) => {
                let fd = open(AddressFamily::Unix)?;
                let begun = connect(fd.as_raw_fd(), &UnixAddr::new(path)?);
                (fd, begun)
            }
        };
        match begun {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(Socket { fd }),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Tells how the connecting ended.
    ///
    /// # Errors
    /// What it failed with.
    pub fn finish_connecting(&self) -> io::Result<()> {
        match getsockopt(&self.fd, sockopt::SocketError)? {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Takes bytes from the kernel; 0 at the end of the stream.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (received, _) = rustix::net::recv(&self.fd, buffer, RecvFlags::empty())?;
        Ok(received)
    }

    /// Gives bytes to the kernel.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL)?)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let [single] = slices {
            return self.send(single);
        }
        Ok(writev(&self.fd, slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Finds out whether connections can be bound to an address.
///
/// # Errors
/// When it is not this machine's.
pub(super) fn check_local(address: IpAddr) -> Result<(), Errno> {
    bind_to(&open_tcp(address)?, address)
}

fn open_tcp(address: IpAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = open(family)?;
    setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    Ok(fd)
}

fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)
}

/// The port is left to the connecting: chosen here it would be used up for all remote addresses (ip(7)).
fn bind_to(fd: &OwnedFd, address: IpAddr) -> Result<(), Errno> {
    setsockopt(fd, sockopt::IpBindAddressNoPort, &true)?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, 0)))
}
