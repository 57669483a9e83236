//! A REST catalog for tests: Iceberg's own handlers over Azurite, started or the test fails.

use std::ops::Deref;

use crate::Azurite;

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub struct IcebergRest(firn_local_host::IcebergRest);

impl IcebergRest {
    /// Starts a server whose tables lie below `warehouse` in an Azurite. Compiled on first use.
    ///
    /// # Panics
    /// When it cannot be compiled or does not answer: a test without its tools must fail.
    #[must_use]
    #[allow(clippy::panic, reason = "a test without its tools must fail with the remedy")]
    pub fn start(azurite: &Azurite, warehouse: &str) -> IcebergRest {
        let started = firn_local_host::IcebergRest::try_start(azurite, warehouse, &[]);
        IcebergRest(started.unwrap_or_else(|reason| panic!("REST catalog: {reason}")))
    }
}

impl Deref for IcebergRest {
    type Target = firn_local_host::IcebergRest;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
