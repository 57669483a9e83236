//! The in-flight records of one dataset, read once for a pass.

use std::collections::{BTreeMap, HashMap};

use firn_compact::HostServices;
use firn_model::Rule;
use firn_state::{Address, InflightRecord, LeftoverDecision, Read, Situation, StateError, StateStore, decide_leftover};
use futures::{StreamExt, stream};

use super::state_error;
use crate::report::PassError;

/// Documents that are read or changed at once.
pub(crate) const AT_ONCE: usize = 16;

/// Records by the fingerprint of their partition.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// What stands in a record's place and is none.
    damaged: Vec<Address<InflightRecord>>,
    found: HashMap<String, (Address<InflightRecord>, Read<InflightRecord>)>,
}

impl Records {
    /// Reads the records of a dataset. Read before its table is loaded: what a worker finishes in between is merged in the table
    /// that is planned, and so not asked for again.
    pub(crate) async fn read(state: &StateStore, dataset: &str) -> Result<Self, PassError> {
        let listed = state.list_inflight(Some(dataset)).await.map_err(state_error)?;
        let read = stream::iter(listed).map(|listed| async move {
            let read = state.read_listed(&listed).await;
            (listed.address, read)
        });
        let mut records = Self::default();
        let mut read = read.buffer_unordered(AT_ONCE);
        while let Some((address, read)) = read.next().await {
            match read {
                Ok(Some(read)) => {
                    records.found.insert(address.name().to_owned(), (address, read));
                }
                Ok(None) => {}
                // One record that is no record costs its partition, not the dataset.
                Err(error @ StateError::Newer { .. }) => tracing::error!(%error, "record passed over"),
                Err(error @ StateError::Unreadable { .. }) => {
                    tracing::error!(%error, "record passed over");
                    records.damaged.push(address);
                }
                Err(error) => return Err(state_error(error)),
            }
        }
        Ok(records)
    }

    /// Deletes what is no record, unless a worker holds it: its partition would never be compacted again. The attempts that it had counted are
    /// lost; the queue counts its own.
    pub(crate) async fn clear_damaged(&self, state: &StateStore) -> Result<(), PassError> {
        for address in &self.damaged {
            state.clear_damaged(address).await.map_err(state_error)?;
        }
        Ok(())
    }

    /// Whether nothing of the dataset is queued, being worked on, parked or cooling.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Partitions that are queued or being worked on, by their pass.
    pub(crate) fn passes(&self) -> BTreeMap<String, u64> {
        let mut passes = BTreeMap::new();
        let running = self.found.values().map(|(_, read)| &read.value).filter(|record| !record.is_at_rest());
        for record in running {
            *passes.entry(record.pass.clone()).or_default() += 1;
        }
        passes
    }

    /// The record of a partition, for its dispatch.
    pub(crate) fn take(&mut self, fingerprint: &str) -> Option<Read<InflightRecord>> {
        self.found.remove(fingerprint).map(|(_, read)| read)
    }

    /// The rule of a record whose message is unsent or lost: the partition is asked for by it once more, else nobody would send
    /// again what only a scheduled time or a person selects.
    pub(crate) fn silent_rule(&self, fingerprint: &str, situation: &Situation) -> Option<Rule> {
        let (_, Read { value: record, .. }) = self.found.get(fingerprint)?;
        let silent = !record.is_at_rest() && decide_leftover(record, situation) != LeftoverDecision::Keep;
        silent.then_some(record.rule)
    }

    /// Deletes records that nothing asks for any more, and says how many. What is left here was not selected.
    pub(crate) async fn forget_leftovers(self, host: &HostServices, situation: &Situation) -> u64 {
        let mut forgotten = 0;
        for (_, (address, Read { value, version })) in self.found {
            let LeftoverDecision::Forget { reason } = decide_leftover(&value, situation) else { continue };
            match host.state.delete(&address, &version, None).await {
                Ok(_) => {
                    tracing::info!(dataset = value.dataset, partition = ?value.partition, "record deleted: {reason}");
                    forgotten += 1;
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => tracing::warn!(%error, "a record that nothing asks for stays"),
            }
            // Its parked entry stays for the person who reads it.
        }
        forgotten
    }
}
