//! Azurite for tests: the local host's, started or the test fails.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub use firn_local_host::azurite::{ACCOUNT, ACCOUNT_KEY};

/// A running Azurite. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub struct Azurite(firn_local_host::Azurite);

impl Azurite {
    /// Starts an Azurite of one's own. Installs it through npm into `target/tools` on first use.
    ///
    /// # Panics
    /// When it cannot be installed or does not answer: a test without its tools must fail.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the installer's message")]
    pub fn start() -> Azurite {
        Azurite(firn_local_host::Azurite::try_start().unwrap_or_else(|reason| panic!("Azurite: {reason}")))
    }

    /// Starts one over TLS that takes tokens, with a certificate of its own (made by `openssl`). Who connects trusts it by the
    /// environment variable `SSL_CERT_FILE`.
    ///
    /// # Panics
    /// As [`Azurite::start`], or when no certificate can be made.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the installer's message")]
    pub fn start_with_tls(certificate: &Certificate) -> Azurite {
        let started = firn_local_host::Azurite::try_start_with_tls(&certificate.certificate, &certificate.key);
        Azurite(started.unwrap_or_else(|reason| panic!("Azurite: {reason}")))
    }

    /// One Azurite for all tests of a binary; it ends with the process. Tests keep apart by container names of their own.
    ///
    /// # Panics
    /// As [`Azurite::start`].
    pub fn shared() -> &'static Azurite {
        static SHARED: OnceLock<Azurite> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }
}

impl Deref for Azurite {
    type Target = firn_local_host::Azurite;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A certificate of 127.0.0.1 that signs itself, with its key, in a folder that is removed with it.
#[derive(Debug)]
pub struct Certificate {
    /// PEM; also what trusts it.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
    _folder: tempfile::TempDir,
}

impl Certificate {
    /// Makes one for a day.
    ///
    /// # Panics
    /// Without the program `openssl`.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a test without its tools must fail")]
    pub fn of_this_machine() -> Certificate {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
            .args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
            // Not one that signs others: such a one may not stand for a server.
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("openssl is there (Debian: openssl)");
        assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        Certificate { certificate, key, _folder: folder }
    }
}
