//! Where each document lies below the root of the state.

use std::fmt;
use std::marker::PhantomData;

use firn_model::BlobId;

use crate::inflight::InflightRecord;
use crate::parked::ParkedRecord;
use crate::passes::PassRecord;
use crate::ticks::{Looks, MaintenanceTick, TickRecord};

/// The name of a document and what it holds.
pub struct Address<T> {
    id: BlobId,
    holds: PhantomData<fn() -> T>,
}

impl<T> Address<T> {
    pub(crate) fn new(id: BlobId) -> Self {
        Self { id, holds: PhantomData }
    }

    /// The blob, for its lease and for messages.
    pub fn blob(&self) -> &BlobId {
        &self.id
    }

    /// The last part of its name: the fingerprint of a partition, the id of a pass or a parked entry.
    pub fn name(&self) -> &str {
        self.id.key.rsplit('/').next().unwrap_or_default()
    }
}

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        Self::new(self.id.clone())
    }
}

impl<T> PartialEq for Address<T> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<T> Eq for Address<T> {}

impl<T> fmt::Debug for Address<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.id)
    }
}

/// The root of the state: a container, or a folder of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRoot(BlobId);

impl StateRoot {
    /// Below `id`: the id of a container or prefix, or of a folder, with or without a slash at its end.
    pub fn new(id: BlobId) -> Self {
        Self(id)
    }

    /// Whether it lies in the folder or prefix `location`. A table's location must never hold the state: cleaning the table
    /// would find it there.
    pub fn lies_below(&self, location: &BlobId) -> bool {
        let folder = |id: &BlobId| format!("{}/", id.key.trim_end_matches('/'));
        let same_place = self.0.account == location.account && self.0.container == location.container;
        let below = location.key.trim_end_matches('/').is_empty() || folder(&self.0).starts_with(&folder(location));
        same_place && below
    }

    fn at<T>(&self, path: &str) -> Address<T> {
        Address::new(self.below(path))
    }

    pub(crate) fn below(&self, path: &str) -> BlobId {
        let root = self.0.key.trim_end_matches('/');
        let slash = if root.is_empty() && !self.0.is_local() { "" } else { "/" };
        self.0.with_key(format!("{root}{slash}{path}"))
    }

    /// `ticks/<function>`.
    pub fn tick(&self, function: &str) -> Address<TickRecord> {
        self.at(&format!("ticks/{}", segment(function)))
    }

    /// `ticks/<function>` of a maintenance function.
    pub fn maintenance_tick(&self, function: &str) -> Address<MaintenanceTick> {
        self.at(&format!("ticks/{}", segment(function)))
    }

    /// `looks/<dataset>`.
    pub fn looks(&self, dataset: &str) -> Address<Looks> {
        self.at(&format!("looks/{}", segment(dataset)))
    }

    /// `inflight/<dataset>/<fingerprint>`; the fingerprint is [`firn_model::PartitionKey::fingerprint`].
    pub fn inflight(&self, dataset: &str, fingerprint: &str) -> Address<InflightRecord> {
        self.at(&format!("inflight/{}/{}", segment(dataset), segment(fingerprint)))
    }

    /// `parked/<id>`.
    pub fn parked(&self, id: &str) -> Address<ParkedRecord> {
        self.at(&format!("parked/{}", segment(id)))
    }

    /// `passes/<pass>`.
    pub fn pass(&self, pass: &str) -> Address<PassRecord> {
        self.at(&format!("passes/{}", segment(pass)))
    }

    /// `reports/<pass>.json`: the plan of a dry run by message.
    pub fn report(&self, pass: &str) -> Address<serde_json::Value> {
        self.at(&format!("reports/{}.json", segment(pass)))
    }

    /// `turns/<table uuid>`: the blob whose lease is a table's turn to commit.
    pub fn turn(&self, table_uuid: &str) -> BlobId {
        self.below(&format!("turns/{}", segment(table_uuid)))
    }
}

/// One segment of a name, whatever stands in it: names come from messages too, and must not leave their folder.
pub(crate) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0);
        match plain {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "~{byte:02x}");
            }
        }
    }
    if out.ends_with('.') {
        // Azure drops dots at the end of a name.
        out.truncate(out.len() - 1);
        out.push_str("~2e");
    }
    out
}
