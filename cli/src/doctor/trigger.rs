//! Whether the triggers listen to the account that Firn sends to: they use the host's connection, Firn its configuration.

use std::fmt;

use firn_storage::ConnectionString;

use super::finding::Finding;

const CONNECTION: &str = "AzureWebJobsStorage";
/// What a connection by identity is made of; the endpoint of the queues decides.
const PARTS: [&str; 3] =
    ["AzureWebJobsStorage__queueServiceUri", "AzureWebJobsStorage__accountName", "AzureWebJobsStorage__blobServiceUri"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Both name this account.
    Same { account: String, setting: &'static str },
    /// The trigger listens elsewhere.
    Other { account: String, listens: String, setting: &'static str },
    /// The setting names no account.
    Unreadable { setting: &'static str },
    /// This process is not the app and does not see its settings.
    Unknown,
}

/// Compares the setting of the app with the account of the configuration.
pub(super) fn look(account: &str, variable: &dyn Fn(&str) -> Option<String>) -> Trigger {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let (setting, listens) = match set(CONNECTION) {
        Some(text) => (CONNECTION, ConnectionString::parse(&text).ok().map(|found| found.account().to_owned())),
        None => match PARTS.iter().find_map(|name| set(name).map(|value| (*name, value))) {
            Some((name, value)) => (name, account_in(&value)),
            None => return Trigger::Unknown,
        },
    };
    match listens {
        None => Trigger::Unreadable { setting },
        Some(listens) if listens == account => Trigger::Same { account: listens, setting },
        Some(listens) => Trigger::Other { account: account.to_owned(), listens, setting },
    }
}

/// The account of a service's address, or a name as it stands.
fn account_in(value: &str) -> Option<String> {
    let value = value.trim().to_ascii_lowercase();
    match value.split_once("://") {
        None => Some(value).filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        Some((_, host)) => host.split('.').next().filter(|name| !name.is_empty()).map(str::to_owned),
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Same { account, setting } => write!(f, "{setting} and storage are both account {account}"),
            Trigger::Other { account, listens, setting } => write!(
                f,
                "Firn sends to account {account}, {setting} listens to {listens}: nothing would be worked on; make storage.account and \
                 the setting the same"
            ),
            Trigger::Unreadable { setting } => {
                write!(
                    f,
                    "{setting} names no storage account: write a connection string, or the settings of an identity"
                )
            }
            Trigger::Unknown => {
                f.write_str("not known here: AzureWebJobsStorage is not set; infra sets it to storage.account")
            }
        }
    }
}

impl Finding for Trigger {
    fn ok(&self) -> bool {
        matches!(self, Trigger::Same { .. } | Trigger::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_setting() {
        let look = |name: &str, value: &str| look("lake", &|asked| (asked == name).then(|| value.to_owned()));
        let same = |setting| Trigger::Same { account: "lake".into(), setting };
        assert_eq!(look("AzureWebJobsStorage", "AccountName=Lake;AccountKey=Zm9v"), same(CONNECTION));
        assert_eq!(look(PARTS[1], "lake"), same(PARTS[1]));
        assert_eq!(look(PARTS[0], "https://lake.queue.core.windows.net"), same(PARTS[0]));
        let other = look(PARTS[1], "other");
        assert!(!other.ok() && other.to_string().contains("listens to other"), "{other}");
        assert_eq!(look("AzureWebJobsStorage", "junk"), Trigger::Unreadable { setting: CONNECTION });
        let unknown = look("X", "");
        assert!(unknown.ok() && unknown == Trigger::Unknown);
    }
}
