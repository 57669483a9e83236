//! An HTTP server that answers by script: it may refuse, be silent, break off, or pass a request on and lose the answer.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Answers with status, headers and body.
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Says that the body has so many bytes, sends fewer and closes the connection.
    Short(u16, Vec<(&'static str, String)>, Vec<u8>, usize),
    /// Closes the connection without a word.
    Drop,
    /// Never answers.
    Hang,
    /// Passes the request on to a server on this port and its answer back.
    Forward(u16),
    /// Passes the request on, waits for the answer and loses it.
    Lose(u16),
}

pub(crate) fn status(status: u16) -> Answer {
    Answer::Full(status, vec![], vec![])
}

/// The service's error with this code.
pub(crate) fn error(status: u16, code: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>Said so.</Message></Error>"
    );
    let headers = vec![("x-ms-error-code", code.to_owned()), ("content-type", "application/xml".to_owned())];
    Answer::Full(status, headers, body.into_bytes())
}

#[derive(Debug)]
pub(crate) struct Stub {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// Answers each request by `script`, which gets the number of requests before it.
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (requests.clone(), Arc::new(script));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, script) = (seen.clone(), script.clone());
                tokio::spawn(async move { serve(stream, &seen, &*script).await });
            }
        });
        Stub { port, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    script: &(impl Fn(usize, &Request) -> Answer + Send + Sync),
) {
    let Some(request) = receive(&mut stream).await else { return };
    let answer = {
        let mut seen = seen.lock().unwrap();
        let answer = script(seen.len(), &request);
        seen.push(request.clone());
        answer
    };
    let bytes = match answer {
        Answer::Full(status, headers, body) => {
            let length = body.len();
            response(&request, status, &headers, &body, length)
        }
        Answer::Short(status, headers, body, length) => response(&request, status, &headers, &body, length),
        Answer::Drop => return,
        Answer::Hang => std::future::pending().await,
        Answer::Forward(port) => forward(&request, port).await,
        Answer::Lose(port) => {
            forward(&request, port).await;
            return;
        }
    };
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
}

async fn receive(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { method, target, headers, body: bytes.split_off(head_end + 4) };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}

fn response(request: &Request, status: u16, headers: &[(&'static str, String)], body: &[u8], length: usize) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "content-length") {
        head += &format!("content-length: {length}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let body = if request.method == "HEAD" { &[] } else { body };
    [head.as_bytes(), b"\r\n", body].concat()
}

async fn forward(request: &Request, port: u16) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", request.method, request.target);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "connection") {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(&[head.as_bytes(), b"\r\n", &request.body].concat()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}
