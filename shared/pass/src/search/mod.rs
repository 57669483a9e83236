//! Search over the text columns of a dataset: by the index where a data file has one, by looking at every row where it has none. The rows
//! are the same either way.

mod deletes;
mod file;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_columnar::NameMapping;
use firn_compact::name_mapping;
use firn_config::{Config, Dataset};
use firn_model::{BlobId, FileFacts, PartitionKey};
use firn_sidecar::{DataFile, Query, SidecarColumns, SidecarError, SidecarKind, TextAnswer, TextIndex, sidecar_id};
use firn_table::{
    LoadedTable, OrderColumns, PartitionFacts, PartitionFilter, SizeLimits, TableIdent, delete_files, partition_facts,
    partition_stats, row_order, sidecar_uuid,
};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::load::{chosen, pass_error};
use crate::report::PassError;
use crate::wiring;
use deletes::{DeleteReader, FileDeletes};
use file::{FileSearch, Found};

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// The dataset; may be left out where the configuration has one only.
    pub dataset: Option<String>,
    /// The query (`firn_sidecar::query`).
    pub query: String,
    /// Rows at most.
    pub limit: Option<u64>,
    /// Look at every row, whatever indexes there are.
    pub scan: bool,
}

/// A row that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundRow {
    /// The dataset.
    pub dataset: String,
    /// The data file.
    pub path: String,
    /// Number of the row in it, from 0.
    pub row: u64,
    /// Its values by column.
    pub values: Map<String, Value>,
}

/// What a search did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchSummary {
    /// Rows that were found.
    pub rows: u64,
    /// Data files that were looked at.
    pub files: u64,
    /// Those that an index answered for.
    pub by_index: u64,
    /// Those whose rows were all looked at.
    pub by_scan: u64,
    /// Whether more rows match than the limit let through. The files behind them were not looked at.
    pub cut: bool,
}

/// Searches the head of a dataset's branch. `found` is called for each row, file by file; it says whether more are wanted.
///
/// # Errors
/// [`PassError::Usage`] for a query that cannot be understood or a dataset without text columns, [`PassError::Unavailable`] for what does not
/// answer, and for delete files that this version does not read (deletion vectors, other formats than Parquet) or that do not fit into
/// `memoryMb`.
pub async fn search(
    config: &Config,
    request: &SearchRequest,
    found: &mut (dyn FnMut(FoundRow) + Send),
) -> Result<SearchSummary, PassError> {
    let dataset = match &chosen(config, request.dataset.as_deref())?[..] {
        [one] => *one,
        several => {
            let names: Vec<&str> = several.iter().map(|dataset| dataset.name.as_str()).collect();
            return Err(PassError::Usage(format!("search needs --dataset, one of {}", names.join(", "))));
        }
    };
    let services = wiring::open(config).await?;
    let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
    let table = services.catalog.load(&ident).await.map_err(pass_error)?;
    let search = Search::new(&table, dataset, request)?;
    let mut summary = SearchSummary::default();
    let (partitions, deletes) = search.partitions().await?;
    for PartitionFacts { files, deletes: of_partition, .. } in partitions {
        let of_partition = deletes.read(of_partition, &files).await?;
        for file in files {
            summary.files += 1;
            // One row more than is told: whether there is one says whether the answer is cut.
            let left = request.limit.map(|limit| limit.saturating_sub(summary.rows).saturating_add(1));
            let rows = search.file(&file, of_partition.of(&file), left, &mut summary).await?;
            for (row, values) in rows {
                if request.limit == Some(summary.rows) {
                    summary.cut = true;
                    return Ok(summary);
                }
                summary.rows += 1;
                found(FoundRow { dataset: dataset.name.clone(), path: file.path.clone(), row, values });
            }
        }
    }
    Ok(summary)
}

struct Search<'a> {
    table: &'a LoadedTable,
    dataset: &'a Dataset,
    schema: SchemaRef,
    mapping: Option<NameMapping>,
    query: Query,
    location: BlobId,
    scan: bool,
}

