//! The full-text index of a data file: a tantivy index in a bundle, as a rule of one segment, documents in the order of the rows.

mod blob;
mod build;
mod folder;
mod index;
mod large;
mod rows;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use serde::{Deserialize, Serialize};

pub use build::{LEAST_ARENA_BYTES, TextBuilder};
pub(crate) use index::about;
pub use index::{TextAnswer, TextIndex};
pub use rows::RowSet;
pub use words::{MAX_WORD_BYTES, TOKENIZER};

/// What the footer says of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextAbout {
    /// Who can read the parts.
    pub engine: String,
    /// How values were cut into words.
    pub tokenizer: String,
    /// Bytes of a word that the index takes.
    pub max_word_bytes: usize,
    /// Words that were longer and are not in the index. When there are any, who looks for such a word reads the data file.
    pub dropped_words: u64,
    /// The columns that are in the index, all rows of them.
    pub columns: Vec<TextColumn>,
    /// Its segments, in the order of the rows.
    pub segments: Vec<TextSegment>,
}

/// A segment: the rows behind those of the segments before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextSegment {
    /// Name of its files, without the ending.
    pub name: String,
    /// Rows.
    pub rows: u64,
}

/// A column in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextColumn {
    /// Name in the table when the index was built.
    pub name: String,
    /// Field id.
    pub field_id: i32,
    /// Field of the index.
    pub field: String,
    /// Values that are null.
    pub nulls: u64,
}

/// Version of tantivy that wrote an index, with what differs from its ordinary format.
pub(crate) const ENGINE: &str = "tantivy 0.27, sstable dictionary";
