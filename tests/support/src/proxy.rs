//! An HTTP proxy between one client and Azurite: it keeps a record of every request, and can refuse or delay some.
//!
//! It understands as much HTTP as clients of Azure Storage speak to it: requests with a `Content-Length` or without a body.
//! Every request goes over a connection of its own (`Connection: close` in both directions). No signature covers that header.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `PUT`, …
    pub method: String,
    /// Path as sent, percent-encoded, without the query.
    pub path: String,
    /// Query without the `?`; empty when there is none.
    pub query: String,
    /// The range asked for (`x-ms-range` or `Range`); empty when there is none.
    pub range: String,
    /// Status of the answer.
    pub status: u16,
    /// When the request was here.
    pub begun: Instant,
    /// When its answer was passed on.
    pub ended: Instant,
}

impl Request {
    /// Whether the method is this one and the path ends so.
    pub fn is(&self, method: &str, path_ends: &str) -> bool {
        self.method == method && self.path.ends_with(path_ends)
    }
}

/// Requests that are answered with an error instead of being passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Method of the requests.
    pub method: &'static str,
    /// How their path ends.
    pub path_ends: &'static str,
    /// Status of the answer, with its reason: `403 Forbidden`.
    pub status: &'static str,
    /// Azure's code for the error: `AuthorizationFailure`.
    pub code: &'static str,
}

/// What happens to one request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It is applied; the client's connection closes without an answer.
    LostAnswer,
    /// It is applied twice; the client gets the first answer.
    Replay,
    /// It is not passed on; the client gets this status with its reason, and Azure's code.
    Refusal(&'static str, &'static str),
    /// It waits before it is passed on.
    Delay(Duration),
}

/// Chooses the trouble of a request: its number, counted from 0, its method and its path.
pub type Troubles = Box<dyn Fn(u64, &str, &str) -> Option<Trouble> + Send>;

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    troubles: Option<Troubles>,
    count: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shared {
    target: u16,
    state: Mutex<State>,
    ended: AtomicBool,
}

/// A running proxy on a free port of 127.0.0.1. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy to a port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(target: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { target, state: Mutex::default(), ended: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        let listener = thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.ended.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&accepting);
                // A client that goes away in the middle is its own affair.
                thread::spawn(move || drop(shared.serve(&client)));
            }
        });
        Ok(Proxy { port, shared, listener: Some(listener) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The requests so far, in the order of their answers; the record starts anew.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.state().requests)
    }

    /// Answers requests so from now on, in place of any other trouble; None passes everything on again.
    pub fn fail(&self, fault: Option<Fault>) {
        self.trouble(fault.map(|fault| -> Troubles {
            let Fault { method: only, path_ends, status, code } = fault;
            Box::new(move |_, method, path| {
                (method == only && path.ends_with(path_ends)).then_some(Trouble::Refusal(status, code))
            })
        }));
    }

    /// Troubles requests from now on; None ends it.
    pub fn trouble(&self, troubles: Option<Troubles>) {
        self.shared.state().troubles = troubles;
    }

    /// Holds every request for so long before it is passed on, in place of any other trouble.
    pub fn delay(&self, delay: Duration) {
        self.trouble(Some(Box::new(move |_, _, _| Some(Trouble::Delay(delay)))));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes the listener, which looks at the flag.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
            && let Some(listener) = self.listener.take()
        {
            let _ = listener.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(client);
        let head = read_head(&mut reader)?;
        let begun = Instant::now();
        let mut body = vec![0; head.length];
        reader.read_exact(&mut body)?;
        let trouble = {
            let mut state = self.state();
            let number = state.count;
            state.count += 1;
            state.troubles.as_ref().and_then(|choose| choose(number, &head.method, &head.path))
        };
        let answer = match trouble {
            Some(Trouble::Refusal(status, code)) => refusal(status, code),
            Some(Trouble::LostAnswer) => {
                self.pass_on(&head, &body)?;
                return client.shutdown(Shutdown::Both);
            }
            Some(Trouble::Replay) => {
                let first = self.pass_on(&head, &body)?;
                self.pass_on(&head, &body)?;
                first
            }
            Some(Trouble::Delay(delay)) => {
                thread::sleep(delay);
                self.pass_on(&head, &body)?
            }
            None => self.pass_on(&head, &body)?,
        };
        // The record is complete before the client knows the answer.
        self.state().requests.push(Request {
            method: head.method,
            path: head.path,
            query: head.query,
            range: head.range,
            status: status_of(&answer),
            begun,
            ended: Instant::now(),
        });
        let mut client = client;
        client.write_all(&answer)?;
        client.shutdown(Shutdown::Write)
    }

    fn pass_on(&self, head: &Head, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.target)))?;
        server.write_all(&head.bytes)?;
        server.write_all(body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// The head of a request, with `bytes` as they are passed on.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    method: String,
    path: String,
    query: String,
    range: String,
    length: usize,
    bytes: Vec<u8>,
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let invalid = |line: &str| io::Error::new(io::ErrorKind::InvalidData, format!("not understood: {line:?}"));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(invalid(&line)) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut head = Head {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        range: String::new(),
        length: 0,
        bytes: line.clone().into_bytes(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            return Err(invalid(&line));
        };
        match name.to_ascii_lowercase().as_str() {
            "connection" => continue,
            "content-length" => head.length = value.trim().parse().map_err(|_| invalid(&line))?,
            "transfer-encoding" | "expect" => return Err(invalid(&line)),
            // Azure heeds x-ms-range when both are there.
            "x-ms-range" => head.range = value.trim().to_owned(),
            "range" if head.range.is_empty() => head.range = value.trim().to_owned(),
            _ => {}
        }
        head.bytes.extend_from_slice(line.as_bytes());
    }
    head.bytes.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(head)
}

