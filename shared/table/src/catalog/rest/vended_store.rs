//! The store of a table whose catalog hands out signatures: renewed ahead of their end, over the configured store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use firn_storage::{AzureAccount, AzureOptions, AzureStore, BlobStore, Layer, OverlayStore, SasSource};

use super::session::Session;
use super::vended::{Place, Signature};
use crate::error::Source;
use crate::ident::TableIdent;
use crate::io::TableStore;

/// A signature is renewed when it has less left.
const AHEAD: Duration = Duration::from_secs(300);
/// After a renewal that failed nobody asks for so long, as long as the signature is good.
const PAUSE: Duration = Duration::from_secs(15);

/// The signatures of one table, and the connections that use them.
#[derive(Debug)]
pub(super) struct Vended {
    signatures: Arc<Signatures>,
    stores: Mutex<BTreeMap<Place, AzureStore>>,
}

/// The signatures of one table, renewed as long as somebody uses them.
#[derive(Debug)]
struct Signatures {
    session: Arc<Session>,
    ident: TableIdent,
    held: RwLock<BTreeMap<Place, Signature>>,
    /// Whoever holds it asks; when it may be asked again.
    renewing: tokio::sync::Mutex<Option<SystemTime>>,
}

impl Vended {
    pub(super) fn new(session: &Arc<Session>, ident: &TableIdent) -> Self {
        let signatures = Signatures {
            session: Arc::clone(session),
            ident: ident.clone(),
            held: RwLock::default(),
            renewing: tokio::sync::Mutex::default(),
        };
        Self { signatures: Arc::new(signatures), stores: Mutex::default() }
    }

    /// The store of a table with these signatures; `configured` where there are none. `account` is the configured account, whose
    /// address is known.
    pub(super) fn store(
        &self,
        signatures: BTreeMap<Place, Signature>,
        configured: &TableStore,
        account: Option<&AzureAccount>,
    ) -> Result<TableStore, Source> {
        let mut layers = Vec::new();
        for (place, signature) in &signatures {
            layers.push(Layer {
                prefix: place.prefix.clone(),
                store: Arc::new(self.way_to(place, account)?),
                lists: signature.lists,
                deletes: signature.deletes,
            });
        }
        let empty = layers.is_empty();
        *self.signatures.held.write().unwrap_or_else(PoisonError::into_inner) = signatures;
        if empty {
            return Ok(configured.clone());
        }
        let overlay: Arc<dyn BlobStore> = Arc::new(OverlayStore::new(configured.blobs().clone(), layers));
        Ok(configured.clone().with_blobs(overlay))
    }

    /// One set of connections for a place, however often the table is loaded.
    fn way_to(&self, place: &Place, configured: Option<&AzureAccount>) -> Result<AzureStore, Source> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(place) {
            return Ok(store.clone());
        }
        let account = &place.prefix.account;
        let known = configured.filter(|known| known.account() == account).map(|known| known.blob_endpoint().to_owned());
        let named = || place.host.as_ref().map(|host| format!("https://{}", host.replacen(".dfs.", ".blob.", 1)));
        let endpoint = known.or_else(named);
        let signatures = Arc::new(OfPlace { all: Arc::clone(&self.signatures), place: place.clone() });
        let account = AzureAccount::with_vended(account, endpoint.as_deref(), signatures)?;
        let store = AzureStore::new(&account, AzureOptions::default())?;
        stores.insert(place.clone(), store.clone());
        Ok(store)
    }
}

impl Signatures {
    fn held(&self, place: &Place) -> Option<Signature> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// The signature for the next request. One caller renews it; the others go on with the old one as long as it is good.
    async fn current(&self, place: &Place) -> Option<Signature> {
        let held = self.held(place)?;
        let left = left(&held);
        if left > AHEAD {
            return Some(held);
        }
        let mut renewing = match self.renewing.try_lock() {
            Ok(renewing) => renewing,
            Err(_) if left > Duration::ZERO => return Some(held),
            Err(_) => self.renewing.lock().await,
        };
        // Another caller was faster, or has just failed.
        let paused = renewing.is_some_and(|until| until > SystemTime::now());
        if let Some(newer) = self.held(place).filter(|newer| *newer != held || paused) {
            return Some(newer);
        }
        match self.renewed().await {
            Ok(signatures) => {
                *renewing = None;
                let mut all = self.held.write().unwrap_or_else(PoisonError::into_inner);
                // A place that the catalog names no more keeps its last signature: the service says what it thinks of it.
                all.extend(signatures);
            }
            Err(error) => {
                *renewing = Some(SystemTime::now() + PAUSE);
                tracing::warn!(table = %self.ident, left_seconds = left.as_secs(), "vended credentials could not be renewed yet: {error}");
            }
        }
        self.held(place)
    }

    async fn renewed(&self) -> Result<BTreeMap<Place, Signature>, Source> {
        Ok(self.session.signatures(&self.ident).await?)
    }
}

fn left(signature: &Signature) -> Duration {
    match signature.ends {
        Some(ends) => ends.duration_since(SystemTime::now()).unwrap_or_default(),
        None => Duration::MAX,
    }
}

/// The signatures for one place.
#[derive(Debug)]
struct OfPlace {
    all: Arc<Signatures>,
    place: Place,
}

#[async_trait]
impl SasSource for OfPlace {
    async fn sas(&self) -> String {
        let signature = self.all.current(&self.place).await;
        signature.map(|signature| signature.query.expose().to_owned()).unwrap_or_default()
    }
}
