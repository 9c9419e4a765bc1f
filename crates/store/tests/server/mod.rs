//! A web server on loopback that can be told to fail in the ways in which servers fail. It keeps what is put.
#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, with this further header line (or none).
    Status(u16, &'static str),
    /// The connection is reset before the request is read.
    Reset,
    /// The body ends after so many bytes.
    Truncate(usize),
    /// Nothing comes for so long.
    Slow(Duration),
    /// All but a range: 200 and the whole body.
    IgnoreRange,
    /// As `IgnoreRange`, without saying how long the body is.
    IgnoreRangeUnsized,
    /// A range of other bytes than were asked for.
    WrongRange,
    /// A redirect to this path.
    Redirect(&'static str),
    /// The connection ends when half of what is sent has come.
    Half,
    /// It is done, and the connection ends without an answer.
    Lost,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn range(&self) -> Option<(u64, u64)> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }
}

/// An answer made by a test: status, header lines, body.
pub type Answer = (u16, Vec<String>, Vec<u8>);
type Handler = Box<dyn Fn(&Request) -> Option<Answer> + Send + Sync>;

/// Its bytes and its tag.
type Object = (Vec<u8>, Option<String>);

#[derive(Default)]
struct State {
    objects: Mutex<HashMap<String, Object>>,
    faults: Mutex<VecDeque<Fault>>,
    always: Mutex<Option<Fault>>,
    log: Mutex<Vec<Request>>,
    delay: Mutex<Duration>,
    handler: Mutex<Option<Handler>>,
    busy: AtomicUsize,
    most_busy: AtomicUsize,
    connections: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
    stops: AtomicBool,
}

pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stops.load(SeqCst) {
                    return;
                }
                let stream = stream.unwrap();
                let (kept, state) = (stream.try_clone().unwrap(), Arc::clone(&shared));
                let thread = std::thread::spawn(move || serve(stream, &state));
                shared.connections.lock().unwrap().push((kept, thread));
            }
        });
        Self { address, state, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn put(&self, path: &str, bytes: Vec<u8>, etag: Option<&str>) {
        let object = (bytes, etag.map(|tag| format!("\"{tag}\"")));
        self.state.objects.lock().unwrap().insert(path.into(), object);
    }

    /// What is at a path.
    pub fn kept(&self, path: &str) -> Option<Vec<u8>> {
        self.state.objects.lock().unwrap().get(path).map(|(bytes, _)| bytes.clone())
    }

    pub fn remove(&self, path: &str) {
        self.state.objects.lock().unwrap().remove(path);
    }

    /// The next requests fail so, one after another.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.lock().unwrap().extend(faults);
    }

    /// All requests fail so.
    pub fn always(&self, fault: Fault) {
        *self.state.always.lock().unwrap() = Some(fault);
    }

    pub fn delay(&self, delay: Duration) {
        *self.state.delay.lock().unwrap() = delay;
    }

    pub fn handle(&self, handler: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) {
        *self.state.handler.lock().unwrap() = Some(Box::new(handler));
    }

    /// The requests since the last call.
    pub fn take_log(&self) -> Vec<Request> {
        std::mem::take(&mut *self.state.log.lock().unwrap())
    }

    /// The most requests that were under way at once.
    pub fn most_busy(&self) -> usize {
        self.state.most_busy.load(SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stops.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        for (stream, thread) in self.state.connections.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

fn serve(stream: TcpStream, state: &State) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Ok(1..) = stream.peek(&mut [0]) {
        if let Some(Fault::Reset) = peeked(state) {
            // What was not read makes the system send a reset.
            state.faults.lock().unwrap().pop_front();
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        let Some(request) = read_request(&mut reader, state) else {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        };
        state.log.lock().unwrap().push(request.clone());
        let busy = state.busy.fetch_add(1, SeqCst) + 1;
        state.most_busy.fetch_max(busy, SeqCst);
        let delay = *state.delay.lock().unwrap();
        std::thread::sleep(delay);
        let stays = answer(&stream, state, &request);
        state.busy.fetch_sub(1, SeqCst);
        if stays.is_none() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn peeked(state: &State) -> Option<Fault> {
    let always = state.always.lock().unwrap().clone();
    state.faults.lock().unwrap().front().cloned().or(always)
}

fn read_request(reader: &mut BufReader<TcpStream>, state: &State) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let len = headers.get("content-length").map_or(0, |len: &String| len.parse().unwrap());
    let mut body = vec![0; len];
    if let Some(Fault::Half) = peeked(state) {
        reader.read_exact(&mut body[..len / 2]).ok()?;
        state.faults.lock().unwrap().pop_front();
        return None;
    }
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body })
}

/// None where the connection ends with it.
fn answer(stream: &TcpStream, state: &State, request: &Request) -> Option<()> {
    let fault = state.faults.lock().unwrap().pop_front().or_else(|| state.always.lock().unwrap().clone());
    match fault {
        Some(Fault::Status(status, header)) => {
            let headers = Some(header).filter(|h| !h.is_empty()).map(str::to_owned);
            return send(stream, (status, headers.into_iter().collect(), b"sorry".to_vec()), None);
        }
        Some(Fault::Redirect(to)) => {
            return send(stream, (302, vec![format!("Location: {to}")], vec![]), None);
        }
        Some(Fault::Slow(time)) => std::thread::sleep(time),
        _ => {}
    }
    if let Some(Fault::Lost) = fault {
        let handled = state.handler.lock().unwrap().as_ref().and_then(|handler| handler(request));
        drop(handled.or_else(|| Some(keep(state, request))));
        return None;
    }
    if let Some(answer) = state.handler.lock().unwrap().as_ref().and_then(|handler| handler(request)) {
        return send(stream, answer, fault);
    }
    if request.method != "GET" {
        let answer = keep(state, request);
        return send(stream, answer, None);
    }
    let path = request.path().to_owned();
    let object = state.objects.lock().unwrap().get(&path).cloned();
    let made =
        object.map_or((404, vec![], vec![]), |(bytes, tag)| object_answer(request, bytes, tag, &fault));
    send(stream, made, fault)
}

/// Puts or deletes an object, as a server that knows conditions.
fn keep(state: &State, request: &Request) -> Answer {
    let mut objects = state.objects.lock().unwrap();
    let path = request.path().to_owned();
    match request.method.as_str() {
        "PUT" if request.headers.contains_key("if-none-match") && objects.contains_key(&path) => {
            (412, vec![], vec![])
        }
        "PUT" => {
            let tag = format!("\"{}\"", md5_hex(&request.body));
            objects.insert(path, (request.body.clone(), Some(tag.clone())));
            (200, vec![format!("ETag: {tag}")], vec![])
        }
        "DELETE" if objects.remove(&path).is_some() => (204, vec![], vec![]),
        "DELETE" => (404, vec![], vec![]),
        _ => (405, vec![], vec![]),
    }
}

/// MD5 in hexadecimal digits, as servers tag objects.
pub fn md5_hex(bytes: &[u8]) -> String {
    use md5::Digest;
    md5::Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object_answer(request: &Request, bytes: Vec<u8>, tag: Option<String>, fault: &Option<Fault>) -> Answer {
    let headers: Vec<String> = tag.iter().map(|tag| format!("ETag: {tag}")).collect();
    if request.headers.get("if-match").is_some_and(|wanted| Some(wanted) != tag.as_ref()) {
        return (412, headers, vec![]);
    }
    let ignores = matches!(fault, Some(Fault::IgnoreRange | Fault::IgnoreRangeUnsized));
    let Some(range) = request.headers.get("range").filter(|_| !ignores) else { return (200, headers, bytes) };
    ranged(range, bytes, headers, matches!(fault, Some(Fault::WrongRange)))
}

/// The answer to a request for a range.
pub fn ranged(range: &str, bytes: Vec<u8>, mut headers: Vec<String>, is_wrong: bool) -> Answer {
    let len = bytes.len();
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => (first, (last + 1).min(len)),
        (_, Ok(suffix)) => (len.saturating_sub(suffix), len),
        _ => panic!("range {range}"),
    };
    if start >= len {
        headers.push(format!("Content-Range: bytes */{len}"));
        return (416, headers, vec![]);
    }
    let start = if is_wrong { start + 1 } else { start };
    headers.push(format!("Content-Range: bytes {start}-{}/{len}", end - 1));
    (206, headers, bytes[start..end].to_vec())
}

fn send(mut stream: &TcpStream, (status, headers, body): Answer, fault: Option<Fault>) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} {status}\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    let is_unsized = matches!(fault, Some(Fault::IgnoreRangeUnsized));
    if is_unsized {
        head.push_str("Connection: close\r\n");
    } else {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    if let Some(Fault::Truncate(n)) = fault {
        stream.write_all(&body[..n.min(body.len())]).ok()?;
        return None;
    }
    stream.write_all(&body).ok()?;
    (!is_unsized).then_some(())
}

/// Bytes that differ everywhere: the high bytes of a multiplicative sequence.
pub fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Options under which failures are over soon, yet none is caused by a busy machine.
pub fn hasty() -> sieva_store::RemoteOptions {
    sieva_store::RemoteOptions { retries: 3, deadline: Duration::from_secs(60), ..Default::default() }
}
