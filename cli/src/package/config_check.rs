//! What would keep the app from working in Azure, as far as the configuration in the package tells. Only said: the zip is written all the same.

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_config::{Config, Environment, ProcessEnvironment};

use super::Entry;
use super::content::CONFIG_FILE;

/// The environment of this process, and of an instance in Azure.
#[derive(Default)]
struct InAzure {
    /// Variables that are not set here: app settings, it must be hoped.
    unset: RefCell<BTreeSet<String>>,
}

impl Environment for InAzure {
    fn variable(&self, name: &str) -> Option<String> {
        let value =
            if name == "WEBSITE_INSTANCE_ID" { Some("package".to_owned()) } else { ProcessEnvironment.variable(name) };
        if value.is_none() {
            self.unset.borrow_mut().insert(name.to_owned());
        }
        value
    }
}

/// A sentence for each problem.
pub(crate) fn problems(entries: &[Entry]) -> Vec<String> {
    let text =
        entries.iter().find(|entry| entry.name == CONFIG_FILE).map(|entry| String::from_utf8_lossy(&entry.bytes));
    text.map_or_else(Vec::new, |text| check(&text))
}

fn check(text: &str) -> Vec<String> {
    let environment = InAzure::default();
    let loaded = Config::load(text, &environment);
    // Firn asks for variables of its own, too; only those that the file names matter.
    let unset = environment.unset.into_inner();
    let unset: Vec<String> = unset.into_iter().filter(|name| text.contains(&format!("${{{name}}}"))).collect();
    match loaded {
        _ if !unset.is_empty() => {
            vec![format!("not checked, because {} is not set here; set it, or let firn doctor look", unset.join(", "))]
        }
        Err(errors) => errors.0.iter().map(|error| format!("the app will not work with it: {error}")).collect(),
        Ok(config) if config.storage.is_none() => {
            vec![
                "the app will not work with it: it has no storage section, so there is no queue and no state"
                    .to_owned(),
            ]
        }
        Ok(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_in_azure_is_said() {
        let rest = |storage: &str| {
            format!(
                "catalog: {{type: rest, uri: 'https://c.example', warehouse: w}}\n{storage}\
                 ingestion: {{datasets: [{{name: a, table: b.c}}]}}\n"
            )
        };
        let storage = "storage: {account: firnprod01, credential: managedIdentity}\n";
        assert_eq!(check(&rest(storage)), Vec::<String>::new());
        let one = |text: &str, part: &str| {
            let said = check(text);
            assert!(said.iter().any(|said| said.contains(part)), "{said:?} has no `{part}`");
        };
        one(&rest(""), "no storage section");
        one("catalog: {type: sql}\n", "will not work with it");
        let sqlite = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'abfss://lake@firnprod01.dfs.core.windows.net/w'}\n";
        one(
            &format!("{sqlite}{storage}ingestion: {{datasets: [{{name: a, table: b.c}}]}}\n"),
            "a SQLite file cannot be shared in Azure",
        );
        one(&rest("storage: {connectionString: '${FIRN_NEVER_SET}'}\n"), "FIRN_NEVER_SET is not set here");
    }
}
