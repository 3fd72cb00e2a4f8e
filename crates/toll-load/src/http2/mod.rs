//! The client's side of one HTTP/2 connection (RFC 9113): requests to bytes, bytes to what came of them.
//!
//! Knows no sockets and no clock, keeps nothing of an answer but its status and its length, and allocates
//! nothing per request once its buffers have grown. A frame that comes whole, the usual case, is read where it
//! lies; bodies are counted, never copied. Push is refused; priorities are ignored (section 5.3).

mod frame;
pub(crate) mod hpack;
mod lane;
mod owed;

use frame::{Code, Header, flag, kind, setting};
use lane::Lane;
use owed::Owed;

use crate::ErrorKind;
use crate::http::Answer;

/// A header block longer than this is refused, bytes.
const MAX_BLOCK: usize = 32 * 1024;
/// What we let a peer send on one stream before it waits for us: more than any path holds.
const STREAM_WINDOW: u32 = 16 << 20;
/// The same for the connection, so that it never limits the streams.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// The highest identifier of a stream.
const LAST_STREAM: u32 = (1 << 31) - 1;
/// Streams at a time as long as the peer has not said how many: the first request waits for nothing, and none is
/// refused by a peer that allows few (section 6.5.2 asks it for 100, and does not oblige it).
const CAUTIOUS_STREAMS: u32 = 1;

/// What came of the request on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The lane, free again.
    pub lane: u32,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, ErrorKind>,
    /// False when the peer says that it has done nothing about the request: it may be sent again, whatever its
    /// method (RFC 9113 section 8.7).
    pub processed: bool,
}

/// A connection with a fixed number of lanes, each carrying a request at a time.
#[derive(Debug)]
pub(crate) struct Http2 {
    is_grpc: bool,
    lanes: Vec<Lane>,
    /// Where to look first for a stream: right unless the stream was overtaken by as many as there are places.
    places: Vec<u32>,
    open: u32,
    /// Lanes with a body that waits for windows.
    waiting: u32,
    /// Lane whose body is sent first when the windows open.
    turn: usize,
    next_stream: u32,
    is_closing: bool,
    peer: Peer,
    /// Bytes received since the last update of our window for the connection.
    received: u32,
    /// A frame of which only the front has come.
    partial: Vec<u8>,
    /// The DATA frame whose payload is passing.
    passing: Passing,
    /// The front of a header block that comes in several frames.
    block: Vec<u8>,
    unfinished: Option<Block>,
    owed: Owed,
}

/// What the peer allows.
#[derive(Debug, Clone, Copy)]
struct Peer {
    /// Whether its first frame, SETTINGS, has come.
    has_greeted: bool,
    max_streams: u32,
    max_frame: usize,
    initial_window: i64,
    /// Bytes of body that it takes on the connection.
    window: i64,
}

impl Peer {
    /// Writes as much of a body as both windows let through; gives the bytes written.
    fn write_body(&mut self, stream: u32, window: i64, body: &[u8], out: &mut Vec<u8>) -> usize {
        let allowed = self.window.min(window).max(0) as usize;
        let sent = body.len().min(allowed);
        frame::write_data(stream, &body[..sent], sent == body.len(), self.max_frame, out);
        self.window -= sent as i64;
        sent
    }
}

/// The rest of a DATA frame.
#[derive(Debug, Clone, Copy, Default)]
struct Passing {
    left: usize,
    stream: u32,
    is_last: bool,
}

/// A header block to be continued.
#[derive(Debug, Clone, Copy)]
struct Block {
    stream: u32,
    is_last: bool,
}

/// Where the effects of received bytes go.
struct Sink<'a> {
    now_ns: u64,
    out: &'a mut Vec<u8>,
    completions: &'a mut Vec<Completion>,
}

type Checked = Result<(), ErrorKind>;

/// Breaks the connection unless the peer keeps to the protocol.
fn require(holds: bool) -> Checked {
    if holds { Ok(()) } else { Err(ErrorKind::Garbage) }
}

/// Requests.
impl Http2 {
    /// A connection for this many requests at a time; with `is_grpc`, each answer must have a gRPC status.
    pub fn new(lanes: u32, is_grpc: bool) -> Http2 {
        Http2 {
            is_grpc,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            places: vec![0; (4 * lanes as usize).next_power_of_two()],
            open: 0,
            waiting: 0,
            turn: 0,
            next_stream: 1,
            is_closing: false,
            peer: Peer {
                has_greeted: false,
                max_streams: CAUTIOUS_STREAMS,
                max_frame: frame::DEFAULT_MAX_FRAME,
                initial_window: frame::DEFAULT_WINDOW,
                window: frame::DEFAULT_WINDOW,
            },
            received: 0,
            partial: Vec::new(),
            passing: Passing::default(),
            block: Vec::new(),
            unfinished: None,
            owed: Owed::default(),
        }
    }

