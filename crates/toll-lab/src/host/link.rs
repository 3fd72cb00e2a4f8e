//! Brings up the links inside of pods by ioctl, netdevice(7): one forked child does it in all of them, where `ip`
//! would be a process for each.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc::{self, c_short, ifreq, in_addr, sockaddr_in};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::namespace::Namespace;

/// The mask of the pods' network, `/16`.
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 0, 0);

/// Brings up the loopback device and `eth0`, with its address, in the network of each pod; an outcome for each.
///
/// # Errors
/// When no child can be made.
pub(crate) fn bring_up(pods: &[(&Namespace, Ipv4Addr)]) -> io::Result<Vec<io::Result<()>>> {
    let namespaces: Vec<&Namespace> = pods.iter().map(|(namespace, _)| *namespace).collect();
    Namespace::in_each(&namespaces, |index| {
        let links = Links::here()?;
        links.set_up(c"lo".to_bytes())?;
        links.set_address(c"eth0".to_bytes(), pods[index].1)?;
        links.set_up(c"eth0".to_bytes())
    })
}

/// The links of the calling process's network.
struct Links(OwnedFd);

impl Links {
    fn here() -> io::Result<Self> {
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        Ok(Self(any))
    }

    fn set_up(&self, name: &[u8]) -> io::Result<()> {
        let mut request = named(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as c_short;
        self.order(libc::SIOCSIFFLAGS, &request)
    }

    fn set_address(&self, name: &[u8], ip: Ipv4Addr) -> io::Result<()> {
        let orders = [(libc::SIOCSIFADDR, ip), (libc::SIOCSIFNETMASK, MASK)];
        orders.into_iter().try_for_each(|(order, address)| {
            let mut request = named(name);
            request.ifr_ifru.ifru_addr = socket_address(address);
            self.order(order, &request)
        })
    }

    fn order(&self, order: libc::c_ulong, request: &ifreq) -> io::Result<()> {
        // SAFETY: these orders only read an `ifreq`, which lives until the call returns.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), order as _, request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A request that says nothing yet but the link's name.
fn named(name: &[u8]) -> ifreq {
    // SAFETY: all zeros is an `ifreq` without a name.
    let mut request: ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name) {
        *place = *byte as libc::c_char;
    }
    request
}

fn socket_address(ip: Ipv4Addr) -> libc::sockaddr {
    let address = sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: a `sockaddr_in` is the `sockaddr` of its family, and as large.
    unsafe { std::mem::transmute::<sockaddr_in, libc::sockaddr>(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_a_link_is_told_from_the_others() {
        let Ok(made) = Namespace::rootless(2) else {
            eprintln!("SKIP a_pod_without_a_link_is_told_from_the_others: no user namespaces");
            return;
        };
        let ip = Ipv4Addr::new(10, 77, 0, 2);
        let outcomes = bring_up(&[(&made[0], ip), (&made[1], ip)]).unwrap();
        let errors = outcomes.into_iter().map(|outcome| outcome.unwrap_err().raw_os_error());
        assert_eq!(errors.collect::<Vec<_>>(), [Some(libc::ENODEV); 2]);
    }
}
