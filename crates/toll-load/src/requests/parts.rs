//! Turns a [`Target`] into the parts of its request, checked and with their placeholders found. Knows of no
//! version of HTTP.

use crate::{LoadError, Target};

use super::rows::{Columns, Place, ends_a_header};
use super::template::Template;
use super::url::Url;

/// What a request is made of, whatever form it takes on the wire.
#[derive(Debug)]
pub(super) struct Parts {
    pub method: String,
    pub url: Url,
    /// Path and query.
    pub path: Template,
    /// In order; none of them frames the body.
    pub headers: Vec<(String, Template)>,
    pub body: Template,
}

impl Parts {
    /// Checks a target and finds its placeholders.
    ///
    /// # Errors
    /// When the URL, the method, a header or a placeholder cannot be sent.
    pub fn new(target: &Target, columns: &mut Columns) -> Result<Parts, LoadError> {
        check_method(&target.method)?;
        target.headers.iter().try_for_each(|(name, value)| check_header(name, value))?;
        if target.template { Parts::with_gaps(target, columns) } else { Parts::as_written(target) }
    }

    fn as_written(target: &Target) -> Result<Parts, LoadError> {
        let url = Url::parse(&target.url)?;
        let header = |(name, value): &(String, String)| (name.clone(), Template::literal(&**value));
        Ok(Parts {
            method: target.method.clone(),
            path: Template::literal(&*url.path),
            headers: target.headers.iter().map(header).collect(),
            body: Template::literal(&*target.body.0),
            url,
        })
    }

    fn with_gaps(target: &Target, columns: &mut Columns) -> Result<Parts, LoadError> {
        let url = Url::parse_template(&target.url)?;
        let body = str::from_utf8(&target.body.0).map_err(|_| LoadError::BinaryTemplate)?;
        let mut header = |(name, value): &(String, String)| {
            Ok((name.clone(), Template::parse(value, Place::Header, columns)?))
        };
        let headers = target.headers.iter().map(&mut header).collect::<Result<_, LoadError>>()?;
        Ok(Parts {
            method: target.method.clone(),
            path: Template::parse(&url.path, Place::Path, columns)?,
            headers,
            body: Template::parse(body, Place::Body, columns)?,
            url,
        })
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&Template> {
        let is_it = |(given, _): &&(String, Template)| given.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|(_, value)| value)
    }

    /// The length of the body, when it must be said.
    pub fn content_length(&self) -> Option<Template> {
        match self.body.constant() {
            Some([]) if !expects_body(&self.method) => None,
            Some(body) => Some(Template::literal(body.len().to_string())),
            None => Some(Template::body_bytes()),
        }
    }
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
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        return refuse("its name has a character that is not allowed");
    }
    if value.bytes().any(ends_a_header) {
        return refuse("its value has a line break");
    }
    Ok(())
}

/// What the name of a header may be made of (RFC 9110, 5.6.2).
fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
