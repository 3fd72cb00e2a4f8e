//! Turns a [`Target`] into the bytes of its request, once, before the load begins.

use crate::{LoadError, Target};

/// A request ready to be written, and whom to write it to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Host name or address, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Answers to HEAD have no body, whatever their head says.
    pub is_head: bool,
}

impl Request {
    /// The request that a target describes.
    ///
    /// # Errors
    /// When the URL, the method or a header cannot be sent.
    pub fn new(target: &Target) -> Result<Request, LoadError> {
        check_method(&target.method)?;
        target.headers.iter().try_for_each(|(name, value)| check_header(name, value))?;
        let url = Url::parse(&target.url)?;
        Ok(Request {
            bytes: render(target, &url).into_bytes(),
            host: url.host.to_owned(),
            port: url.port,
            is_head: target.method.eq_ignore_ascii_case("HEAD"),
        })
    }
}

fn render(target: &Target, url: &Url) -> String {
    let mut text = format!("{} {} HTTP/1.1\r\n", target.method, url.path);
    if !target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text += &format!("host: {}\r\n", url.authority);
    }
    for (name, value) in &target.headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !target.body.0.is_empty() || expects_body(&target.method) {
        text += &format!("content-length: {}\r\n", target.body.0.len());
    }
    text += "\r\n";
    text + &String::from_utf8_lossy(&target.body.0)
}

fn expects_body(method: &str) -> bool {
    ["POST", "PUT", "PATCH"].iter().any(|m| method.eq_ignore_ascii_case(m))
}

fn check_method(method: &str) -> Result<(), LoadError> {
    let is_token = !method.is_empty() && method.bytes().all(|b| b.is_ascii_alphabetic());
    if is_token { Ok(()) } else { Err(LoadError::BadMethod { method: method.into() }) }
}

fn check_header(name: &str, value: &str) -> Result<(), LoadError> {
    let refuse = |problem| Err(LoadError::BadHeader { name: name.into(), problem });
    let framing = ["content-length", "transfer-encoding"];
    if framing.iter().any(|f| name.eq_ignore_ascii_case(f)) {
        return refuse("the engine sets it itself");
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() && b != b':') {
        return refuse("its name has a character that is not allowed");
    }
    if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
        return refuse("its value has a line break");
    }
    Ok(())
}

/// The parts of a URL that a request needs.
struct Url<'a> {
    authority: &'a str,
    host: &'a str,
    port: u16,
    path: String,
}

impl Url<'_> {
    fn parse(url: &str) -> Result<Url<'_>, LoadError> {
        let bad = |problem| LoadError::BadUrl { url: url.into(), problem };
        let rest = url.strip_prefix("http://").ok_or(bad("it does not begin with http://"))?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = split_authority(authority).ok_or(bad("its port is not a number"))?;
        if host.is_empty() || authority.contains('@') {
            return Err(bad("it needs a host, and no user name"));
        }
        if !rest.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("it has a blank or a character that must be percent-encoded"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url { authority, host, port, path: format!("{slash}{path}") })
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    match port.strip_prefix(':') {
        Some(digits) => Some((host, digits.parse().ok()?)),
        None if port.is_empty() => Some((host, 80)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::get(url)
    }

    fn text(target: &Target) -> String {
        String::from_utf8(Request::new(target).unwrap().bytes).unwrap()
    }

    #[test]
    fn a_get_has_a_host_and_no_length() {
        assert_eq!(
            text(&target("http://server:9000/a?b=c#d")),
            "GET /a?b=c HTTP/1.1\r\nhost: server:9000\r\n\r\n"
        );
    }

    #[test]
    fn headers_keep_their_order_and_a_body_its_length() {
        let post = Target {
            method: "POST".into(),
            headers: vec![("b".into(), "1".into()), ("Host".into(), "other".into())],
            body: "hello".into(),
            ..target("http://server")
        };
        assert_eq!(
            text(&post),
            "POST / HTTP/1.1\r\nb: 1\r\nHost: other\r\ncontent-length: 5\r\n\r\nhello"
        );
    }

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port) in [
            ("http://a", "a", 80),
            ("http://a?q", "a", 80),
            ("http://127.0.0.1:8080/", "127.0.0.1", 8080),
            ("http://[::1]:9000/x", "::1", 9000),
            ("http://[::1]", "::1", 80),
        ] {
            let request = Request::new(&target(url)).unwrap();
            assert_eq!((request.host.as_str(), request.port), (host, port), "{url}");
        }
    }

    #[test]
    fn urls_that_cannot_be_requested_are_refused() {
        for url in [
            "a:80",
            "https://a",
            "http://",
            "http://:80",
            "http://a:b",
            "http://a:99999",
            "http://u@a",
            "http://[::1",
            "http://[::1]80",
            "http://a/b c",
            "http://a/\r\nx: y",
        ] {
            assert!(matches!(Request::new(&target(url)), Err(LoadError::BadUrl { .. })), "{url}");
        }
    }

    #[test]
    fn what_would_break_the_framing_is_refused() {
        for (name, value) in [
            ("content-length", "3"),
            ("Transfer-Encoding", "chunked"),
            ("a b", "c"),
            ("a", "b\r\nc: d"),
        ] {
            let mut target = target("http://a");
            target.headers.push((name.into(), value.into()));
            assert!(matches!(Request::new(&target), Err(LoadError::BadHeader { .. })), "{name}");
        }
        let method = Target { method: "GET /".into(), ..target("http://a") };
        assert!(matches!(Request::new(&method), Err(LoadError::BadMethod { .. })));
    }
}