    /// Writes what a client begins with. The peer's answer need not be waited for (section 3.4).
    pub fn preface(&self, out: &mut Vec<u8>) {
        // Without push a peer may open no stream, so that a limit of its streams would say nothing.
        const SETTINGS: &[(u16, u32)] = &[
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
        ];
        out.extend_from_slice(frame::MAGIC);
        frame::write_settings(SETTINGS, out);
        let increment = CONNECTION_WINDOW - frame::DEFAULT_WINDOW as u32;
        frame::write_window_update(0, increment, out);
    }

    /// Begins a request on a free lane, its header block as [`hpack::encode_header`] writes it. What the
    /// windows do not let through of the body is kept and sent later. False when nothing was begun because
    /// the connection may not carry another request, now or ever.
    pub fn start(
        &mut self,
        lane: u32,
        block: &[u8],
        body: &[u8],
        is_head: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.can_start() {
            return false;
        }
        let at = lane as usize;
        debug_assert_eq!(self.lanes[at].stream, 0, "a request is begun on a free lane");
        let stream = self.next_stream;
        self.next_stream += 2;
        self.open += 1;
        let place = self.place(stream);
        self.places[place] = lane;
        self.write_block(stream, block, body.is_empty(), out);
        let window = self.peer.initial_window;
        self.lanes[at].begin(stream, is_head, window);
        if !body.is_empty() {
            let sent = self.peer.write_body(stream, window, body, out);
            self.lanes[at].keep(body, sent);
            self.waiting += u32::from(sent < body.len());
        }
        true
    }

    /// Whether a free lane may begin a request now.
    pub fn can_start(&self) -> bool {
        !self.is_closing() && self.open < self.peer.max_streams
    }

    /// Whether no request can be begun ever again.
    pub fn is_closing(&self) -> bool {
        self.is_closing || self.next_stream > LAST_STREAM
    }

    /// How many lanes carry a request.
    pub fn open_lanes(&self) -> u32 {
        self.open
    }

    /// Gives up a request. Its lane is free at once; what still comes for it is ignored.
    pub fn cancel(&mut self, lane: u32, out: &mut Vec<u8>) {
        let stream = self.lanes[lane as usize].stream;
        if stream != 0 {
            frame::write_reset(stream, Code::Cancel, out);
            self.free(lane as usize);
        }
    }

    /// The socket took so many of the bytes written here, and has left so many.
    pub fn wrote(&mut self, taken: usize, left: usize) {
        self.owed.wrote(taken, left);
    }

    /// The connection is given up, or has ended, for instance after [`Http2::feed`] failed: every open request has failed.
    pub fn fail_open_lanes(&mut self, kind: ErrorKind, completions: &mut Vec<Completion>) {
        self.is_closing = true;
        self.fail_above(0, kind, true, completions);
    }

    fn write_block(&self, stream: u32, block: &[u8], is_last: bool, out: &mut Vec<u8>) {
        if stream != 1 {
            return frame::write_block(stream, block, is_last, self.peer.max_frame, out);
        }
        // Our first block empties our dynamic table for good: later settings of its size change nothing then.
        let first = [&[hpack::TABLE_SIZE_ZERO], block].concat();
        frame::write_block(stream, &first, is_last, self.peer.max_frame, out);
    }

    /// Sends on what waits, lane by lane from the one whose turn it is, so that none is starved.
    fn send_waiting(&mut self, out: &mut Vec<u8>) {
        let lanes = self.lanes.len();
        let first = self.turn;
        for at in (first..lanes).chain(0..first) {
            if self.peer.window <= 0 {
                self.turn = at;
                return;
            }
            if self.lanes[at].is_waiting() {
                self.send_on(at, out);
            }
        }
    }

    fn send_on(&mut self, at: usize, out: &mut Vec<u8>) {
        let lane = &mut self.lanes[at];
        let sent = self.peer.write_body(lane.stream, lane.window, lane.unsent(), out);
        lane.advance(sent);
        self.waiting -= u32::from(!lane.is_waiting());
    }

    fn free(&mut self, at: usize) {
        self.waiting -= u32::from(self.lanes[at].is_waiting());
        self.lanes[at].release();
        self.open -= 1;
    }

