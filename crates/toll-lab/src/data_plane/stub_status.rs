//! Asks an nginx how many requests it got. Knows nothing of who sent them.
//!
//! Form of the answer: <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>.

use std::path::Path;

use super::DataPlaneError;
use super::admin_socket::ask;

/// Requests since it started, this question and all before it included.
///
/// # Errors
/// When it cannot be asked, or answers something else.
pub(crate) fn requests(socket: &Path) -> Result<u64, DataPlaneError> {
    let answer = ask(socket, "GET", "/")
        .map_err(|source| DataPlaneError::Status { socket: socket.to_owned(), source })?;
    let text = String::from_utf8_lossy(&answer.body);
    let form = || DataPlaneError::StatusForm { socket: socket.to_owned() };
    requests_in(&text).ok_or_else(form)
}

/// The third number of the line that has three.
fn requests_in(status: &str) -> Option<u64> {
    let (_, numbers) = status.split_once("server accepts handled requests\n")?;
    numbers.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_connections() {
        let status = "Active connections: 1 \nserver accepts handled requests\n 16 16 31 \n\
                      Reading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(requests_in(status), Some(31));
        assert_eq!(requests_in("404 Not Found"), None);
    }
}
