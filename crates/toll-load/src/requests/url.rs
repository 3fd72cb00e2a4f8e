//! Takes the URL of a target apart (RFC 3986, as far as HTTP needs it). Resolves no names.

use std::net::Ipv6Addr;

use crate::LoadError;

/// What a connection speaks before HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// Nothing.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn parse(text: &str) -> Option<Scheme> {
        [Scheme::Http, Scheme::Https].into_iter().find(|s| text.eq_ignore_ascii_case(s.as_str()))
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The parts of a URL that a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub scheme: Scheme,
    /// Name or address, an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Host and port as written.
    pub authority: String,
    /// Path and query, beginning with a slash.
    pub path: String,
}

impl Url {
    /// The parts of `url`; what follows a `#` is dropped, because it is not sent.
    ///
    /// # Errors
    /// When no request can be sent to it.
    pub fn parse(url: &str) -> Result<Url, LoadError> {
        Url::take_apart(url, is_sendable)
            .map_err(|problem| LoadError::BadUrl { url: url.into(), problem })
    }

    /// The same, with placeholders in path and query, which may hold any character.
    ///
    /// # Errors
    /// When no request can be sent to it, whatever its placeholders become.
    pub fn parse_template(url: &str) -> Result<Url, LoadError> {
        Url::take_apart(url, |path| outside_placeholders(path).all(is_sendable))
            .map_err(|problem| LoadError::BadUrl { url: url.into(), problem })
    }

    fn take_apart(url: &str, is_path: impl Fn(&str) -> bool) -> Result<Url, &'static str> {
        const NEITHER: &str = "it begins with neither http:// nor https://";
        let (scheme, rest) = url.split_once("://").ok_or(NEITHER)?;
        let scheme = Scheme::parse(scheme).ok_or(NEITHER)?;
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = split_authority(authority)?;
        if !is_path(path) {
            return Err("it has a blank or a character that must be percent-encoded");
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url {
            scheme,
            host: host.into(),
            port: port.unwrap_or(scheme.default_port()),
            authority: authority.into(),
            path: format!("{slash}{path}"),
        })
    }
}

fn is_sendable(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic())
}

fn outside_placeholders(text: &str) -> impl Iterator<Item = &str> {
    let (first, rest) = text.split_once("{{").unwrap_or((text, ""));
    let after = |part: &str| part.find("}}").map(|end| end + 2);
    let others = rest.split("{{").map(move |part| after(part).map_or("", |at| &part[at..]));
    std::iter::once(first).chain(others)
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    if authority.contains('@') {
        return Err("it has a user name, which is not sent; use an authorization header");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => split_bracket(v6)?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    if !host.bytes().all(is_host_byte) {
        return Err("its host has a character that is not allowed");
    }
    Ok((host, split_port(port)?))
}

fn split_bracket(v6: &str) -> Result<(&str, &str), &'static str> {
    let (host, port) = v6.split_once(']').ok_or("its bracket is not closed")?;
    match host.parse::<Ipv6Addr>() {
        Ok(_) => Ok((host, port)),
        Err(_) => Err("there is no IPv6 address in its brackets"),
    }
}

fn split_port(text: &str) -> Result<Option<u16>, &'static str> {
    const BAD: &str = "its port is not a number from 1 to 65535";
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_prefix(':').ok_or(BAD)?;
    if digits.contains(':') {
        return Err("an IPv6 address must stand in brackets");
    }
    // `parse` alone would take a plus sign.
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    let port = digits.parse().ok().filter(|port| is_number && *port > 0);
    port.map(Some).ok_or(BAD)
}

/// What a name or an address may be made of (RFC 3986, 3.2.2), and `_`, which names in clusters have.
fn is_host_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, scheme, host, port, authority, path) in [
            ("http://a", Scheme::Http, "a", 80, "a", "/"),
            ("https://a", Scheme::Https, "a", 443, "a", "/"),
            ("HTTPS://a:80", Scheme::Https, "a", 80, "a:80", "/"),
            ("http://a?q", Scheme::Http, "a", 80, "a", "/?q"),
            ("http://a#f", Scheme::Http, "a", 80, "a", "/"),
            (
                "http://my_svc.ns:9/a/b?c=d#e",
                Scheme::Http,
                "my_svc.ns",
                9,
                "my_svc.ns:9",
                "/a/b?c=d",
            ),
            ("http://127.0.0.1:8080/", Scheme::Http, "127.0.0.1", 8080, "127.0.0.1:8080", "/"),
            ("http://[::1]:9000/x", Scheme::Http, "::1", 9000, "[::1]:9000", "/x"),
            ("https://[::1]", Scheme::Https, "::1", 443, "[::1]", "/"),
        ] {
            let (host, authority, path) = (host.into(), authority.into(), path.into());
            assert_eq!(
                Url::parse(url).unwrap(),
                Url { scheme, host, port, authority, path },
                "{url}"
            );
        }
    }

    #[test]
    fn urls_that_cannot_be_requested_are_refused_for_what_is_wrong_with_them() {
        for (url, problem) in [
            ("a:80", "it begins with neither http:// nor https://"),
            ("ftp://a", "it begins with neither http:// nor https://"),
            ("http://", "it has no host"),
            ("http://:80", "it has no host"),
            ("http://a:b", "its port is not a number from 1 to 65535"),
            ("http://a:", "its port is not a number from 1 to 65535"),
            ("http://a:0", "its port is not a number from 1 to 65535"),
            ("http://a:+80", "its port is not a number from 1 to 65535"),
            ("http://a:99999", "its port is not a number from 1 to 65535"),
            ("http://u@a", "it has a user name, which is not sent; use an authorization header"),
            ("http://fe80::1:80", "an IPv6 address must stand in brackets"),
            ("http://[::1", "its bracket is not closed"),
            ("http://[a]", "there is no IPv6 address in its brackets"),
            ("http://[::1]80", "its port is not a number from 1 to 65535"),
            ("http://a b/", "its host has a character that is not allowed"),
            ("http://{{csv.host}}/", "its host has a character that is not allowed"),
            ("http://a/b c", "it has a blank or a character that must be percent-encoded"),
            ("http://a/\u{e9}", "it has a blank or a character that must be percent-encoded"),
            ("http://a/\r\nx: y", "it has a blank or a character that must be percent-encoded"),
        ] {
            match Url::parse(url) {
                Err(LoadError::BadUrl { problem: found, .. }) => {
                    assert_eq!(found, problem, "{url}")
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_blank_may_stand_in_a_placeholder_and_nowhere_else() {
        let url = "http://a/{{csv.first name}}/b?{{ counter }}";
        assert_eq!(Url::parse_template(url).unwrap().path, url["http://a".len()..]);
        assert!(Url::parse(url).is_err());
        assert!(Url::parse_template("http://a/{{counter}}/b c").is_err());
        assert!(Url::parse_template("http://a/b c/{{counter}}").is_err());
    }
}
