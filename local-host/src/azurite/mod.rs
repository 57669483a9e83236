//! Azurite, the emulator of Azure Storage, as a child process on free ports, installed through npm on first use.

pub mod install;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use install::{ToolError, install_once, run_installer};

/// The version that the tests are written against.
pub const AZURITE_VERSION: &str = "3.35.0";

/// The account that Azurite has without configuration.
pub const ACCOUNT: &str = "devstoreaccount1";

/// The published key of that account, the same in every installation of the emulator.
pub const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const NODE_REMEDY: &str = "install Node.js 18 or later with npm (Debian: nodejs npm)";

/// How long a start may take before it counts as failed.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Ends Azurite and removes its data when the test process is gone, however it went: its end of the pipe closes then.
const END_WITH_PARENT: &str = "\
process.stdin.on('end', () => {
  require('fs').rmSync(process.env.FIRN_AZURITE_DATA, { recursive: true, force: true });
  process.exit(0);
});
process.stdin.on('error', () => process.exit(0));
process.stdin.resume();
";
const END_WITH_PARENT_FILE: &str = "end-with-parent.js";

/// A running Azurite. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Azurite {
    process: Child,
    blob_port: u16,
    queue_port: u16,
    table_port: u16,
    data: PathBuf,
    tls: bool,
}

impl Azurite {
    /// Starts an Azurite of one's own. Installs it through npm into `target/tools` on first use.
    ///
    /// # Errors
    /// A sentence: it cannot be installed, or does not answer.
    pub fn try_start() -> Result<Azurite, String> {
        Self::try_launch(None)
    }

    /// The same over TLS, with this certificate and key (PEM); it also takes tokens of Entra, as far as their times, issuer and audience
    /// go: it knows no identity and no role.
    ///
    /// # Errors
    /// As [`Azurite::try_start`].
    pub fn try_start_with_tls(certificate: &Path, key: &Path) -> Result<Azurite, String> {
        Self::try_launch(Some((certificate, key)))
    }

    fn try_launch(tls: Option<(&Path, &Path)>) -> Result<Azurite, String> {
        let installation = install().map_err(|error| error.to_string())?;
        // Another process may take a port between our look and Azurite's start: then it ends at once and we try others.
        let mut last = String::new();
        for _ in 0..5 {
            match Self::launch(&installation, tls) {
                Ok(azurite) => return Ok(azurite),
                Err(reason) => last = reason,
            }
        }
        Err(format!("does not start: {last}"))
    }

    fn launch(installation: &Path, tls: Option<(&Path, &Path)>) -> Result<Azurite, String> {
        let told = |error: std::io::Error| error.to_string();
        let [blob_port, queue_port, table_port] = free_ports().map_err(told)?;
        let data = tempfile::Builder::new().prefix("firn-azurite-").tempdir().map_err(told)?;
        let log_path = data.path().join("azurite.out");
        let log = File::create(&log_path).map_err(told)?;
        let mut command = Command::new("node");
        command
            .arg("--require")
            .arg(installation.join(END_WITH_PARENT_FILE))
            .arg(installation.join("node_modules/azurite/dist/src/azurite.js"));
        if let Some((certificate, key)) = tls {
            command.arg("--cert").arg(certificate).arg("--key").arg(key).args(["--oauth", "basic"]);
        }
        let process = command
            .args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"])
            .args(["--blobPort", &blob_port.to_string()])
            .args(["--queuePort", &queue_port.to_string()])
            .args(["--tablePort", &table_port.to_string()])
            .arg("--location")
            .arg(data.path())
            .env("FIRN_AZURITE_DATA", data.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("`node` cannot be started ({error}): {NODE_REMEDY}"))?;
        let mut azurite = Azurite { process, blob_port, queue_port, table_port, data: data.keep(), tls: tls.is_some() };
        azurite.wait_until_ready(&log_path)?;
        Ok(azurite)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<(), String> {
        let start = Instant::now();
        let ports = [self.blob_port, self.queue_port, self.table_port];
        while !ports.iter().all(|port| if self.tls { listens(*port) } else { answers(*port) }) {
            let said = || fs::read_to_string(log).unwrap_or_default();
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("it ended with {status}: {}", said()));
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("no answer on port {} in {START_LIMIT:?}: {}", self.blob_port, said()));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The port of the blob service on 127.0.0.1.
    pub fn blob_port(&self) -> u16 {
        self.blob_port
    }

    /// The port of the queue service on 127.0.0.1.
    pub fn queue_port(&self) -> u16 {
        self.queue_port
    }

    /// The endpoint of the blob service, with the account, such as `http://127.0.0.1:<port>/devstoreaccount1`.
    pub fn blob_endpoint(&self) -> String {
        self.endpoint(self.blob_port)
    }

    /// The endpoint of the queue service, with the account.
    pub fn queue_endpoint(&self) -> String {
        self.endpoint(self.queue_port)
    }

    fn endpoint(&self, port: u16) -> String {
        let protocol = if self.tls { "https" } else { "http" };
        format!("{protocol}://127.0.0.1:{port}/{ACCOUNT}")
    }

    /// The connection string for all three services, as Azure's tools and libraries take it.
    pub fn connection_string(&self) -> String {
        self.connection_string_by(self.blob_port)
    }

    /// The same, with another port for blobs: that of a proxy.
    pub fn connection_string_by(&self, blob_port: u16) -> String {
        self.connection_string_through(blob_port, self.queue_port)
    }

    /// The same, with other ports for blobs and queues.
    pub fn connection_string_through(&self, blob_port: u16, queue_port: u16) -> String {
        format!(
            "DefaultEndpointsProtocol={};AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={};QueueEndpoint={};\
             TableEndpoint={};",
            if self.tls { "https" } else { "http" },
            self.endpoint(blob_port),
            self.endpoint(queue_port),
            self.endpoint(self.table_port)
        )
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}

fn free_ports() -> std::io::Result<[u16; 3]> {
    // All three are held before the first is let go, so they differ.
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held = [bind()?, bind()?, bind()?];
    Ok([held[0].local_addr()?.port(), held[1].local_addr()?.port(), held[2].local_addr()?.port()])
}

fn listens(port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Duration::from_secs(2)).is_ok()
}

fn answers(port: u16) -> bool {
    let limit = Duration::from_secs(2);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, limit) else { return false };
    let request = format!("GET /{ACCOUNT}?comp=list HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let mut head = [0; 5];
    stream.set_read_timeout(Some(limit)).is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut head).is_ok()
        && head == *b"HTTP/"
}

fn install() -> Result<PathBuf, ToolError> {
    let package = format!("azurite@{AZURITE_VERSION}");
    install_once("azurite", &(package.clone() + END_WITH_PARENT), |directory| {
        let npm = ["install", "--no-audit", "--no-fund", "--no-save", "--loglevel", "error", "--prefix"];
        run_installer(Command::new("npm").args(npm).arg(directory).arg(&package), NODE_REMEDY)?;
        let script = directory.join(END_WITH_PARENT_FILE);
        fs::write(&script, END_WITH_PARENT).map_err(|source| ToolError::Folder { path: script, source })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_ports_of_its_own_and_ends_when_dropped() {
        let first = Azurite::try_start().unwrap();
        let second = Azurite::try_start().unwrap();
        assert_ne!(first.blob_port(), second.blob_port());
        assert!(first.connection_string().contains(&first.blob_endpoint()));
        let (port, data) = (first.blob_port(), first.data.clone());
        assert!(answers(port) && data.is_dir());
        drop(first);
        assert!(!answers(port) && !data.exists());
        assert!(answers(second.blob_port()));
    }
}