impl<'a> Search<'a> {
    fn new(table: &'a LoadedTable, dataset: &'a Dataset, request: &SearchRequest) -> Result<Self, PassError> {
        let schema = table.arrow_schema().map_err(pass_error)?;
        let columns = SidecarColumns::resolve(&schema, &dataset.indexing_columns, &[], &[]);
        if let Some((_, reason)) = columns.left_out.first() {
            return Err(PassError::Usage(format!("{}: {reason}", dataset.key("tantivy.indexingColumns"))));
        }
        if columns.text.is_empty() {
            let key = dataset.key("tantivy.indexingColumns");
            return Err(PassError::Usage(format!("{key} is empty: name the text columns that are searched")));
        }
        let others: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let query = Query::parse_in_table(&request.query, &columns.text, &others)
            .map_err(|error| PassError::Usage(error.to_string()))?;
        let location = table.blob_id(table.location()).map_err(pass_error)?;
        let mapping = name_mapping(table).map_err(|error| PassError::Unavailable(error.to_string()))?;
        Ok(Self { table, dataset, schema, mapping, query, location, scan: request.scan })
    }

    /// The partitions in their order, the files of each in that of their commits, and who reads the delete files.
    async fn partitions(&self) -> Result<(Vec<PartitionFacts>, Arc<DeleteReader>), PassError> {
        let (table, branch) = (self.table, &self.dataset.branch);
        let order = row_order(&table.metadata, &OrderColumns::from(self.dataset))
            .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", self.dataset.name)))?;
        let all = partition_stats(table, branch, &PartitionFilter::all(), SizeLimits::default()).await;
        let mut partitions = Vec::new();
        for partition in all.map_err(pass_error)? {
            let wanted: HashSet<PartitionKey> = [PartitionKey::clone(&partition.key)].into();
            let facts = partition_facts(table, branch, &wanted, &order).await.map_err(pass_error)?;
            partitions.extend(facts.into_values());
        }
        let any = partitions.iter().any(|partition| !partition.deletes.is_empty());
        let files = if any { delete_files(table, branch).await.map_err(pass_error)? } else { HashMap::new() };
        let deletes = DeleteReader {
            table: table.clone(),
            schema: Arc::clone(&self.schema),
            mapping: self.mapping.clone(),
            files,
            most_bytes: (self.dataset.compaction.memory_mb << 20) / 2,
        };
        Ok((partitions, Arc::new(deletes)))
    }

    /// The matching rows of a file with their values.
    async fn file(
        &self,
        file: &FileFacts,
        deletes: FileDeletes,
        limit: Option<u64>,
        summary: &mut SearchSummary,
    ) -> Result<Vec<Found>, PassError> {
        let id = self.table.blob_id(&file.path).map_err(pass_error)?;
        let rows = if self.scan { None } else { self.ask_index(file, &id).await? };
        match rows {
            Some(_) => summary.by_index += 1,
            None => summary.by_scan += 1,
        }
        if rows.as_ref().is_some_and(|rows| rows.is_empty()) {
            return Ok(Vec::new());
        }
        let search = FileSearch {
            store: self.table.blobs().clone(),
            id,
            path: file.path.clone(),
            size: file.size,
            schema: Arc::clone(&self.schema),
            mapping: self.mapping.clone(),
            query: self.query.clone(),
            rows,
            deletes,
            limit: limit.unwrap_or(u64::MAX),
            handle: Handle::current(),
        };
        // Decoding blocks: it must not hold a thread of the runtime that serves its reads.
        let read = tokio::task::spawn_blocking(move || search.run()).await;
        let read =
            read.map_err(|error| PassError::Unavailable(format!("reading {} ended early: {error}", file.path)))?;
        read.map_err(|error| PassError::Unavailable(error.to_string()))
    }

    /// What the file's index says; None when the file has to be read.
    async fn ask_index(&self, file: &FileFacts, id: &BlobId) -> Result<Option<firn_sidecar::RowSet>, PassError> {
        let sidecar = sidecar_id(&self.location, &sidecar_uuid(id), SidecarKind::Text);
        let expected = DataFile::new(id, file.size, file.rows);
        let store: Arc<dyn firn_storage::BlobStore> = self.table.blobs().clone();
        let answer = match TextIndex::open(store, &sidecar, &expected).await {
            Ok(index) => index.rows(&self.query).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(TextAnswer::Rows(rows)) => Ok(Some(rows)),
            Ok(TextAnswer::Scan(reason)) => {
                tracing::info!(path = file.path, reason, "the index cannot tell, the file is read");
                Ok(None)
            }
            Err(SidecarError::Absent { .. }) => Ok(None),
            Err(error) => {
                tracing::warn!(path = file.path, %error, "the index is not used, the file is read");
                Ok(None)
            }
        }
    }
}
