//! Where the parts are put together: stores, catalog and budgets from the configuration.

use std::sync::Arc;
use std::time::Duration;

use firn_columnar::{StopFlag, sweep_stale};
use firn_compact::{HostServices, LeaseTurns, MemoryBudget, Services};
use firn_config::Config;
use firn_state::{StateStore, account_of};
use firn_storage::azure::{AzureAccount, AzureOptions, AzureQueue, AzureStore};
use firn_storage::{BlobStore, Clock, Queue, RoutingStore};
use firn_table::catalog::later::open_or_later;
use firn_table::{Catalog, TableStore};
use firn_telemetry::Emitter;

use crate::load::pass_error;
use crate::queue::by_message::Planner;
use crate::queue::{queue_error, state_error};
use crate::report::PassError;

/// Opens what a pass works with. Temporary files of runs that died are removed on the way.
///
/// # Errors
/// [`PassError::Usage`] for what this version cannot use, [`PassError::Unavailable`] for what is not there.
pub(crate) async fn open(config: &Config) -> Result<Services, PassError> {
    let account = Account::of(config)?;
    open_with(config, account.as_ref()).await
}

/// Opens what the functions of the host work with: the services of a pass, state, queue and the process's memory. Creates the
/// container of the state and the queue where they are missing.
///
/// `run_limit` is the time that one message may be worked on, 80 % of the host's `functionTimeout`; None: without limit.
///
/// # Errors
/// [`PassError::Usage`] without a `storage` section or for what this version cannot use, [`PassError::Unavailable`] for what is not there.
pub async fn open_host(
    config: Arc<Config>,
    emitter: Emitter,
    run_limit: Option<Duration>,
) -> Result<HostServices, PassError> {
    let Queued { account, state, queue, poison } = open_queue(&config).await?;
    Ok(HostServices {
        compact: open_for_messages(&config, &account).await?,
        queue: Arc::new(queue),
        poison: Arc::new(poison),
        emitter,
        clock: Clock::system(),
        turns: Some(Arc::new(LeaseTurns::new(state.clone()))),
        state: Arc::new(state),
        memory: MemoryBudget::new(process_memory_mb(&config)),
        run_limit,
        fan_out: Arc::new(Planner),
        config,
    })
}

/// The largest `memoryMb` that a job may ask for: with less, that job would get more than is counted for it.
fn process_memory_mb(config: &Config) -> u64 {
    let of_datasets = config.datasets.iter().map(|dataset| dataset.compaction.memory_mb);
    of_datasets.fold(config.compaction.settings.memory_mb, u64::max)
}

/// The state of the host path, for who only looks at it. None: without a `storage` section there is none.
pub(crate) fn look_at_state(config: &Config) -> Result<Option<StateStore>, PassError> {
    let state = config.storage.as_ref().zip(Account::of(config)?);
    Ok(state.map(|(storage, account)| StateStore::as_it_is(account.store, &storage.state_container)))
}

/// The store of whatever blobs the configuration has a credential for.
///
/// # Errors
/// [`PassError::Usage`] for what this version cannot use.
pub fn open_store(config: &Config) -> Result<Arc<dyn BlobStore>, PassError> {
    Ok(table_store(Account::of(config)?.as_ref()).blobs().clone())
}

/// What lies in the storage account beside the tables.
pub(crate) struct Queued {
    account: Account,
    pub(crate) state: StateStore,
    pub(crate) queue: AzureQueue,
    /// Not created here: the host does, with the first message that it gives up.
    poison: AzureQueue,
}

/// Opens state and queue, and creates what is missing of them.
///
/// # Errors
/// [`PassError::Usage`] without a `storage` section, [`PassError::Unavailable`] for what does not answer.
pub(crate) async fn open_queue(config: &Config) -> Result<Queued, PassError> {
    let Some((storage, account)) = config.storage.as_ref().zip(Account::of(config)?) else {
        let message = "there is no queue without a storage section; write for example\n  \
                       storage: { connectionString: \"UseDevelopmentStorage=true\" }";
        return Err(PassError::Usage(format!("{}: {message}", config.file)));
    };
    let state = StateStore::in_container(account.store.clone(), &storage.state_container).await.map_err(state_error)?;
    let opened = |name: &str| {
        AzureQueue::open(&account.access, name).map_err(|error| PassError::Usage(format!("storage.queue: {error}")))
    };
    let (queue, poison) = (opened(&storage.queue)?, opened(&storage.poison_queue())?);
    queue.create().await.map_err(queue_error)?;
    Ok(Queued { account, state, queue, poison })
}

async fn open_with(config: &Config, account: Option<&Account>) -> Result<Services, PassError> {
    let store = table_store(account);
    let access = account.map(|account| &account.access);
    Ok(services(firn_table::catalog::open(&config.catalog, store, access).await.map_err(pass_error)?))
}

/// Messages come whether the catalog answers or not: one that does not for now, or lets nobody in, is opened when it is used.
async fn open_for_messages(config: &Arc<Config>, account: &Account) -> Result<Services, PassError> {
    let (section, store, access) = (Arc::clone(config), table_store(Some(account)), account.access.clone());
    let name = section.catalog.name().to_owned();
    let catalog = open_or_later(&name, move || {
        let (section, store, access) = (Arc::clone(&section), store.clone(), access.clone());
        async move { firn_table::catalog::open(&section.catalog, store, Some(&access)).await }
    });
    Ok(services(catalog.await.map_err(pass_error)?))
}

fn services(catalog: Arc<dyn Catalog>) -> Services {
    let temp_root = std::env::temp_dir();
    if let Err(error) = sweep_stale(&temp_root) {
        tracing::warn!(%error, "temporary files of earlier runs could not be removed");
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Services { catalog, temp_root, threads, stop: StopFlag::default() }
}

/// The storage account of the configuration.
struct Account {
    access: AzureAccount,
    store: AzureStore,
}

impl Account {
    fn of(config: &Config) -> Result<Option<Self>, PassError> {
        let Some(storage) = &config.storage else { return Ok(None) };
        let access = account_of(storage).map_err(state_error)?;
        let store = AzureStore::new(&access, AzureOptions::default())
            .map_err(|error| PassError::Usage(format!("storage: {error}")))?;
        Ok(Some(Self { access, store }))
    }
}

/// Where tables lie: local files, the account itself, and with an identity every account that a location names.
fn table_store(account: Option<&Account>) -> TableStore {
    let mut stores = RoutingStore::new();
    if let Some(Account { access, store }) = account {
        stores = stores
            .with_account(store.account(), Arc::new(store.clone()))
            .with_siblings_of(access, AzureOptions::default());
    }
    let stores: Arc<dyn BlobStore> = Arc::new(stores);
    TableStore::new(stores).with_default_account(account.map(|account| account.store.account()))
}
