//! What `docs/deploy.md` prints can be used as it stands.

use std::collections::HashMap;

use firn_config::{Config, Credential};

fn deploy() -> String {
    std::fs::read_to_string(crate::repository().join("docs/deploy.md")).unwrap()
}

/// The lines of the first block of code of that language behind a text.
fn block<'a>(text: &'a str, behind: &str, language: &str) -> Vec<&'a str> {
    let (_, rest) = text.split_once(behind).unwrap_or_else(|| panic!("no {behind:?}"));
    let (_, rest) = rest.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap().lines().collect()
}

#[test]
fn the_lists_have_as_many_commands_as_they_say() {
    let text = deploy();
    let doctor = "firn doctor --config firn.local.yaml";
    for (heading, count) in [("## Ten commands with Bicep", 10), ("## Eleven commands with Terraform", 11)] {
        let commands = block(&text, heading, "sh");
        assert_eq!(commands.len(), count, "{heading}");
        let doctors = commands.iter().filter(|command| command.ends_with(doctor)).count();
        assert_eq!(doctors, 1, "{heading}");
    }
    // Outside Azure there is no managed identity: what runs on the reader's machine takes the reader's file.
    let wrong: Vec<&str> = text.lines().filter(|line| line.contains("--config firn.yaml")).collect();
    assert_eq!(wrong, Vec::<&str>::new());
}

#[test]
fn both_configurations_load_and_differ_in_the_identity_alone() {
    let text = deploy();
    let load = |behind: &str, variables: &[(&str, &str)]| {
        let variables: HashMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::load(&block(&text, behind, "yaml").join("\n"), &variables).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let catalog = ("FIRN_CATALOG_URI", "postgresql://firn:x@pg-lake.postgres.database.azure.com/lake");
    // With the variables that there are in each place.
    let there = load("`firn.yaml` in the working directory.", &[catalog, ("FIRN_CLIENT_ID", "6a7b")]);
    let here = load("`firn.local.yaml`, with the same names and", &[catalog]);
    let (there_storage, here_storage) = (there.storage.clone().unwrap(), here.storage.clone().unwrap());
    assert_eq!(there_storage.credential, Credential::ManagedIdentity);
    assert_eq!(here_storage.credential, Credential::DeveloperTools);
    assert_eq!(here_storage.client_id, None);
    let same = |storage: &firn_config::Storage| {
        (storage.account.clone(), storage.queue.clone(), storage.state_container.clone())
    };
    assert_eq!(same(&there_storage), same(&here_storage));
    assert_eq!(there.catalog, here.catalog);
    let names = |config: &Config| -> Vec<String> {
        config.datasets.iter().map(|dataset| format!("{} {}", dataset.name, dataset.table)).collect()
    };
    assert_eq!(names(&there), names(&here));
}
