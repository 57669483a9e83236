//! Partitions that were left after a look into the footers of their files, and need no second look while their files are the same: days that
//! are finished would otherwise be opened again at each tick, as many as a table has.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use firn_model::{LeftReason, Rule};
use firn_state::{Address, Look, Looks, Read, StateStore, Version};
use firn_table::PartitionFacts;

/// The looks of a dataset, as they were read and as they are to be written.
pub(super) struct KnownLooks {
    address: Address<Looks>,
    version: Option<Version>,
    looks: Looks,
    changed: bool,
}

impl KnownLooks {
    /// Reads them. They only save work: what cannot be read is looked up again.
    pub(super) async fn read(state: &StateStore, dataset: &str, key: String) -> Self {
        let address = state.root().looks(dataset);
        let (looks, version) = match state.read(&address).await {
            Ok(Some(Read { value, version })) => (value, Some(version)),
            Ok(None) => (Looks::default(), None),
            Err(error) => {
                tracing::warn!(dataset, %error, "what was seen of finished partitions is not known and looked up again");
                (Looks::default(), None)
            }
        };
        if looks.key == key {
            return Self { address, version, looks, changed: false };
        }
        Self { address, version, looks: Looks { key, ..Looks::default() }, changed: true }
    }

    /// What the same files were left for under the same rules.
    pub(super) fn find(&self, fingerprint: &str, files: &str) -> Option<&Look> {
        self.looks.partitions.get(fingerprint).filter(|look| look.files == files)
    }

    /// Notes what files were left for.
    pub(super) fn note(&mut self, fingerprint: &str, files: String, rule: Rule, reason: &LeftReason) {
        let look = Look { files, rule, reason: reason.to_string() };
        self.looks.partitions.insert(fingerprint.to_owned(), look);
        self.changed = true;
    }

    /// Writes what is new, without partitions that are no more.
    pub(super) async fn write(mut self, state: &StateStore, live: &HashSet<String>) {
        let before = self.looks.partitions.len();
        self.looks.partitions.retain(|fingerprint, _| live.contains(fingerprint));
        if !self.changed && before == self.looks.partitions.len() {
            return;
        }
        match state.follow(&self.address, &self.looks, self.version.as_ref()).await {
            Ok(_) => {}
            Err(error) if error.is_conflict() => tracing::debug!("another planner noted its looks first"),
            Err(error) => {
                tracing::warn!(%error, "what was seen of finished partitions is not noted and looked up again")
            }
        }
    }
}

/// The files of a partition and the rules that it is planned by, as one text.
pub(super) fn files_and_rules(facts: &PartitionFacts, rules: &[Rule]) -> String {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    // Manifests may tell them in another order after they were rewritten.
    let mut files: Vec<_> = facts.files.iter().map(|file| (&file.path, file.data_sequence_number, file.size)).collect();
    files.sort();
    files.hash(&mut hasher);
    let mut deletes: Vec<_> = facts.deletes.iter().map(|delete| &delete.path).collect();
    deletes.sort();
    deletes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::{BlobId, FileFacts, FileFormat, PartitionKey};
    use firn_state::StateRoot;
    use firn_storage::MemoryStore;

    use super::*;

    fn facts(files: &[(&str, i64)]) -> PartitionFacts {
        let key = Arc::new(PartitionKey::unpartitioned(0));
        let file = |(path, number): &(&str, i64)| FileFacts {
            path: (*path).to_owned(),
            partition: key.clone(),
            data_sequence_number: *number,
            added_snapshot_id: None,
            added_position: None,
            size: 10,
            rows: 1,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: Vec::new(),
            key_range: None,
        };
        PartitionFacts { key: key.clone(), files: files.iter().map(file).collect(), deletes: Vec::new() }
    }

    #[test]
    fn the_same_files_under_the_same_rules_are_the_same() {
        let rules = [Rule::Cold, Rule::Tier];
        let one = files_and_rules(&facts(&[("a", 1), ("b", 2)]), &rules);
        assert_eq!(one, files_and_rules(&facts(&[("b", 2), ("a", 1)]), &rules), "in any order");
        for other in [&[("a", 1)][..], &[("a", 1), ("b", 3)], &[("a", 1), ("c", 2)]] {
            assert_ne!(one, files_and_rules(&facts(other), &rules), "{other:?}");
        }
        assert_ne!(one, files_and_rules(&facts(&[("a", 1), ("b", 2)]), &[Rule::Schedule, Rule::Cold, Rule::Tier]));
    }

    #[tokio::test]
    async fn a_look_holds_for_its_files_and_configuration_as_long_as_the_partition_lives() {
        let memory = Arc::new(MemoryStore::new());
        let root = StateRoot::new(BlobId::parse("abfss://state@acct.dfs.core.windows.net/").unwrap());
        let state = StateStore::new(memory.clone(), memory, root);
        let reason = LeftReason::OneSortedRun { files: 3 };
        let live = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<String>>();
        let read = async |key: &str| KnownLooks::read(&state, "readings", key.to_owned()).await;

        let mut looks = read("configured").await;
        looks.note("f1", "files".into(), Rule::Cold, &reason);
        looks.note("f2", "files".into(), Rule::Cold, &reason);
        looks.write(&state, &live(&["f1", "f2"])).await;
        let looks = read("configured").await;
        let found = looks.find("f1", "files").unwrap();
        assert_eq!((found.rule, found.reason.as_str()), (Rule::Cold, reason.to_string().as_str()));
        assert_eq!(looks.find("f1", "other files"), None);
        assert_eq!(looks.find("f3", "files"), None);
        looks.write(&state, &live(&["f1"])).await;
        assert_eq!(read("configured").await.find("f2", "files"), None, "the partition is no more");
        assert_eq!(read("configured another way").await.find("f1", "files"), None);
    }
}
