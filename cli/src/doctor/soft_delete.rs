//! Whether what is deleted by mistake comes back: deleted blobs are kept for some days.

use std::fmt;

use firn_storage::{AzureAccount, AzureOptions, AzureStore, StorageError};

use super::finding::Finding;

/// A weekend and the days until somebody looks.
const DAYS: u32 = 7;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SoftDelete {
    For {
        account: String,
        days: u32,
    },
    TooShort {
        account: String,
        days: u32,
    },
    Off {
        account: String,
    },
    /// An emulator has none.
    Emulator,
    /// Data roles do not show the account's settings.
    NotShown {
        account: String,
    },
    Unusable {
        account: String,
        reason: String,
    },
}

pub(super) async fn look(access: &AzureAccount) -> SoftDelete {
    let account = access.account().to_owned();
    if access.blob_endpoint().contains("://127.0.0.1") || access.blob_endpoint().contains("://localhost") {
        return SoftDelete::Emulator;
    }
    let store = match AzureStore::new(access, AzureOptions::default()) {
        Ok(store) => store,
        Err(error) => return SoftDelete::Unusable { account, reason: error.to_string() },
    };
    match store.soft_delete_days().await {
        Ok(days) => decide(account, days),
        Err(StorageError::Denied { .. }) => SoftDelete::NotShown { account },
        Err(error) => SoftDelete::Unusable { account, reason: error.to_string() },
    }
}

fn decide(account: String, days: Option<u32>) -> SoftDelete {
    match days {
        None => SoftDelete::Off { account },
        Some(days) if days < DAYS => SoftDelete::TooShort { account, days },
        Some(days) => SoftDelete::For { account, days },
    }
}

impl fmt::Display for SoftDelete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch_on = |f: &mut fmt::Formatter<'_>, account: &str| {
            write!(
                f,
                "az storage account blob-service-properties update --account-name {account} --enable-delete-retention true \
                 --delete-retention-days 14"
            )
        };
        match self {
            SoftDelete::For { account, days } => write!(f, "{account}: deleted blobs are kept for {days} days"),
            SoftDelete::TooShort { account, days } => {
                write!(f, "{account}: deleted blobs are kept for {days} days, less than {DAYS}: ")?;
                switch_on(f, account)
            }
            SoftDelete::Off { account } => {
                write!(f, "{account}: off, what is deleted by mistake is gone: ")?;
                switch_on(f, account)
            }
            SoftDelete::Emulator => f.write_str("an emulator: not needed"),
            SoftDelete::NotShown { account } => write!(
                f,
                "{account}: not known here, data roles do not show it: az storage account blob-service-properties show --account-name \
                 {account}"
            ),
            SoftDelete::Unusable { account, reason } => write!(f, "{account}: {reason}"),
        }
    }
}

impl Finding for SoftDelete {
    fn ok(&self) -> bool {
        matches!(self, SoftDelete::For { .. } | SoftDelete::Emulator | SoftDelete::NotShown { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_decide() {
        let decide = |days| decide("lake".into(), days);
        assert_eq!(decide(Some(7)), SoftDelete::For { account: "lake".into(), days: 7 });
        assert!(decide(Some(14)).ok());
        for wrong in [decide(Some(6)), decide(None)] {
            let text = wrong.to_string();
            assert!(!wrong.ok() && text.contains("--account-name lake --enable-delete-retention true"), "{text}");
        }
        assert!(SoftDelete::NotShown { account: "lake".into() }.ok());
    }
}
