//! Tells which networks have firewall tables, where `nft` would be a process for each: one forked child asks the
//! kernel in all of them.
//!
//! It knows no rule: what a table holds is for `nft` to list. Protocol: netlink(7), nfnetlink of
//! <https://docs.kernel.org/userspace-api/netlink/specs.html>.

use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::namespace::Namespace;

/// `nlmsghdr`, then `nfgenmsg`.
const QUESTION_BYTES: usize = 20;

/// Whether each of these networks has a table, or might have one: what cannot be asked is not known to have none.
///
/// # Errors
/// When no child can be made.
pub(crate) fn may_have_tables(networks: &[&Namespace]) -> io::Result<Vec<bool>> {
    let asked = Namespace::in_each(networks, |_| match has_no_table()? {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EEXIST)),
    })?;
    Ok(asked.into_iter().map(|none| none.is_err()).collect())
}

/// Of the calling process's network. Allocates nothing.
fn has_no_table() -> io::Result<bool> {
    let netfilter = SockProtocol::NetlinkNetFilter;
    let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
    let kernel = socket(family, kind, SockFlag::SOCK_CLOEXEC, netfilter)?;
    send(kernel.as_raw_fd(), &question(), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    Ok(is_end(&answer[..length]))
}

/// A list of the tables of all families.
fn question() -> [u8; QUESTION_BYTES] {
    let kind = (libc::NFNL_SUBSYS_NFTABLES << 8) | libc::NFT_MSG_GETTABLE;
    let kind = u16::try_from(kind).expect("a message's type has 16 bits");
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
    let flags = u16::try_from(flags).expect("a message's flags have 16 bits");
    let mut question = [0; QUESTION_BYTES];
    question[..4].copy_from_slice(&(QUESTION_BYTES as u32).to_ne_bytes());
    question[4..6].copy_from_slice(&kind.to_ne_bytes());
    question[6..8].copy_from_slice(&flags.to_ne_bytes());
    question
}

/// Whether a list ends where it begins.
fn is_end(answer: &[u8]) -> bool {
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    kind.is_some_and(|kind| i32::from(kind) == libc::NLMSG_DONE)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::host::spawn::SpawnContext;
    use crate::host::tools;

    #[test]
    fn a_network_with_a_table_is_told_from_one_without() {
        let (Ok(made), Some(nft)) = (Namespace::rootless(2), tools::find("nft")) else {
            eprintln!("SKIP a_network_with_a_table_is_told_from_one_without: no namespaces or nft");
            return;
        };
        let mut command = Command::new(nft);
        command.args(["add", "table", "bridge", "toll_test"]).stdout(Stdio::null());
        let context = SpawnContext::inside(&made[1]);
        context.apply(&mut command).unwrap();
        assert!(command.status().unwrap().success());
        assert_eq!(may_have_tables(&[&made[0], &made[1]]).unwrap(), [false, true]);
    }

    #[test]
    fn an_error_in_place_of_a_list_is_no_end() {
        let mut error = question();
        error[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert!(!is_end(&error) && !is_end(&[]));
    }
}