    fn fail_above(
        &mut self,
        last: u32,
        error: ErrorKind,
        processed: bool,
        completions: &mut Vec<Completion>,
    ) {
        for at in 0..self.lanes.len() {
            if self.lanes[at].stream > last {
                self.free(at);
                completions.push(Completion { lane: at as u32, outcome: Err(error), processed });
            }
        }
    }

    fn place(&self, stream: u32) -> usize {
        (stream / 2) as usize & (self.places.len() - 1)
    }

    /// The lane of a stream; `None` when it carries it no more.
    ///
    /// # Errors
    /// When there has never been such a stream: only we open any.
    fn find(&self, stream: u32) -> Result<Option<usize>, ErrorKind> {
        require(stream % 2 == 1 && stream < self.next_stream)?;
        let likely = self.places[self.place(stream)] as usize;
        if self.lanes.get(likely).is_some_and(|lane| lane.stream == stream) {
            return Ok(Some(likely));
        }
        Ok(self.lanes.iter().position(|lane| lane.stream == stream))
    }
}

/// Bytes received.
impl Http2 {
    /// Takes what has come, in pieces of any length; writes what the protocol asks for in return.
    ///
    /// # Errors
    /// When the peer breaks the protocol or a limit, or does not read what it asks for: the connection is of no
    /// use any more, nor are its lanes.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        out: &mut Vec<u8>,
        completions: &mut Vec<Completion>,
    ) -> Checked {
        let before = out.len();
        let mut sink = Sink { now_ns, out, completions };
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = if self.passing.left > 0 {
                self.pass(rest, &mut sink)
            } else if self.partial.is_empty() {
                self.take_whole(rest, &mut sink)?
            } else {
                self.take_rest(rest, &mut sink)?
            };
        }
        self.owed.add(out.len() - before)?;
        if self.waiting > 0 {
            self.send_waiting(out);
        }
        Ok(())
    }

    /// Takes the frame at the front where it lies; keeps it when it is not whole.
    fn take_whole<'a>(&mut self, bytes: &'a [u8], sink: &mut Sink) -> Result<&'a [u8], ErrorKind> {
        let needed = self.needed(bytes)?;
        let Some((frame, rest)) = bytes.split_at_checked(needed) else {
            self.partial.extend_from_slice(bytes);
            return Ok(&[]);
        };
        self.take_frame(frame, sink)?;
        Ok(rest)
    }

    /// Adds to a frame of which the front was kept; takes it when it is whole.
    fn take_rest<'a>(&mut self, bytes: &'a [u8], sink: &mut Sink) -> Result<&'a [u8], ErrorKind> {
        let missing = self.needed(&self.partial)? - self.partial.len();
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(piece);
        if self.needed(&self.partial)? == self.partial.len() {
            let mut frame = std::mem::take(&mut self.partial);
            self.take_frame(&frame, sink)?;
            frame.clear();
            self.partial = frame;
        }
        Ok(rest)
    }

    /// How many bytes must be there for the next step: a frame, or of a DATA frame all but its content.
    fn needed(&self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        let Some(header) = Header::read(bytes) else {
            return Ok(frame::HEADER);
        };
        // Section 3.4. Also what tells a peer that speaks something else.
        let is_greeting = header.kind == kind::SETTINGS && !header.has(flag::ACK);
        require(self.peer.has_greeted || is_greeting)?;
        if header.length > frame::DEFAULT_MAX_FRAME {
            return Err(ErrorKind::Oversize);
        }
        let payload = match header.kind {
            kind::DATA => usize::from(header.has(flag::PADDED) && header.length > 0),
            _ => header.length,
        };
        Ok(frame::HEADER + payload)
    }

    fn take_frame(&mut self, bytes: &[u8], sink: &mut Sink) -> Checked {
        let (header, payload) = bytes.split_at(frame::HEADER);
        let header = Header::read(header).expect("a frame has a header");
        if let Some(block) = self.unfinished {
            // Section 4.3: nothing comes between the frames of a header block.
            require(header.kind == kind::CONTINUATION && header.stream == block.stream)?;
        }
        match header.kind {
            kind::DATA => self.take_data(&header, payload, sink),
            kind::HEADERS => self.take_headers(&header, payload, sink),
            kind::CONTINUATION => self.take_continuation(&header, payload, sink),
            kind::RST_STREAM => self.take_reset(&header, payload, sink),
            kind::SETTINGS => self.take_settings(&header, payload, sink),
            kind::PING => take_ping(&header, payload, sink),
            kind::GOAWAY => self.take_goaway(&header, payload, sink),
            kind::WINDOW_UPDATE => self.take_window_update(&header, payload, sink),
            kind::PUSH_PROMISE => Err(ErrorKind::Garbage),
            kind::PRIORITY => require(header.stream != 0 && payload.len() == 5),
            // Section 5.5: unknown frames are ignored.
            _ => Ok(()),
        }
    }

    /// Counts a DATA frame as soon as it begins; its content then passes.
    fn take_data(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        let lane = self.find(header.stream)?;
        let padding = match payload.first() {
            Some(pad) => 1 + usize::from(*pad),
            None => 0,
        };
        require(!header.has(flag::PADDED) || header.length > 0)?;
        require(padding <= header.length)?;
        let is_last = header.has(flag::END_STREAM);
        give_back(0, &mut self.received, header.length, CONNECTION_WINDOW, sink.out);
        if let Some(at) = lane {
            let lane = &mut self.lanes[at];
            match lane.take_body(header.length - padding) {
                Err(error) => self.fail(at, error, Code::Cancel, sink),
                Ok(()) if is_last => {}
                Ok(()) => {
                    let length = header.length;
                    give_back(header.stream, &mut lane.received, length, STREAM_WINDOW, sink.out);
                }
            }
        }
        let left = header.length - payload.len();
        self.passing = Passing { left, stream: header.stream, is_last };
        if left == 0 {
            self.end_of_data(sink);
        }
        Ok(())
    }

    fn pass<'a>(&mut self, bytes: &'a [u8], sink: &mut Sink) -> &'a [u8] {
        let passed = bytes.len().min(self.passing.left);
        self.passing.left -= passed;
        if self.passing.left == 0 {
            self.end_of_data(sink);
        }
        &bytes[passed..]
    }

    fn end_of_data(&mut self, sink: &mut Sink) {
        if self.passing.is_last
            && let Ok(Some(at)) = self.find(self.passing.stream)
        {
            self.finish(at, sink);
        }
    }

    fn take_headers(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        if let Some(at) = self.find(header.stream)? {
            self.lanes[at].stamp(sink.now_ns);
        }
        let fragment = fragment(header, payload)?;
        let block = Block { stream: header.stream, is_last: header.has(flag::END_STREAM) };
        if header.has(flag::END_HEADERS) {
            return self.take_block(block, fragment, sink);
        }
        self.block.clear();
        self.unfinished = Some(block);
        self.extend_block(fragment)
    }

    fn take_continuation(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        let block = self.unfinished.ok_or(ErrorKind::Garbage)?;
        self.extend_block(payload)?;
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        self.unfinished = None;
        let bytes = std::mem::take(&mut self.block);
        let taken = self.take_block(block, &bytes, sink);
        self.block = bytes;
        taken
    }

    fn extend_block(&mut self, fragment: &[u8]) -> Checked {
        self.block.extend_from_slice(fragment);
        if self.block.len() > MAX_BLOCK { Err(ErrorKind::Oversize) } else { Ok(()) }
    }

    fn take_block(&mut self, block: Block, bytes: &[u8], sink: &mut Sink) -> Checked {
        let fields = hpack::decode(bytes).map_err(|_| ErrorKind::Garbage)?;
        let Some(at) = self.find(block.stream)? else {
            return Ok(());
        };
        match self.lanes[at].take_fields(&fields, block.is_last) {
            Err(error) => self.fail(at, error, Code::ProtocolError, sink),
            Ok(()) if block.is_last => self.finish(at, sink),
            Ok(()) => {}
        }
        Ok(())
    }

    fn take_reset(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        let code: [u8; 4] = payload.try_into().map_err(|_| ErrorKind::Garbage)?;
        if let Some(at) = self.find(header.stream)? {
            let processed = u32::from_be_bytes(code) != Code::RefusedStream as u32;
            self.complete(at, Err(ErrorKind::Reset), processed, sink);
        }
        Ok(())
    }

    fn take_settings(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        require(header.stream == 0)?;
        if header.has(flag::ACK) {
            return require(payload.is_empty());
        }
        require(payload.len().is_multiple_of(6))?;
        if !self.peer.has_greeted {
            self.peer.has_greeted = true;
            self.peer.max_streams = u32::MAX;
        }
        for (id, value) in frame::settings(payload) {
            self.take_setting(id, value)?;
        }
        frame::write_settings_ack(sink.out);
        Ok(())
    }

    fn take_setting(&mut self, id: u16, value: u32) -> Checked {
        match id {
            setting::ENABLE_PUSH => require(value == 0),
            setting::MAX_CONCURRENT_STREAMS => {
                self.peer.max_streams = value;
                Ok(())
            }
            setting::INITIAL_WINDOW_SIZE => self.take_initial_window(i64::from(value)),
            setting::MAX_FRAME_SIZE => {
                self.peer.max_frame = value as usize;
                let allowed = frame::DEFAULT_MAX_FRAME..=frame::LARGEST_FRAME;
                require(allowed.contains(&self.peer.max_frame))
            }
            _ => Ok(()),
        }
    }

    /// Section 6.9.2: the change applies to the streams that are open, whose windows may fall below zero.
    fn take_initial_window(&mut self, window: i64) -> Checked {
        let change = window - self.peer.initial_window;
        self.peer.initial_window = window;
        require(window <= frame::LARGEST_WINDOW)?;
        self.lanes.iter_mut().filter(|lane| lane.stream != 0).try_for_each(|lane| {
            lane.window += change;
            require(lane.window <= frame::LARGEST_WINDOW)
        })
    }

    fn take_goaway(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        let last = payload.first_chunk::<4>().filter(|_| payload.len() >= 8);
        let last = frame::u31(*last.ok_or(ErrorKind::Garbage)?);
        require(header.stream == 0)?;
        self.is_closing = true;
        self.fail_above(last, ErrorKind::Closed, false, sink.completions);
        Ok(())
    }

    fn take_window_update(&mut self, header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
        let bytes: [u8; 4] = payload.try_into().map_err(|_| ErrorKind::Garbage)?;
        let increment = i64::from(frame::u31(bytes));
        if header.stream == 0 {
            self.peer.window += increment;
            return require(increment > 0 && self.peer.window <= frame::LARGEST_WINDOW);
        }
        if let Some(at) = self.find(header.stream)? {
            let lane = &mut self.lanes[at];
            lane.window += increment;
            if increment == 0 || lane.window > frame::LARGEST_WINDOW {
                self.fail(at, ErrorKind::Garbage, Code::FlowControlError, sink);
            }
        }
        Ok(())
    }

    /// The peer has said all of its answer.
    fn finish(&mut self, at: usize, sink: &mut Sink) {
        let lane = &self.lanes[at];
        if lane.is_waiting() {
            // An answer before the request was all sent (section 8.1): nobody wants the rest.
            frame::write_reset(lane.stream, Code::Cancel, sink.out);
        }
        let outcome = lane.answer(self.is_grpc, !self.is_closing());
        self.complete(at, outcome, true, sink);
    }

    /// Resets a stream and fails its request.
    fn fail(&mut self, at: usize, error: ErrorKind, code: Code, sink: &mut Sink) {
        frame::write_reset(self.lanes[at].stream, code, sink.out);
        self.complete(at, Err(error), true, sink);
    }

    fn complete(
        &mut self,
        at: usize,
        outcome: Result<Answer, ErrorKind>,
        processed: bool,
        sink: &mut Sink,
    ) {
        self.free(at);
        sink.completions.push(Completion { lane: at as u32, outcome, processed });
    }
}

