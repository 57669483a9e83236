//! A note instead of an index: why a data file has none, so that no later pass reads it again to find that out.
//!
//! `<uuid>.none` beside the sidecars, JSON: `{"createdBy", "data": {"path", "size", "rows"}, "reason", "decidedOn": {…}}`. It holds as long
//! as what it was decided on is what it was.

use std::fmt;

use firn_model::BlobId;
use firn_storage::{BlobStore, PutCondition};
use serde::{Deserialize, Serialize};

use crate::bundle::created_by;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn};
use crate::text::{ENGINE, MAX_WORD_BYTES, TOKENIZER};

/// Ending of the names of notes.
pub const NOTE_ENDING: &str = "none";

/// Why a data file has no text index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoIndex {
    /// Who found that out.
    pub created_by: String,
    /// The data file.
    pub data: DataFile,
    /// Why, for a person.
    pub reason: String,
    /// What that rests on. Notes of Firn before this was written do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_on: Option<DecidedOn>,
}

/// What decides on an index beside the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidedOn {
    /// Field ids of the columns that the index would have, ascending.
    pub columns: Vec<i32>,
    /// How values are cut into words.
    pub tokenizer: String,
    /// Bytes of a word that the index takes.
    pub max_word_bytes: usize,
    /// Who writes the index.
    pub engine: String,
    /// `backfillWriters`.
    pub writers: Vec<String>,
    /// `memoryMb`.
    pub memory_mb: u64,
    /// `tempDiskMb`.
    pub temp_disk_mb: u64,
}

impl DecidedOn {
    /// What decides for this program.
    pub fn new(columns: &[SidecarColumn], writers: &[&str], memory_mb: u64, temp_disk_mb: u64) -> DecidedOn {
        let mut columns: Vec<i32> = columns.iter().map(|column| column.field_id).collect();
        columns.sort_unstable();
        DecidedOn {
            columns,
            tokenizer: TOKENIZER.into(),
            max_word_bytes: MAX_WORD_BYTES,
            engine: ENGINE.into(),
            writers: writers.iter().map(|pattern| (*pattern).to_owned()).collect(),
            memory_mb,
            temp_disk_mb,
        }
    }

    /// The first thing that is not what it was.
    fn changed_since(&self, then: &DecidedOn) -> Option<&'static str> {
        let words = |on: &DecidedOn| (on.tokenizer.clone(), on.max_word_bytes, on.engine.clone());
        [
            (self.columns != then.columns, "tantivy.indexingColumns"),
            (self.writers != then.writers, "backfillWriters"),
            (self.memory_mb != then.memory_mb, "memoryMb"),
            (self.temp_disk_mb != then.temp_disk_mb, "tempDiskMb"),
            (words(self) != words(then), "the index format"),
        ]
        .into_iter()
        .find_map(|(changed, what)| changed.then_some(what))
    }
}

/// Whether a note still says why its file has no index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteStanding {
    /// It does: the file is not looked at.
    Holds,
    /// It is of another file.
    OtherFile(String),
    /// It does not say what it rests on: the file is looked at again, once.
    Unfounded,
    /// This is not what it was: the file is looked at again, once.
    Changed(&'static str),
}

impl fmt::Display for NoteStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoteStanding::Holds => f.write_str("it holds"),
            NoteStanding::OtherFile(detail) => f.write_str(detail),
            NoteStanding::Unfounded => f.write_str("it does not say what it was decided on"),
            NoteStanding::Changed(what) => write!(f, "{what} has changed since"),
        }
    }
}

impl NoIndex {
    /// A note of this program.
    pub fn new(data: DataFile, reason: impl Into<String>, decided_on: DecidedOn) -> NoIndex {
        NoIndex { created_by: created_by(), data, reason: reason.into(), decided_on: Some(decided_on) }
    }

    /// Whether it still says why `data` has no index.
    pub fn standing(&self, data: &DataFile, now: &DecidedOn) -> NoteStanding {
        if let Some(detail) = self.data.differs_from(data) {
            return NoteStanding::OtherFile(detail);
        }
        match &self.decided_on {
            None => NoteStanding::Unfounded,
            Some(then) => now.changed_since(then).map_or(NoteStanding::Holds, NoteStanding::Changed),
        }
    }

    /// Reads a note.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`] for what is no note, or what the store says.
    pub async fn read(store: &dyn BlobStore, id: &BlobId) -> Result<NoIndex, SidecarError> {
        let bytes = store.read_all(id).await.map_err(SidecarError::of_read)?;
        serde_json::from_slice(&bytes).map_err(|error| SidecarError::unusable(id, error.to_string()))
    }

