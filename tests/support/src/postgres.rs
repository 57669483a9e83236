//! PostgreSQL for tests: the machine's own, started or the test fails.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::Certificate;

/// A running server. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Postgres(firn_local_host::Postgres);

impl Postgres {
    /// Starts a server of one's own.
    ///
    /// # Panics
    /// When it is not installed or does not answer: a test without its tools must fail.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the remedy")]
    pub fn start() -> Postgres {
        Postgres(firn_local_host::Postgres::try_start().unwrap_or_else(|reason| panic!("PostgreSQL: {reason}")))
    }

    /// Starts one that takes connections over TLS. Who connects trusts it by `sslrootcert`.
    ///
    /// # Panics
    /// As [`Postgres::start`].
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the remedy")]
    pub fn start_with_tls(certificate: &Certificate) -> Postgres {
        let started = firn_local_host::Postgres::try_start_with_tls(&certificate.certificate, &certificate.key);
        Postgres(started.unwrap_or_else(|reason| panic!("PostgreSQL: {reason}")))
    }

    /// One server for all tests of a binary; it ends with the process. Tests keep apart by databases of their own.
    ///
    /// # Panics
    /// As [`Postgres::start`].
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Makes an empty database and returns its URL.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn database(&self, name: &str) -> String {
        self.run("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// Runs statements in a database and returns what they print.
    ///
    /// # Panics
    /// When the server refuses.
    #[allow(clippy::panic, reason = "a statement of a test that fails must fail the test")]
    pub fn run(&self, database: &str, statements: &str) -> String {
        self.try_run(database, statements).unwrap_or_else(|reason| panic!("{statements}: {reason}"))
    }
}

impl Deref for Postgres {
    type Target = firn_local_host::Postgres;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