fn take_ping(header: &Header, payload: &[u8], sink: &mut Sink) -> Checked {
    require(header.stream == 0 && payload.len() == 8)?;
    if !header.has(flag::ACK) {
        frame::write_ping_ack(payload, sink.out);
    }
    Ok(())
}

/// The part of a HEADERS payload that is fields (section 6.2).
fn fragment<'a>(header: &Header, payload: &'a [u8]) -> Result<&'a [u8], ErrorKind> {
    let mut fragment = payload;
    if header.has(flag::PADDED) {
        let (padding, rest) = fragment.split_first().ok_or(ErrorKind::Garbage)?;
        let length = rest.len().checked_sub(usize::from(*padding)).ok_or(ErrorKind::Garbage)?;
        fragment = &rest[..length];
    }
    if header.has(flag::PRIORITY) {
        fragment = fragment.get(5..).ok_or(ErrorKind::Garbage)?;
    }
    Ok(fragment)
}

/// Counts received bytes; opens our window again when half of it is used.
fn give_back(stream: u32, received: &mut u32, length: usize, window: u32, out: &mut Vec<u8>) {
    *received += length as u32;
    if *received > window / 2 {
        frame::write_window_update(stream, *received, out);
        *received = 0;
    }
}

#[cfg(test)]
mod tests;