    /// Writes the note, in place of one that does not hold any more.
    ///
    /// # Errors
    /// What the store says.
    pub async fn write(&self, store: &dyn BlobStore, id: &BlobId) -> Result<(), SidecarError> {
        let bytes = serde_json::to_vec(self).map_err(|error| SidecarError::Failed(error.to_string()))?;
        store.put(id, bytes.into(), PutCondition::Any).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;
    use firn_storage::MemoryStore;
    use serde_json::json;

    use super::*;

    fn data() -> DataFile {
        DataFile { path: "/t/data/a.parquet".into(), size: 7, rows: 2 }
    }

    fn columns(field_ids: &[i32]) -> Vec<SidecarColumn> {
        let column = |field_id: &i32| SidecarColumn {
            name: format!("c{field_id}"),
            field_id: *field_id,
            data_type: DataType::Utf8,
        };
        field_ids.iter().map(column).collect()
    }

    fn decided_on(field_ids: &[i32], writers: &[&str], memory_mb: u64, temp_disk_mb: u64) -> DecidedOn {
        DecidedOn::new(&columns(field_ids), writers, memory_mb, temp_disk_mb)
    }

    #[tokio::test]
    async fn a_note_is_json_that_says_which_file_why_and_on_what() {
        let (store, id) = (MemoryStore::default(), BlobId::local("/t/_firn/a.none"));
        let absent = NoIndex::read(&store, &id).await.unwrap_err();
        assert!(matches!(absent, SidecarError::Absent { .. }), "{absent}");
        let note = NoIndex::new(data(), "written by `x`", decided_on(&[5, 3], &["^firn"], 512, 400));
        note.write(&store, &id).await.unwrap();
        let written: serde_json::Value = serde_json::from_slice(&store.read_all(&id).await.unwrap()).unwrap();
        assert_eq!(
            written,
            json!({
                "createdBy": created_by(), "data": {"path": "/t/data/a.parquet", "size": 7, "rows": 2},
                "reason": "written by `x`",
                "decidedOn": {
                    "columns": [3, 5], "tokenizer": "firn_words", "maxWordBytes": 255, "engine": ENGINE,
                    "writers": ["^firn"], "memoryMb": 512, "tempDiskMb": 400,
                },
            })
        );
        assert_eq!(NoIndex::read(&store, &id).await.unwrap(), note);
        // Another one takes its place.
        let later = NoIndex { reason: "it does not fit".into(), ..note };
        later.write(&store, &id).await.unwrap();
        assert_eq!(NoIndex::read(&store, &id).await.unwrap(), later);
        store.put(&id, "junk".into(), PutCondition::Any).await.unwrap();
        let junk = NoIndex::read(&store, &id).await.unwrap_err();
        assert!(matches!(junk, SidecarError::Unusable { .. }), "{junk}");
    }

    #[test]
    fn a_note_holds_until_what_it_was_decided_on_changes() {
        let then = decided_on(&[3, 5], &["^firn"], 512, 400);
        let note = NoIndex::new(data(), "why", then.clone());
        let standing = |now: &DecidedOn| note.standing(&data(), now);
        assert_eq!(standing(&decided_on(&[5, 3], &["^firn"], 512, 400)), NoteStanding::Holds);
        for (now, changed) in [
            (decided_on(&[3], &["^firn"], 512, 400), "tantivy.indexingColumns"),
            (decided_on(&[3, 5], &["^firn", "trino"], 512, 400), "backfillWriters"),
            (decided_on(&[3, 5], &["^firn"], 1024, 400), "memoryMb"),
            (decided_on(&[3, 5], &["^firn"], 512, 800), "tempDiskMb"),
            (DecidedOn { engine: "tantivy 9".into(), ..then.clone() }, "the index format"),
            (DecidedOn { max_word_bytes: 100, ..then.clone() }, "the index format"),
        ] {
            assert_eq!(standing(&now), NoteStanding::Changed(changed));
        }
        let other = DataFile { rows: 3, ..data() };
        assert!(matches!(note.standing(&other, &then), NoteStanding::OtherFile(_)));
    }

    /// As Firn wrote them before notes said what they rest on.
    #[test]
    fn an_old_note_is_read_and_has_its_file_looked_at_again() {
        let old = r#"{"createdBy": "Firn version 0.1.0", "data": {"path": "/t/data/a.parquet", "size": 7, "rows": 2}, "reason": "why"}"#;
        let note: NoIndex = serde_json::from_str(old).unwrap();
        assert_eq!((note.reason.as_str(), &note.decided_on), ("why", &None));
        assert_eq!(note.standing(&data(), &decided_on(&[3], &[], 512, 400)), NoteStanding::Unfounded);
    }
}
