//! A PostgreSQL server as a child process on a free port, from the programs of the machine.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The superuser of the server.
pub const USER: &str = "postgres";
/// Its password.
pub const PASSWORD: &str = "firn-test";

const REMEDY: &str = "install PostgreSQL 15 or later (Debian: postgresql)";

/// How long a start may take before it counts as failed.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Ends the server and removes its data when its end of the pipe closes: the process that started it is gone, however it went.
const SERVE: &str = r#"
exec 3<&0
( read -r _ <&3
  kill -QUIT $$ 2>/dev/null
  while kill -0 $$ 2>/dev/null; do sleep 0.1; done
  rm -rf "$FIRN_POSTGRES_DATA" ) >/dev/null 2>&1 &
exec "$0" "$@" </dev/null 3<&-
"#;

/// A running server. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Postgres {
    process: Child,
    port: u16,
    programs: PathBuf,
    data: PathBuf,
}

impl Postgres {
    /// Starts a server of one's own.
    ///
    /// # Errors
    /// A sentence: it is not installed, or does not answer.
    pub fn try_start() -> Result<Postgres, String> {
        Self::try_launch(None)
    }

    /// The same with TLS, by this certificate and key (PEM).
    ///
    /// # Errors
    /// As [`Postgres::try_start`].
    pub fn try_start_with_tls(certificate: &Path, key: &Path) -> Result<Postgres, String> {
        Self::try_launch(Some((certificate, key)))
    }

    fn try_launch(tls: Option<(&Path, &Path)>) -> Result<Postgres, String> {
        let programs = programs().ok_or_else(|| format!("there is no server on this machine: {REMEDY}"))?;
        let owner = Owner::find()?;
        // Another process may take the port between our look and the server's start: then it ends at once and we try another.
        let mut last = String::new();
        for _ in 0..5 {
            match Self::launch(&programs, &owner, tls) {
                Ok(server) => return Ok(server),
                Err(reason) => last = reason,
            }
        }
        Err(format!("does not start: {last}"))
    }

    fn launch(programs: &Path, owner: &Owner, tls: Option<(&Path, &Path)>) -> Result<Postgres, String> {
        let told = |error: std::io::Error| error.to_string();
        let folder = tempfile::Builder::new().prefix("firn-postgres-").tempdir().map_err(told)?;
        owner.give(folder.path())?;
        let (cluster, password) = (folder.path().join("data"), folder.path().join("password"));
        fs::write(&password, PASSWORD).map_err(told)?;
        owner.give(&password)?;
        let mut initdb = owner.command(&programs.join("initdb"));
        initdb.args(["--username", USER, "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync"]);
        initdb.arg("--pwfile").arg(&password).arg("--pgdata").arg(&cluster);
        finished(&mut initdb)?;

        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|held| held.local_addr()).map_err(told)?.port();
        let log_path = folder.path().join("log");
        let log = File::create(&log_path).map_err(told)?;
        let mut serve = owner.command(Path::new("/bin/sh"));
        serve.args(["-c", SERVE]).arg(programs.join("postgres")).arg("-D").arg(&cluster);
        serve.args(["-p", &port.to_string()]);
        // Data of tests need not outlive a crash of the machine.
        let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "full_page_writes=off"];
        for setting in settings {
            serve.args(["-c", setting]);
        }
        if let Some((certificate, key)) = tls {
            for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
                let to = cluster.join(name);
                fs::copy(from, &to).map_err(told)?;
                owner.give(&to)?;
            }
            serve.args(["-c", "ssl=on"]);
        }
        let process = serve
            .env("FIRN_POSTGRES_DATA", folder.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("`/bin/sh` cannot be started ({error})"))?;
        let mut server = Postgres { process, port, programs: programs.to_owned(), data: folder.keep() };
        server.wait_until_ready(&log_path)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let mut ready = Command::new(self.programs.join("pg_isready"));
            ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ready.status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
            let said = || fs::read_to_string(log).unwrap_or_default();
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("it ended with {status}: {}", said()));
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("no answer on port {} in {START_LIMIT:?}: {}", self.port, said()));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, with the superuser's password.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements in a database and returns what they print, a row a line.
    ///
    /// # Errors
    /// What the server said.
    pub fn try_run(&self, database: &str, statements: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        psql.args(["-U", USER, "-d", database, "-c", statements]).env("PGPASSWORD", PASSWORD);
        finished(&mut psql)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its end of the pipe closes: the server ends and its data goes.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// Where the newest server's programs are: Debian keeps them by version, others on the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, programs)| programs.join("initdb").is_file())
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || std::env::split_paths(&path).find(|folder| folder.join("initdb").is_file());
    newest.map(|(_, programs)| programs).or_else(on_path)
}

/// Who the server runs as: it refuses to run as root, and is then given to the user that its package makes.
#[derive(Debug)]
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn find() -> Result<Owner, String> {
        let ours = fs::metadata("/proc/self").map_err(|error| format!("/proc/self: {error}"))?.uid();
        if ours != 0 {
            return Ok(Owner(None));
        }
        let users = fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
        let numbers = |line: &str| {
            let mut fields = line.split(':');
            let known = fields.next() == Some(USER);
            known.then(|| Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))).flatten()
        };
        let found = users.lines().find_map(numbers);
        found
            .map(|user| Owner(Some(user)))
            .ok_or_else(|| format!("it does not run as root, and there is no user postgres: {REMEDY}"))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        // The user may not enter the folder that we are in.
        command.current_dir("/").env_remove("PGDATA").env_remove("PGOPTIONS");
        command
    }

    /// Makes a file or folder the owner's, and nobody else's.
    fn give(&self, path: &Path) -> Result<(), String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(told)?;
        match self.0 {
            Some((user, group)) => chown(path, Some(user), Some(group)).map_err(told),
            None => Ok(()),
        }
    }
}

/// Runs a program to its end and returns what it printed.
fn finished(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{program}` cannot be started ({error}): {REMEDY}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim_end().to_owned();
    Err(format!("`{program}` ended with {}: {said}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_answers_and_ends_with_its_data() {
        let server = Postgres::try_start().unwrap();
        server.try_run("postgres", "CREATE DATABASE lake").unwrap();
        assert_eq!(server.try_run("lake", "SELECT 1 UNION SELECT 2 ORDER BY 1").unwrap(), "1\n2");
        let refused = server.try_run("lake", "SELECT nothing").unwrap_err();
        assert!(refused.contains("nothing"), "{refused}");
        let (data, port) = (server.data.clone(), server.port());
        assert!(data.is_dir());
        drop(server);
        assert!(!data.exists());
        assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }
}
