//! The URL of a PostgreSQL database, as libpq and SQLAlchemy write it.

use std::path::PathBuf;

use crate::secret::Secret;

/// Where a PostgreSQL database is and how one logs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// Name or address of the server, or the folder of its socket.
    pub host: String,
    /// Its port (5432).
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// None: `PGPASSWORD` of the environment, a token, or none at all.
    pub password: Option<Secret>,
    /// Name of the database.
    pub database: String,
    /// How the connection is protected.
    pub ssl_mode: SslMode,
    /// `sslrootcert`: certificates to trust beside those of the machine (PEM).
    pub root_certificate: Option<PathBuf>,
    /// `auth: entra`: the password is a token for this scope, a new one for each connection.
    pub token_scope: Option<String>,
}

/// `sslmode`, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// `disable`: never TLS.
    Disable,
    /// `prefer`: TLS when the server has it.
    Prefer,
    /// `require`: TLS, whoever answers.
    Require,
    /// `verify-ca`: TLS with a certificate that is trusted.
    VerifyCa,
    /// `verify-full`: TLS with a trusted certificate for this very host.
    VerifyFull,
}

impl SslMode {
    const WORDS: [(&'static str, SslMode); 5] = [
        ("disable", SslMode::Disable),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];

    /// The word used in the URL.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }
}

impl Postgres {
    /// What messages call it: server and database, never a secret.
    pub fn shown(&self) -> String {
        format!("{}:{}/{}", self.host, self.port, self.database)
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        self.host.starts_with('/') || matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

const EXAMPLE: &str = "write postgresql://user@host/database";

/// Reads what follows `postgresql://`. Never quotes any of it: a password may stand anywhere in a text that is wrong.
///
/// The password ends at the last `@`, so one with `@`, `/` or `?` in it, put in by `${NAME}`, is read as it stands; `%` begins an escape.
pub(crate) fn parse(rest: &str) -> Result<Postgres, String> {
    let (login, place) = rest.rsplit_once('@').ok_or_else(|| format!("names no user; {EXAMPLE}"))?;
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password).filter(|text| !text.is_empty())),
        None => (login, None),
    };
    let user = decode(user)?;
    if user.is_empty() {
        return Err(format!("names no user; {EXAMPLE}"));
    }
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let options = Options::read(query)?;
    let (server, database) = place.split_once('/').unwrap_or((place, ""));
    let database = decode(database)?;
    if database.is_empty() || database.contains('/') {
        return Err(format!("names no database; {EXAMPLE}"));
    }
    let (host, port) = host_and_port(server)?;
    let host = options.host.or(Some(host).filter(|host| !host.is_empty()));
    let mut read = Postgres {
        host: host.ok_or_else(|| format!("names no host; {EXAMPLE}"))?,
        port,
        user,
        password: password.map(decode).transpose()?.map(Secret::new),
        database,
        ssl_mode: SslMode::Prefer,
        root_certificate: options.root_certificate,
        token_scope: None,
    };
    // What leaves the machine goes to the server that was meant, or nowhere.
    let default = if read.is_local() { SslMode::Prefer } else { SslMode::VerifyFull };
    read.ssl_mode = options.ssl_mode.unwrap_or(default);
    Ok(read)
}

fn host_and_port(server: &str) -> Result<(String, u16), String> {
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, after)) => (address, after.strip_prefix(':')),
        None => match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        },
    };
    let port = match port {
        Some(text) => text.parse().map_err(|_| "has a port that is no number from 1 to 65535; correct it")?,
        None => 5432,
    };
    Ok((decode(host)?, port))
}

#[derive(Default)]
struct Options {
    host: Option<String>,
    ssl_mode: Option<SslMode>,
    root_certificate: Option<PathBuf>,
}

impl Options {
    fn read(query: &str) -> Result<Options, String> {
        let mut options = Options::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = decode(value)?;
            match key {
                "host" => options.host = Some(value),
                "sslrootcert" => options.root_certificate = Some(value.into()),
                "sslmode" => {
                    let known = SslMode::WORDS.iter().find(|(word, _)| *word == value);
                    let words = SslMode::WORDS.map(|(word, _)| word).join(", ");
                    options.ssl_mode =
                        Some(known.ok_or_else(|| format!("has an unknown sslmode; write one of {words}"))?.1);
                }
                _ => {
                    return Err("has an option that Firn does not know; host, sslmode and sslrootcert are known".into());
                }
            }
        }
        Ok(options)
    }
}

/// Decodes `%41`; anything else stands for itself.
fn decode(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).map_err(|_| "has an escape that is not UTF-8; write it again".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (String, u16, String, Option<String>, String, SslMode) {
        let found = parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        let password = found.password.map(|secret| secret.expose().to_owned());
        (found.host, found.port, found.user, password, found.database, found.ssl_mode)
    }

    #[test]
    fn urls_are_read_as_libpq_does() {
        let row = |host: &str, port, user: &str, password: Option<&str>, database: &str, mode| {
            (host.to_owned(), port, user.to_owned(), password.map(str::to_owned), database.to_owned(), mode)
        };
        use SslMode::{Disable, Prefer, Require, VerifyFull};
        for (text, expected) in [
            ("u@db.example.com/lake", row("db.example.com", 5432, "u", None, "lake", VerifyFull)),
            ("u:p@db.example.com:6432/lake", row("db.example.com", 6432, "u", Some("p"), "lake", VerifyFull)),
            ("u:p%40x@localhost/lake", row("localhost", 5432, "u", Some("p@x"), "lake", Prefer)),
            // A password that nobody encoded.
            ("u:p@x/y?z:1@h/lake", row("h", 5432, "u", Some("p@x/y?z:1"), "lake", VerifyFull)),
            ("u:@h/lake?sslmode=require", row("h", 5432, "u", None, "lake", Require)),
            ("firn%40tenant@[::1]:5433/a%20b", row("::1", 5433, "firn@tenant", None, "a b", Prefer)),
            ("u@/lake?host=/var/run/postgresql", row("/var/run/postgresql", 5432, "u", None, "lake", Prefer)),
            ("u@h/lake?sslmode=disable", row("h", 5432, "u", None, "lake", Disable)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        let trusted = parse("u@h/l?sslrootcert=/etc/ca.pem").unwrap();
        assert_eq!(trusted.root_certificate, Some("/etc/ca.pem".into()));
        assert_eq!(trusted.shown(), "h:5432/l");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (text, part) in [
            ("hunter2", "no user"),
            ("hunter2/lake", "no user"),
            (":hunter2@h/lake", "no user"),
            ("u:hunter2@h", "no database"),
            ("u:hunter2@h/", "no database"),
            ("u:hunter2@h/a/b", "no database"),
            ("u:hunter2@/lake", "no host"),
            ("u:hunter2@h:x/lake", "port"),
            ("u:hunter2@h:70000/lake", "port"),
            ("u:hunter2@h/lake?sslmode=hunter2", "verify-full"),
            ("u:hunter2@h/lake?hunter2=1", "host, sslmode and sslrootcert"),
            ("u:%ff@h/lake", "UTF-8"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(part) && !problem.contains("hunter2"), "{text}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn every_encoded_login_comes_back(user in "\\PC{1,12}", password in "\\PC{1,12}") {
            let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            let text = format!("{}:{}@h:1/d", encode(&user), encode(&password));
            prop_assert_eq!(read(&text), ("h".into(), 1, user, Some(password), "d".into(), SslMode::VerifyFull));
        }

        #[test]
        fn no_text_panics(text in "[a-z@:/?%\\[\\]=&é0-9]{0,30}") {
            let _ = parse(&text);
        }
    }
}