fn refusal(status: &str, code: &str) -> Vec<u8> {
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>refused by the test</Message></Error>");
    format!(
        "HTTP/1.1 {status}\r\nx-ms-error-code: {code}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn status_of(answer: &[u8]) -> u16 {
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers every request with what it received.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut reader = BufReader::new(client.try_clone().unwrap());
                let head = read_head(&mut reader).unwrap();
                let mut body = vec![0; head.length];
                reader.read_exact(&mut body).unwrap();
                let text = String::from_utf8([head.bytes, body].concat()).unwrap();
                write!(client, "HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{text}", text.len()).unwrap();
            }
        });
        port
    }

    fn send(proxy: &Proxy, text: &str) -> String {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        client.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_recorded_passed_on_and_refused() {
        let proxy = Proxy::start(echo()).unwrap();
        let put =
            "PUT /a/b.parquet?comp=block HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nxyz";
        let answer = send(&proxy, put);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert!(answer.ends_with("Host: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz"), "{answer}");

        let fault =
            Fault { method: "PUT", path_ends: ".parquet", status: "403 Forbidden", code: "AuthorizationFailure" };
        proxy.fail(Some(fault));
        assert!(send(&proxy, put).starts_with("HTTP/1.1 403 Forbidden\r\nx-ms-error-code: AuthorizationFailure\r\n"));
        let get = "GET /a/b.parquet HTTP/1.1\r\nrange: bytes=0-1\r\nx-ms-range: bytes=2-3\r\n\r\n";
        assert!(send(&proxy, get).starts_with("HTTP/1.1 201"));

        let seen: Vec<_> = proxy
            .take_requests()
            .into_iter()
            .map(|request| (request.method, request.path, request.query, request.range, request.status))
            .collect();
        let row = |method: &str, query: &str, range: &str, status| {
            (method.to_owned(), "/a/b.parquet".to_owned(), query.to_owned(), range.to_owned(), status)
        };
        let put = |status| row("PUT", "comp=block", "", status);
        proxy.trouble(Some(Box::new(|number, _, _| (number == 3).then_some(Trouble::LostAnswer))));
        assert_eq!(send(&proxy, get), "", "applied, and nothing comes back");
        proxy.trouble(Some(Box::new(|_, _, _| Some(Trouble::Refusal("503 Service Unavailable", "ServerBusy")))));
        assert!(send(&proxy, get).starts_with("HTTP/1.1 503"));
        proxy.trouble(Some(Box::new(|_, _, _| Some(Trouble::Replay))));
        assert!(send(&proxy, get).starts_with("HTTP/1.1 201"));
        assert_eq!(seen, [put(201), put(403), row("GET", "", "bytes=2-3", 201)]);
        let statuses: Vec<u16> = proxy.take_requests().iter().map(|request| request.status).collect();
        assert_eq!(statuses, [503, 201]);
    }
}
