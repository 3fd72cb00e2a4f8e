//! Turns the parts of a request into the head of an HTTP/1.1 message (RFC 9112, 3 and 5).

use crate::Reuse;

use super::parts::Parts;
use super::template::Template;

/// Request line, headers and the empty line.
pub(super) fn head(parts: &Parts, reuse: Reuse) -> Template {
    let mut head = Template::literal(format!("{} ", parts.method));
    head.append(&parts.path);
    head.push(" HTTP/1.1\r\n");
    if parts.header("host").is_none() {
        line(&mut head, "host", &Template::literal(&*parts.url.authority));
    }
    parts.headers.iter().for_each(|(name, value)| line(&mut head, name, value));
    if reuse == Reuse::PerRequest && parts.header("connection").is_none() {
        line(&mut head, "connection", &Template::literal("close"));
    }
    if let Some(length) = parts.content_length() {
        line(&mut head, "content-length", &length);
    }
    head.push("\r\n");
    head
}

fn line(head: &mut Template, name: &str, value: &Template) {
    head.push(format!("{name}: "));
    head.append(value);
    head.push("\r\n");
}
