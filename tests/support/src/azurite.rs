//! Azurite for tests: the local host's, started or the test fails.

use std::ops::Deref;
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
