//! Asks a component over its Unix socket, Envoy's admin interface, nginx or the collector: one request without a body a
//! connection. The load engine has its own, fast client. Framing as in RFC 9112, section 6.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time limit of each read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the answer is not HTTP: {0}")]
    Malformed(&'static str),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The first value of a header; `name` in lower case.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Sends a request and reads its whole answer.
///
/// # Errors
/// When nobody listens, the stream fails, ends early or is silent for 5 s, or the answer is not HTTP/1.
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Result<Answer, HttpError> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")?;
    read_answer(&mut BufReader::new(stream))
}

fn read_answer(stream: &mut impl BufRead) -> Result<Answer, HttpError> {
    let status = status_code(&read_line(stream)?)?;
    let mut answer = Answer { status, headers: read_headers(stream)?, body: Vec::new() };
    answer.body = read_body(stream, &answer)?;
    Ok(answer)
}

fn status_code(line: &str) -> Result<u16, HttpError> {
    let rest = line.strip_prefix("HTTP/1.").ok_or(HttpError::Malformed("no status line"))?;
    let code = rest.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.ok_or(HttpError::Malformed("no status code"))
}

fn read_headers(stream: &mut impl BufRead) -> Result<Vec<(String, String)>, HttpError> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or(HttpError::Malformed("a bad header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_body(stream: &mut impl BufRead, answer: &Answer) -> Result<Vec<u8>, HttpError> {
    if answer.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        return read_chunks(stream);
    }
    let mut body = Vec::new();
    match answer.header("content-length") {
        Some(length) => {
            let length = length.parse().map_err(|_| HttpError::Malformed("a bad length"))?;
            read_exactly(stream, length, &mut body)?;
        }
        None => {
            stream.read_to_end(&mut body)?;
        }
    }
    Ok(body)
}

fn read_chunks(stream: &mut impl BufRead) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16)
            .map_err(|_| HttpError::Malformed("a bad chunk size"))?;
        if size == 0 {
            return Ok(body);
        }
        read_exactly(stream, size, &mut body)?;
        read_line(stream)?;
    }
}

/// Appends `length` bytes; what a peer claims is not allocated before it has come.
fn read_exactly(stream: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    let got = stream.take(length).read_to_end(body)?;
    if got as u64 == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A line without its end. An end of the stream where a line should be is an error.
fn read_line(stream: &mut impl BufRead) -> Result<String, HttpError> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Answer, HttpError> {
        read_answer(&mut text.as_bytes())
    }

    #[test]
    fn chunks_are_joined() {
        let answer = read(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
        assert_eq!(answer.unwrap().body, b"abcde");
    }

    #[test]
    fn a_stated_length_ends_the_body_though_the_stream_stays_open() {
        let answer = read("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nokNEXT").unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (503, b"ok".as_slice()));
    }

    #[test]
    fn without_a_length_the_body_ends_with_the_stream() {
        assert_eq!(read("HTTP/1.0 200 OK\r\n\r\nLIVE\n").unwrap().body, b"LIVE\n");
    }

    #[test]
    fn a_body_that_ends_early_is_an_error() {
        let error = read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").unwrap_err();
        assert!(matches!(error, HttpError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn an_answer_that_is_not_http_is_called_malformed() {
        assert!(matches!(read("SSH-2.0-x\r\n").unwrap_err(), HttpError::Malformed(_)));
    }
}
