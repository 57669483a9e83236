//! Asking an index.

use std::sync::Arc;

use firn_model::BlobId;
use firn_storage::BlobStore;
use tantivy::query::{EnableScoring, PhraseQuery, Query as TantivyQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Index, SegmentReader, TERMINATED, Term};
use tokio::runtime::Handle;

use super::blob::BundleFolder;
use super::rows::RowSet;
use super::words::{MAX_WORD_BYTES, TOKENIZER};
use super::{TextAbout, TextSegment};
use crate::bundle::BundleReader;
use crate::bundle::ranged::RangedBundle;
use crate::contain::contain;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarKind};
use crate::query::{Expression, Leaf, Query};

/// What an index says to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextAnswer {
    /// These rows and no others match.
    Rows(RowSet),
    /// The index cannot tell: the data file has to be read. Why.
    Scan(String),
}

/// An open index.
#[derive(Clone)]
pub struct TextIndex {
    shared: Arc<Shared>,
}

struct Shared {
    bundle: BundleReader,
    about: TextAbout,
    index: Index,
    /// Each with the number of its first row.
    segments: Vec<(u64, SegmentReader)>,
    rows: u64,
}

impl TextIndex {
    /// Opens the index `id` of `expected`, by a few requests whatever its size.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`], or what the store says.
    pub async fn open(store: Arc<dyn BlobStore>, id: &BlobId, expected: &DataFile) -> Result<TextIndex, SidecarError> {
        TextIndex::of(BundleReader::open(store, id, SidecarKind::Text, Some(expected)).await?).await
    }

    /// The index in a bundle.
    ///
    /// # Errors
    /// As [`TextIndex::open`].
    pub async fn of(bundle: BundleReader) -> Result<TextIndex, SidecarError> {
        let about = about(&bundle)?;
        let (bytes, rows) = (RangedBundle::new(bundle.clone(), Handle::current()), bundle.footer().data.rows);
        let names = about.segments.clone();
        let opened = blocking(move || open(bytes, &names)).await;
        let (index, segments) = opened.map_err(|error| SidecarError::unusable(bundle.id(), error.to_string()))?;
        let found: u64 = segments.last().map_or(0, |(first, segment)| first + u64::from(segment.max_doc()));
        if found != rows {
            let detail = format!("it has {found} rows, its footer says {rows}");
            return Err(SidecarError::unusable(bundle.id(), detail));
        }
        Ok(TextIndex { shared: Arc::new(Shared { bundle, about, index, segments, rows }) })
    }

    /// What is in the index.
    pub fn about(&self) -> &TextAbout {
        &self.shared.about
    }

    /// The rows that match `query`.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] when the index turns out to be damaged, or cannot be read: the data file is read instead.
    pub async fn rows(&self, query: &Query) -> Result<TextAnswer, SidecarError> {
        let shared = Arc::clone(&self.shared);
        if let Some(reason) = shared.cannot_tell(query) {
            return Ok(TextAnswer::Scan(reason));
        }
        let query = query.clone();
        let asked = blocking(move || shared.evaluate(&query, &query.expression)).await;
        asked.map(TextAnswer::Rows).map_err(|error| SidecarError::unusable(self.shared.bundle.id(), error.to_string()))
    }
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextIndex")
            .field("blob", self.shared.bundle.id())
            .field("about", &self.shared.about)
            .finish_non_exhaustive()
    }
}

/// What a bundle says of the index in it.
///
/// # Errors
/// [`SidecarError::Unusable`] for an index that this program does not understand.
pub(crate) fn about(bundle: &BundleReader) -> Result<TextAbout, SidecarError> {
    let about: TextAbout = serde_json::from_value(bundle.footer().about.clone())
        .map_err(|error| SidecarError::unusable(bundle.id(), error.to_string()))?;
    if about.tokenizer != TOKENIZER || about.max_word_bytes != MAX_WORD_BYTES {
        let detail = format!("words were cut by `{}`, this program knows `{TOKENIZER}`", about.tokenizer);
        return Err(SidecarError::unusable(bundle.id(), detail));
    }
    Ok(about)
}

/// Runs what blocks on reads away from the threads of the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SidecarError> + Send + 'static,
) -> Result<T, SidecarError> {
    match tokio::task::spawn_blocking(move || contain("the full-text index", work)).await {
        Ok(result) => result,
        Err(error) => Err(SidecarError::Failed(error.to_string())),
    }
}

