//! A REST catalog for tests and the demo as a child process: Iceberg's own catalog handlers over a catalog in memory, with the files of its
//! tables in Azurite. Compiled on first use from `local-host/java`; Iceberg comes from a package of PyPI.

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::azurite::install::{ToolError, install_once, run_installer};
use crate::azurite::{ACCOUNT, ACCOUNT_KEY, Azurite};

/// Has Iceberg 1.10.2 with all that it needs but the API of its log.
const PACKAGE: &str = "snowpark-connect-deps-iceberg==1.0.2";
const JAR: &str = "snowpark_connect_deps_iceberg/jars/iceberg-spark-runtime-3.5_2.12-1.10.2.jar";
const LOG_API: &str = "/usr/share/java/slf4j-api.jar";
const SOURCES: [(&str, &str); 2] = [
    ("RestServer.java", include_str!("../java/RestServer.java")),
    ("AzuriteFileIO.java", include_str!("../java/AzuriteFileIO.java")),
];
const MAIN: &str = "org.apache.iceberg.rest.RestServer";

const JAVA_REMEDY: &str = "install a JDK, 17 or newer (Debian: openjdk-17-jdk-headless)";
const LOG_REMEDY: &str = "install the API of Java's log (Debian: libslf4j-java)";
const PYTHON_REMEDY: &str = "install Python 3.10 or later with its venv module (Debian: python3 python3-venv)";

/// A running server. Dropping it ends the process; its tables are forgotten, their files stay in Azurite.
#[derive(Debug)]
pub struct IcebergRest {
    process: Child,
    port: u16,
}

impl IcebergRest {
    /// Starts a server whose tables lie below `warehouse` in an Azurite. `settings` go to its clients: `default.key` with the
    /// configuration, `table.key` with each table.
    ///
    /// # Errors
    /// A sentence: it cannot be installed or compiled, or does not answer.
    pub fn try_start(azurite: &Azurite, warehouse: &str, settings: &[(String, String)]) -> Result<IcebergRest, String> {
        if !Path::new(LOG_API).is_file() {
            return Err(format!("there is no {LOG_API}: {LOG_REMEDY}"));
        }
        let installed = install().map_err(|error| error.to_string())?;
        let told = |error: std::io::Error| error.to_string();
        let mut log = tempfile::tempfile().map_err(told)?;
        let mut command = Command::new("java");
        command.arg("-Xmx256m").arg("-cp").arg(class_path(&installed)).arg(MAIN);
        command.arg(format!("warehouse={warehouse}"));
        command.arg(format!("azurite.endpoint={}", azurite.blob_endpoint()));
        command.arg(format!("azurite.account={ACCOUNT}")).arg(format!("azurite.key={ACCOUNT_KEY}"));
        command.args(settings.iter().map(|(key, value)| format!("{key}={value}")));
        let mut process = command
            // It ends when its end of the pipe closes: this process is gone, however it went.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone().map_err(told)?)
            .spawn()
            .map_err(|error| format!("`java` cannot be started ({error}): {JAVA_REMEDY}"))?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(told)?;
        }
        match line.trim().strip_prefix("listening on ").and_then(|port| port.parse().ok()) {
            Some(port) => Ok(IcebergRest { process, port }),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                let mut said = String::new();
                let _ = log.rewind().and_then(|()| log.read_to_string(&mut said));
                Err(format!("does not start: {said}"))
            }
        }
    }

    /// Where a Java program finds Iceberg, and `AzuriteFileIO`, which reaches the files of these tables: Spark in tests.
    ///
    /// # Errors
    /// A sentence: they cannot be installed or compiled.
    pub fn class_path() -> Result<String, String> {
        Ok(class_path(&install().map_err(|error| error.to_string())?))
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, as `catalog.uri` in a configuration takes it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for IcebergRest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn class_path(installed: &Path) -> String {
    let jar = installed.join("packages").join(JAR);
    format!("{}:{}:{LOG_API}", installed.join("classes").display(), jar.display())
}

fn install() -> Result<PathBuf, ToolError> {
    let fingerprint = SOURCES.iter().fold(PACKAGE.to_owned(), |all, (_, source)| all + source);
    install_once("iceberg-rest", &fingerprint, |directory| {
        let venv = directory.join("venv");
        run_installer(Command::new("python3").args(["-m", "venv"]).arg(&venv), PYTHON_REMEDY)?;
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]);
        run_installer(pip.arg(directory.join("packages")).arg(PACKAGE), PYTHON_REMEDY)?;
        let mut javac = Command::new("javac");
        javac.arg("-cp").arg(directory.join("packages").join(JAR)).arg("-d").arg(directory.join("classes"));
        for (name, source) in SOURCES {
            let path = directory.join(name);
            fs::write(&path, source).map_err(|source| ToolError::Folder { path: path.clone(), source })?;
            javac.arg(path);
        }
        run_installer(&mut javac, JAVA_REMEDY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_port_of_its_own_and_ends_when_dropped() {
        let azurite = Azurite::try_start().unwrap();
        let server =
            IcebergRest::try_start(&azurite, "abfss://lake@devstoreaccount1.dfs.core.windows.net/wh", &[]).unwrap();
        let port = server.port();
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        drop(server);
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
