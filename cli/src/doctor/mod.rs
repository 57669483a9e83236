//! `firn doctor`: what is looked at before anything runs. Changes nothing but probe blobs of its own, which it deletes.
//!
//! One file a check. Each decides by a pure function, from what was found to an enum that says what it means and what to do
//! ([`finding`]); [`Doctor::run`] asks in the order in which one thing rests on the other.

mod access;
mod account;
mod catalog;
mod clock;
mod dataset;
mod finding;
mod locations;
mod optimizers;
mod orphan_age;
mod properties;
mod queue;
mod sidecars;
mod soft_delete;
mod sorting;
mod token;
mod trigger;
mod way;

use std::sync::Arc;

use firn_config::Config;
use firn_model::BlobId;
use firn_pass::VerifyCheck;
use firn_storage::{AzureAccount, AzureOptions, BlobStore, RoutingStore};
use firn_table::TableStore;

use self::account::Opened;
use self::finding::{Finding, NotChecked};
use self::locations::Place;
use self::way::Way;
use crate::output::WARNING;

/// Says each check as it is done.
pub(crate) struct Doctor<'a> {
    say: &'a mut (dyn FnMut(&VerifyCheck) + Send),
}

impl<'a> Doctor<'a> {
    pub(crate) fn new(say: &'a mut (dyn FnMut(&VerifyCheck) + Send)) -> Self {
        Self { say }
    }

    /// Says what was found, and whether it is well.
    fn found(&mut self, check: &str, finding: &dyn Finding) -> bool {
        let ok = finding.ok();
        let warning = if finding.warns() { WARNING } else { "" };
        (self.say)(&VerifyCheck { check: check.to_owned(), ok, message: format!("{warning}{finding}") });
        ok
    }

    /// Looks at everything that a configuration which was read rests on.
    pub(crate) async fn run(&mut self, config: &Config) {
        self.found("orphan age", &orphan_age::look(config));
        let account = self.account(config).await;
        let Ok(account) = account else {
            for check in ["catalog", "tables", "locations"] {
                self.found(check, &NotChecked("the storage account"));
            }
            return;
        };
        let table_store = table_store(account.as_ref());
        let access = account.as_ref().map(|opened| &opened.access);
        let catalog = match catalog::look(config, table_store.clone(), access).await {
            Ok((finding, catalog)) => {
                self.found("catalog", &finding);
                catalog
            }
            Err(problem) => {
                self.found("catalog", &problem);
                for check in ["tables", "locations"] {
                    self.found(check, &NotChecked("the catalog"));
                }
                return;
            }
        };
        let mut places: Vec<Place> = Vec::new();
        for dataset in &config.datasets {
            let Some(table) = self.table(dataset::look(catalog.as_ref(), dataset).await) else { continue };
            self.found("sort columns", &sorting::look(dataset, &table));
            if let Some(finding) = sidecars::look(dataset, &table) {
                self.found("sidecars", &finding);
            }
            self.found("table properties", &properties::look(dataset, &table));
            self.found("other optimizers", &optimizers::look(dataset, &table));
            match locations::places(dataset, &table) {
                Ok(found) => {
                    let data = &found[0];
                    let probed = access::probe(table.blobs().as_ref(), &data.probe_folder()).await;
                    let way = Way::to_place(&data.id, access);
                    let dataset = dataset.name.clone();
                    self.found("data access", &access::DataAccess { dataset, way, probed: probed.map(|_| ()) });
                    places.extend(found);
                }
                Err(problem) => {
                    self.found("locations", &problem);
                }
            }
        }
        let state = state_root(config, account.as_ref());
        self.found("locations", &locations::decide(&places, state.as_ref()));
        if let Some(opened) = &account {
            self.soft_delete(&opened.access, &places).await;
        }
    }

    /// Token, state, clock, queue and trigger; None without a storage section.
    async fn account(&mut self, config: &Config) -> Result<Option<Opened>, ()> {
        let Some(storage) = &config.storage else {
            self.found("storage", &account::Local);
            return Ok(None);
        };
        let opened = match account::open(storage) {
            Ok(opened) => opened,
            Err(problem) => {
                self.found("storage", &problem);
                return Err(());
            }
        };
        let token = token::look(&opened.access).await;
        if !self.found("token", &token) {
            for check in ["state", "clock", "queue"] {
                self.found(check, &NotChecked("the token"));
            }
            return Err(());
        }
        let state = opened.state_container(storage);
        let probed = access::probe(&opened.store, &state.with_key("doctor/")).await;
        let skew = probed.as_ref().ok().map(clock::decide);
        let emulator = storage.is_emulator();
        let state = access::StateAccess {
            container: storage.state_container.clone(),
            emulator,
            way: Way::to_account(&opened.access),
            probed: probed.map(|_| ()),
        };
        let state_is_well = self.found("state", &state);
        match skew {
            Some(skew) => self.found("clock", &skew),
            None if state_is_well => self.found("clock", &clock::Clock::Emulator),
            None => self.found("clock", &NotChecked("the state")),
        };
        for finding in queue::look(&opened.access, storage).await {
            self.found("queue", &finding);
        }
        self.found("trigger", &trigger::look(opened.access.account(), &|name| std::env::var(name).ok()));
        Ok(Some(opened))
    }

    fn table(&mut self, looked: dataset::Looked) -> Option<firn_table::LoadedTable> {
        self.found("table", &looked.finding);
        looked.table
    }

    async fn soft_delete(&mut self, access: &AzureAccount, places: &[Place]) {
        let mut accounts = vec![access.clone()];
        for place in places.iter().filter(|place| !place.id.is_local()) {
            if accounts.iter().all(|known| known.account() != place.id.account)
                && let Some(other) = access.sibling(&place.id.account)
            {
                accounts.push(other);
            }
        }
        for account in accounts {
            self.found("soft delete", &soft_delete::look(&account).await);
        }
    }
}

fn table_store(account: Option<&Opened>) -> TableStore {
    let mut stores = RoutingStore::new();
    if let Some(opened) = account {
        stores = stores
            .with_account(opened.access.account(), Arc::new(opened.store.clone()))
            .with_siblings_of(&opened.access, AzureOptions::default());
    }
    let stores: Arc<dyn BlobStore> = Arc::new(stores);
    TableStore::new(stores).with_default_account(account.map(|opened| opened.access.account()))
}

/// Where the state lies; None when it has no place, which whoever needs it says.
fn state_root(config: &Config, account: Option<&Opened>) -> Option<BlobId> {
    match (&config.storage, account) {
        (Some(storage), Some(opened)) => Some(opened.state_container(storage)),
        _ => config.catalog.warehouse_folder().map(|folder| BlobId::local(folder.join("firn-state").to_string_lossy())),
    }
}