fn open(bytes: RangedBundle, names: &[TextSegment]) -> Result<(Index, Vec<(u64, SegmentReader)>), SidecarError> {
    let index = Index::open(BundleFolder::new(bytes))?;
    let segments = index.searchable_segments()?;
    if segments.len() != names.len() {
        let detail = format!("the index has {} segments, its footer says {}", segments.len(), names.len());
        return Err(SidecarError::Failed(detail));
    }
    let mut first = 0;
    let mut opened = Vec::with_capacity(names.len());
    for named in names {
        let segment = segments.iter().find(|segment| segment.id().uuid_string() == named.name);
        let segment =
            segment.ok_or_else(|| SidecarError::Failed(format!("the index has no segment {}", named.name)))?;
        let reader = SegmentReader::open(segment)?;
        if u64::from(reader.max_doc()) != named.rows {
            let detail = format!("segment {} has {} rows, not {}", named.name, reader.max_doc(), named.rows);
            return Err(SidecarError::Failed(detail));
        }
        opened.push((first, reader));
        first += named.rows;
    }
    Ok((index, opened))
}

impl Shared {
    /// Why the index is not enough for `query`.
    fn cannot_tell(&self, query: &Query) -> Option<String> {
        for column in query.asked_columns() {
            if !self.about.columns.iter().any(|indexed| indexed.field_id == column.field_id) {
                return Some(format!("column `{}` is not in the index", column.name));
            }
        }
        let too_long = |leaf: &&Leaf| leaf.words.iter().any(|word| word.len() > MAX_WORD_BYTES);
        if self.about.dropped_words > 0 && query.leaves.iter().any(|leaf| too_long(&leaf)) {
            return Some(format!("words of more than {MAX_WORD_BYTES} bytes are not in the index"));
        }
        None
    }

    fn evaluate(&self, query: &Query, expression: &Expression) -> Result<RowSet, SidecarError> {
        match expression {
            Expression::Leaf(leaf) => self.leaf(query, &query.leaves[*leaf]),
            Expression::All(parts) => self.combine(query, parts, RowSet::intersect),
            Expression::Any(parts) => self.combine(query, parts, RowSet::unite),
            Expression::Not(part) => {
                let mut rows = self.evaluate(query, part)?;
                rows.invert();
                Ok(rows)
            }
        }
    }

    fn combine(
        &self,
        query: &Query,
        parts: &[Expression],
        with: impl Fn(&mut RowSet, &RowSet),
    ) -> Result<RowSet, SidecarError> {
        let mut all: Option<RowSet> = None;
        for part in parts {
            let rows = self.evaluate(query, part)?;
            match &mut all {
                Some(all) => with(all, &rows),
                None => all = Some(rows),
            }
        }
        Ok(all.unwrap_or_else(|| self.no_rows()))
    }

    fn no_rows(&self) -> RowSet {
        RowSet::none(self.rows)
    }

    /// Rows that have the words, one after the other, in any of the columns asked.
    fn leaf(&self, query: &Query, leaf: &Leaf) -> Result<RowSet, SidecarError> {
        let mut rows = self.no_rows();
        if leaf.words.iter().any(|word| word.len() > MAX_WORD_BYTES) {
            // No word was dropped, so no row has it.
            return Ok(rows);
        }
        for column in query.columns_of(leaf) {
            let indexed = self.about.columns.iter().find(|indexed| indexed.field_id == column.field_id);
            let Some(indexed) = indexed else { continue };
            let field = self.index.schema().get_field(&indexed.field)?;
            self.add_matches(field, &leaf.words, &mut rows)?;
        }
        Ok(rows)
    }

    fn add_matches(&self, field: Field, words: &[String], rows: &mut RowSet) -> Result<(), SidecarError> {
        let terms: Vec<Term> = words.iter().map(|word| Term::from_field_text(field, word)).collect();
        let query: Box<dyn TantivyQuery> = match &terms[..] {
            [] => return Ok(()),
            [term] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic)),
            _ => Box::new(PhraseQuery::new(terms)),
        };
        let weight = query.weight(EnableScoring::disabled_from_schema(&self.index.schema()))?;
        for (first, segment) in &self.segments {
            let mut found = weight.scorer(segment, 1.0)?;
            let mut row = found.doc();
            while row != TERMINATED {
                rows.insert(first + u64::from(row));
                row = found.advance();
            }
        }
        Ok(())
    }
}
