//! The other side: how another process of this machine finds a running host and runs its functions.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::host::RunningHost;
use crate::http::keys::write_private;

/// Names of the files that say where hosts run: one for each port.
const PREFIX: &str = "running-";
const SUFFIX: &str = ".json";
/// How long a connection may take: the host is on this machine.
const CONNECT: Duration = Duration::from_secs(5);

/// Where a host runs and what opens it. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct HostAddress {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    /// The key that opens everything.
    pub master_key: String,
}

impl std::fmt::Debug for HostAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostAddress({})", self.url)
    }
}

/// The file that says where a host runs. Dropping it removes the file, if it still names this host: another one may have taken the port
/// of a host that was killed.
#[derive(Debug)]
pub struct Announcement {
    file: PathBuf,
    text: String,
}

impl Announcement {
    /// Writes the file into `folder`, readable by its owner only.
    ///
    /// # Errors
    /// As the file system says.
    pub fn write(folder: &Path, host: &RunningHost) -> io::Result<Announcement> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("{PREFIX}{}{SUFFIX}", port_of(host.url())));
        let text = json!({"url": host.url(), "masterKey": host.master_key()}).to_string();
        write_private(&file, &text)?;
        Ok(Announcement { file, text })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.file).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

/// Why a function could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// No host. Next: start one.
    #[error("no local host runs ({0}): start it with `firn local --config FILE`, or name it with --url")]
    NoHost(String),
    /// More than one host. Next: name one.
    #[error("several local hosts run ({0}): name one with --url")]
    Several(String),
    /// The host has no such function. Next: name one that it has.
    #[error("\"{name}\" is no function of {url}, which has {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The host.
        url: String,
        /// The functions that it has.
        known: String,
    },
    /// The key does not open it.
    #[error("{0} refuses the key: give the host's master key with --key")]
    Key(String),
    /// Anything else that the host says.
    #[error("{0}")]
    Other(String),
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// An HTTP function's answer.
    Http {
        /// Status.
        status: u16,
        /// Body.
        body: String,
    },
    /// Another function's result: `ok`, `invocationId`, `reason`, `outputs`, `returnValue`, `logs`.
    Ran(Value),
    /// It runs in the background: all that a host which is not the local one says.
    Accepted,
}

/// The hosts that say in `folder` that they run, without those that do not answer any more.
fn announced(folder: &Path) -> Vec<HostAddress> {
    let named = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    };
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let addresses = files.filter(|path| named(path)).filter_map(|path| {
        let value: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(HostAddress { url: text("url")?, master_key: text("masterKey")? })
    });
    let mut addresses: Vec<_> = addresses.filter(HostAddress::answers).collect();
    addresses.sort_by(|a, b| a.url.cmp(&b.url));
    addresses
}

/// Where the host of `folder` runs.
///
/// # Errors
/// [`ClientError::NoHost`], or [`ClientError::Several`] when it is not clear which one is meant.
pub fn running(folder: &Path) -> Result<HostAddress, ClientError> {
    let mut hosts = announced(folder);
    match (hosts.pop(), hosts.as_slice()) {
        (None, _) => Err(ClientError::NoHost(format!("{} names none that answers", folder.display()))),
        (Some(only), []) => Ok(only),
        (Some(last), others) => {
            let urls = others.iter().chain([&last]).map(|host| host.url.as_str()).collect::<Vec<_>>().join(", ");
            Err(ClientError::Several(urls))
        }
    }
}

/// The host at `url`, with the key that it announced in `folder` if it did.
pub fn at(folder: &Path, url: &str) -> HostAddress {
    let known = announced(folder).into_iter().find(|host| host.url == url.trim_end_matches('/'));
    known.unwrap_or_else(|| HostAddress { url: url.to_owned(), master_key: String::new() })
}

/// The digits after the last colon.
fn port_of(url: &str) -> &str {
    url.trim_end_matches('/').rsplit(':').next().unwrap_or_default()
}

impl HostAddress {
    /// Whether something listens there: a host that was killed leaves its file behind.
    fn answers(&self) -> bool {
        let port = port_of(&self.url).parse().unwrap_or(0);
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT).is_ok()
    }

    /// Runs a function: an HTTP function by its address (GET, or POST with `data`), any other through the admin endpoint,
    /// with `data` as the message.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call(&self, function: &str, data: Option<&str>) -> Result<Called, ClientError> {
        // One TLS provider in the process; an error says that another part has installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT).build();
        let client = client.map_err(|error| ClientError::Other(error.to_string()))?;
        let base = self.url.trim_end_matches('/');
        let functions = self.functions(&client, base).await?;
        let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
        let Some(found) = functions.iter().find(|entry| name(entry).eq_ignore_ascii_case(function)) else {
            let known = functions.iter().map(name).collect::<Vec<_>>().join(", ");
            return Err(ClientError::Unknown { name: function.into(), url: base.into(), known });
        };
        let request = match found["url"].as_str() {
            Some(url) => match data {
                None => client.get(url),
                Some(data) => client.post(url).header("content-type", "application/json").body(data.to_owned()),
            },
            None => {
                let body = json!({"input": data.unwrap_or_default()}).to_string();
                let url = format!("{base}/admin/functions/{}?wait=true", name(found));
                client.post(url).header("content-type", "application/json").body(body)
            }
        };
        let answer = request.header("x-functions-key", &self.master_key).send().await;
        let answer = answer.map_err(|error| ClientError::Other(format!("{base} broke the connection: {error}")))?;
        let status = answer.status().as_u16();
        let body = answer.text().await.map_err(|error| ClientError::Other(error.to_string()))?;
        match (found["url"].is_string(), status) {
            (true, _) => Ok(Called::Http { status, body }),
            (false, 200) => {
                serde_json::from_str(&body).map(Called::Ran).map_err(|error| ClientError::Other(error.to_string()))
            }
            (false, 202) => Ok(Called::Accepted),
            (false, _) => Err(ClientError::Other(format!("{base} answered {status}: {body}"))),
        }
    }

    async fn functions(&self, client: &reqwest::Client, base: &str) -> Result<Vec<Value>, ClientError> {
        let request = client.get(format!("{base}/admin/functions")).header("x-functions-key", &self.master_key);
        let answer = request.send().await.map_err(|_| ClientError::NoHost(format!("{base} does not answer")))?;
        match answer.status().as_u16() {
            200 => {}
            401 | 403 => return Err(ClientError::Key(base.into())),
            status => return Err(ClientError::Other(format!("{base} answered {status}: it is no Functions host"))),
        }
        let text = answer.text().await.map_err(|error| ClientError::Other(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| ClientError::Other(format!("{base} is no Functions host: {error}")))
    }
}
