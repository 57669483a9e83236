//! Storage credentials that a catalog hands out with a table: shared access signatures for Azure.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate};
use firn_config::Secret;
use firn_model::BlobId;
use serde::Deserialize;

use super::settings::{or_default, texts};

/// What Iceberg's clients call a signature, and when it ends.
const SAS: &str = "adls.sas-token.";
const ENDS: &str = "adls.sas-token-expires-at-ms.";

/// An entry of `storage-credentials` of a load answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct StorageCredential {
    /// Where it is good: the beginning of paths.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) prefix: String,
    #[serde(default, deserialize_with = "texts")]
    pub(super) config: HashMap<String, String>,
}

/// Where a signature is good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// An empty container stands for the whole account.
    pub(super) prefix: BlobId,
    /// The account's host where the catalog named it (`account.dfs.core.windows.net`).
    pub(super) host: Option<String>,
}

/// A signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) query: Secret,
    /// None: nobody said.
    pub(super) ends: Option<SystemTime>,
    pub(super) lists: bool,
    pub(super) deletes: bool,
}

/// The signatures of a load answer, by where they are good. The list of credentials is the newer form and wins.
pub(super) fn signatures(
    config: &HashMap<String, String>,
    credentials: &[StorageCredential],
) -> BTreeMap<Place, Signature> {
    let mut found = in_config("", config);
    for credential in credentials {
        found.extend(in_config(&credential.prefix, &credential.config));
    }
    found
}

fn in_config(prefix: &str, config: &HashMap<String, String>) -> BTreeMap<Place, Signature> {
    let mut found = BTreeMap::new();
    for (key, value) in config {
        let Some(of) = key.strip_prefix(SAS).filter(|of| !of.is_empty()) else { continue };
        let query = value.trim().trim_start_matches('?');
        if query.is_empty() {
            continue;
        }
        let account = of.split('.').next().unwrap_or(of).to_ascii_lowercase();
        let whole = BlobId { account: account.clone(), container: String::new(), key: String::new() };
        // A prefix that is no place (`abfs`) says nothing that the account does not.
        let prefix = BlobId::parse(prefix).ok().filter(|id| id.account == account).unwrap_or(whole);
        let host = of.contains('.').then(|| of.to_ascii_lowercase());
        let told = config.get(&format!("{ENDS}{of}")).and_then(|text| text.trim().parse().ok());
        let parameter = |name: &str| {
            let parts = query.split('&').filter_map(|part| part.split_once('='));
            parts.filter(|(key, _)| *key == name).map(|(_, value)| decode(value)).next()
        };
        // Without `sp` the permissions stand in a policy of the container, which nobody sees here.
        let may = |permission: char| parameter("sp").is_some_and(|permissions| permissions.contains(permission));
        let signature = Signature {
            query: Secret::new(query),
            ends: told
                .map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
                .or_else(|| parameter("se").and_then(|text| time(&text))),
            lists: may('l'),
            deletes: may('d'),
        };
        found.insert(Place { prefix, host }, signature);
    }
    found
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The time of `se`: ISO 8601 in UTC, to the second, minute or day.
fn time(text: &str) -> Option<SystemTime> {
    let full = match text.len() {
        10 => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc(),
        17 => DateTime::parse_from_rfc3339(&format!("{}:00Z", text.strip_suffix('Z')?)).ok()?.to_utc(),
        _ => DateTime::parse_from_rfc3339(text).ok()?.to_utc(),
    };
    Some(full.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn at(seconds: u64) -> Option<SystemTime> {
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn a_signature_for_an_account_is_found_in_the_config() {
        let sas = "sv=2025-11-05&se=2026-11-30T14%3A00%3A00Z&sp=racwdl&sig=a%2Fb";
        let given =
            config(&[("adls.sas-token.Data.dfs.core.windows.net", sas), ("s3.secret", "x"), ("adls.sas-token.", "y")]);
        let found = signatures(&given, &[]);
        let place = Place {
            prefix: BlobId { account: "data".into(), container: String::new(), key: String::new() },
            host: Some("data.dfs.core.windows.net".into()),
        };
        let signature = Signature { query: Secret::new(sas), ends: at(1_796_047_200), lists: true, deletes: true };
        assert_eq!(found, BTreeMap::from([(place, signature)]));
        assert_eq!(signatures(&config(&[("adls.sas-token.data", " ")]), &[]), BTreeMap::new());
    }

    #[test]
    fn the_list_of_credentials_wins_and_says_where() {
        let old = config(&[("adls.sas-token.data", "?sp=r&sig=old")]);
        let credential =
            |prefix: &str, pairs: &[(&str, &str)]| StorageCredential { prefix: prefix.into(), config: config(pairs) };
        let table = "abfss://lake@data.dfs.core.windows.net/wh/t";
        let list = [
            credential(
                "abfs",
                &[("adls.sas-token.data", "sp=rwl&sig=new"), ("adls.sas-token-expires-at-ms.data", "1796047200000")],
            ),
            credential(table, &[("adls.sas-token.data", "sig=t")]),
            credential("gs://x", &[("gcs.oauth2.token", "x")]),
        ];
        let found = signatures(&old, &list);
        let seen: Vec<_> = found
            .iter()
            .map(|(place, signature)| {
                let Signature { query, ends, lists, deletes } = signature;
                (place.prefix.container.as_str(), place.prefix.key.as_str(), query.expose(), *ends, *lists, *deletes)
            })
            .collect();
        let expected =
            [("", "", "sp=rwl&sig=new", at(1_796_047_200), true, false), ("lake", "wh/t", "sig=t", None, false, false)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn null_is_absent_and_a_number_is_its_text() {
        let answer = r#"{"prefix":null,"config":{"adls.sas-token.data":"sp=r&sig=s","adls.sas-token-expires-at-ms.data":1796047200000,"x":null}}"#;
        let credential: StorageCredential = serde_json::from_str(answer).unwrap();
        let found = signatures(&HashMap::new(), &[credential]);
        let seen: Vec<_> = found.values().map(|signature| (signature.query.expose(), signature.ends)).collect();
        assert_eq!(seen, [("sp=r&sig=s", at(1_796_047_200))]);
        let nothing: StorageCredential = serde_json::from_str(r#"{"config":null}"#).unwrap();
        assert_eq!(nothing, StorageCredential::default());
    }

    #[test]
    fn ends_are_read_in_every_form() {
        for (text, expected) in [
            ("2026-11-30T14:00:00Z", at(1_796_047_200)),
            ("2026-11-30T14:00Z", at(1_796_047_200)),
            ("2026-11-30", at(1_795_996_800)),
            ("tomorrow", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
    }
}
