//! The store of a table whose catalog hands out signatures: renewed ahead of their end, over the configured store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use firn_storage::{AzureAccount, AzureOptions, AzureStore, BlobStore, Layer, OverlayStore, SasSource, TokenError};

use super::session::Session;
use super::vended::{Place, Signature};
use crate::error::Source;
use crate::ident::TableIdent;
use crate::io::TableStore;

/// A signature is renewed when it has less left, or less than a fifth of what it had when it came.
const AHEAD: Duration = Duration::from_secs(300);
/// After a renewal that failed, or was asked for because of a refusal, nobody asks for so long.
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
    held: RwLock<BTreeMap<Place, Held>>,
    /// Whoever holds it asks; when it may be asked again.
    renewing: tokio::sync::Mutex<Option<SystemTime>>,
}

/// A signature, and what it had left when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    signature: Signature,
    lifetime: Duration,
}

impl Held {
    fn new(signature: Signature) -> Self {
        let mut held = Self { signature, lifetime: Duration::ZERO };
        held.lifetime = held.left();
        held
    }

    fn left(&self) -> Duration {
        match self.signature.ends {
            Some(ends) => ends.duration_since(SystemTime::now()).unwrap_or_default(),
            None => Duration::MAX,
        }
    }

    fn is_to_be_renewed(&self) -> bool {
        self.left() <= AHEAD.min(self.lifetime / 5)
    }
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
            // A sweep lists and deletes as one and the same.
            let sweeps = signature.lists && signature.deletes;
            layers.push(Layer {
                prefix: place.prefix.clone(),
                store: Arc::new(self.way_to(place, account)?),
                lists: sweeps,
                deletes: sweeps,
            });
        }
        let empty = layers.is_empty();
        self.signatures.hold(signatures);
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
    fn held(&self, place: &Place) -> Option<Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// A place that the catalog names no more keeps its last signature: the service says what it thinks of it.
    fn hold(&self, signatures: BTreeMap<Place, Signature>) {
        let mut all = self.held.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(signatures.into_iter().map(|(place, signature)| (place, Held::new(signature))));
    }

    /// The signature for the next request. One caller renews it; the others go on with the old one as long as it is good.
    async fn current(&self, place: &Place) -> Result<Signature, TokenError> {
        let held = self.held(place).ok_or_else(|| self.none("the catalog hands out none for this place"))?;
        if !held.is_to_be_renewed() {
            return Ok(held.signature);
        }
        let mut renewing = match self.renewing.try_lock() {
            Ok(renewing) => renewing,
            Err(_) if held.left() > Duration::ZERO => return Ok(held.signature),
            Err(_) => self.renewing.lock().await,
        };
        // Another caller was faster, or has just failed.
        let mut failed = None;
        if self.held(place).as_ref() == Some(&held) && !is_paused(*renewing) {
            failed = self.renew(&mut renewing).await.err();
        }
        let newest = self.held(place).unwrap_or(held);
        if newest.left() == Duration::ZERO {
            // A catalog that hands out what has ended (its clock, its cache) is not asked for each request.
            if failed.is_none() && !is_paused(*renewing) {
                *renewing = Some(SystemTime::now() + PAUSE);
            }
            return Err(self.none(&failed.map_or_else(|| "the catalog gave no other".to_owned(), |e| e.to_string())));
        }
        Ok(newest.signature)
    }

    /// Another signature than `refused`: one that came meanwhile, or one that is asked for now, unless that was done a moment ago.
    async fn another(&self, place: &Place, refused: &str) -> Option<Signature> {
        let other = || self.held(place).map(|held| held.signature).filter(|held| held.query.expose() != refused);
        if let Some(newer) = other() {
            return Some(newer);
        }
        let mut renewing = self.renewing.lock().await;
        if other().is_none() && !is_paused(*renewing) && self.renew(&mut renewing).await.is_ok() {
            // Who may not do something at all is refused for each signature.
            *renewing = Some(SystemTime::now() + PAUSE);
        }
        other()
    }

    async fn renew(&self, renewing: &mut Option<SystemTime>) -> Result<(), Source> {
        match self.session.signatures(&self.ident).await {
            Ok(signatures) => {
                *renewing = None;
                self.hold(signatures);
                Ok(())
            }
            Err(error) => {
                *renewing = Some(SystemTime::now() + PAUSE);
                tracing::warn!(table = %self.ident, "vended credentials could not be renewed yet: {error}");
                Err(error.into())
            }
        }
    }

    fn none(&self, why: &str) -> TokenError {
        TokenError::Later {
            credential: format!("account: the storage credentials that the catalog vends with `{}`", self.ident),
            detail: format!("they have ended and could not be renewed: {why}"),
            remedy: "look whether the catalog answers; Firn tries again",
            retry_after: PAUSE,
            reached: true,
        }
    }
}

fn is_paused(until: Option<SystemTime>) -> bool {
    until.is_some_and(|until| until > SystemTime::now())
}

/// The signatures for one place.
#[derive(Debug)]
struct OfPlace {
    all: Arc<Signatures>,
    place: Place,
}

#[async_trait]
impl SasSource for OfPlace {
    async fn sas(&self) -> Result<String, TokenError> {
        Ok(self.all.current(&self.place).await?.query.expose().to_owned())
    }

    async fn another(&self, refused: &str) -> Option<String> {
        Some(self.all.another(&self.place, refused).await?.query.expose().to_owned())
    }
}
