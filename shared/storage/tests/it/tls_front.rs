//! TLS before a server of this machine that speaks none.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use firn_test_support::Certificate;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Starts it before the server on `port`, for one request a connection, and returns its own port. It ends with the process.
pub(crate) fn start(port: u16, certificate: &Certificate) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_file_iter(&certificate.certificate).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&certificate.key).unwrap();
    let config = Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, config) = (client.unwrap(), config.clone());
            // A client that goes away is its own affair.
            thread::spawn(move || drop(serve(client, config, port)));
        }
    });
    own
}

fn serve(client: TcpStream, config: Arc<ServerConfig>, port: u16) -> io::Result<()> {
    let mut client = StreamOwned::new(ServerConnection::new(config).map_err(io::Error::other)?, client);
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    while !is_whole(&request) {
        match client.read(&mut part)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&part[..read]),
        }
    }
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    client.conn.send_close_notify();
    client.flush()
}

fn is_whole(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= head + 4 + length.unwrap_or(0_usize)
}
