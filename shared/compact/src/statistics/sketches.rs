//! The sketches of one data file: from its sidecar, else by reading the columns once. What was read is kept as a sidecar.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_columnar::{BatchLimit, ColumnarError, InputFile, NameMapping, ReadGate, StopFlag};
use firn_model::BlobId;
use firn_sidecar::{DataFile, NdvBuilder, NdvFile, NdvSidecar, SidecarColumn, SidecarError, SidecarKind, sidecar_id};
use firn_storage::BlobStore;
use firn_table::{LiveFile, LoadedTable, TableError, sidecar_uuid};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::StatisticsFailure;
use crate::open::{Opener, name_mapping};

/// Files that are read at once.
pub(super) const SCANS_AT_ONCE: usize = 2;
/// Rows counted at once.
const ROWS: usize = 8192;

/// What a file adds.
pub(super) struct FileSketches {
    /// One a column.
    pub(super) sketches: Vec<firn_sidecar::ndv::FileSketch>,
    pub(super) rows: u64,
    /// The file had no sketches that could be used.
    pub(super) scanned: bool,
}

/// Why there are none.
#[derive(Debug)]
pub(super) enum SketchesError {
    /// The run has no more time.
    Stopped,
    /// The file cannot be read.
    File { path: String, detail: String },
}

/// Gets the sketches of files of one table.
pub(super) struct Sketcher<'t> {
    table: &'t LoadedTable,
    location: BlobId,
    schema: SchemaRef,
    mapping: Option<NameMapping>,
    columns: Vec<SidecarColumn>,
    scans: Semaphore,
    stop: StopFlag,
}

impl<'t> Sketcher<'t> {
    pub(super) fn new(
        table: &'t LoadedTable,
        schema: SchemaRef,
        columns: Vec<SidecarColumn>,
        stop: StopFlag,
    ) -> Result<Self, StatisticsFailure> {
        let mapping = name_mapping(table)
            .map_err(|error| TableError::Damaged { ident: table.ident.clone(), detail: error.to_string() })?;
        let location = table.blob_id(table.location())?;
        Ok(Self { table, location, schema, mapping, columns, scans: Semaphore::new(SCANS_AT_ONCE), stop })
    }

    /// The sketches of a file.
    pub(super) async fn of_file(&self, file: LiveFile) -> Result<FileSketches, SketchesError> {
        if self.stop.is_set() {
            return Err(SketchesError::Stopped);
        }
        let unreadable = |detail: String| SketchesError::File { path: file.path.clone(), detail };
        let id = self.table.blob_id(&file.path).map_err(|error| unreadable(error.to_string()))?;
        let data = DataFile::new(&id, file.size, file.rows);
        let sidecar = sidecar_id(&self.location, &sidecar_uuid(&id), SidecarKind::Ndv);
        let store: Arc<dyn BlobStore> = self.table.blobs().clone();
        let (known, is_there) = match NdvSidecar::open(store, &sidecar, &data).await {
            Ok(sidecar) => (sidecar.sketches(&self.columns), true),
            Err(error) => {
                let is_there = !matches!(error, SidecarError::Absent { .. });
                (Err(error), is_there)
            }
        };
        match known {
            Ok(Some(sketches)) => return Ok(FileSketches { sketches, rows: file.rows, scanned: false }),
            Ok(None) | Err(SidecarError::Absent { .. }) => {}
            Err(error) => tracing::warn!(path = file.path, %error, "the sketches are not used, the file is read"),
        }
        let built = self.scan(&file).await?;
        self.keep(&built, &sidecar, &data, is_there).await;
        let sketches = built.opened(&sidecar, data).sketches(&self.columns);
        match sketches {
            Ok(Some(sketches)) => Ok(FileSketches { sketches, rows: file.rows, scanned: true }),
            Ok(None) => Err(unreadable("a sketch that was made a moment ago is missing".into())),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// So that the file need not be read again. Whoever cannot keep them has them all the same.
    async fn keep(&self, built: &NdvFile, id: &BlobId, data: &DataFile, is_there: bool) {
        let store = &**self.table.blobs();
        let written = match is_there {
            true => built.write_over(store, id, data).await,
            false => built.write(store, id, data).await,
        };
        if let Err(error) = written {
            tracing::warn!(path = data.path, %error, "the sketches of a data file could not be kept");
        }
    }

    /// Reads the columns of a file, one after the other, on a thread of its own.
    async fn scan(&self, file: &LiveFile) -> Result<NdvFile, SketchesError> {
        let unreadable = |detail: String| SketchesError::File { path: file.path.clone(), detail };
        if file.format != "parquet" {
            return Err(unreadable(format!("it is of format {}", file.format)));
        }
        let _permit = self.scans.acquire().await.map_err(|error| unreadable(error.to_string()))?;
        let scan = Scan {
            table: self.table.clone(),
            file: file.clone(),
            schema: Arc::clone(&self.schema),
            mapping: self.mapping.clone(),
            columns: self.columns.clone(),
            stop: self.stop.clone(),
            handle: Handle::current(),
        };
        match tokio::task::spawn_blocking(move || scan.run()).await {
            Ok(Ok(Some(built))) => Ok(built),
            Ok(Ok(None)) => Err(SketchesError::Stopped),
            Ok(Err(error)) => Err(unreadable(error.to_string())),
            Err(panic) => Err(unreadable(format!("reading it ended by a fault of the program: {panic}"))),
        }
    }
}

/// Everything that the thread needs.
struct Scan {
    table: LoadedTable,
    file: LiveFile,
    schema: SchemaRef,
    mapping: Option<NameMapping>,
    columns: Vec<SidecarColumn>,
    stop: StopFlag,
    handle: Handle,
}

impl Scan {
    /// None when the run was stopped.
    fn run(&self) -> Result<Option<NdvFile>, SidecarError> {
        let opener = Opener {
            table: &self.table,
            schema: &self.schema,
            mapping: self.mapping.as_ref(),
            handle: &self.handle,
            gate: ReadGate::default(),
            whole: InputFile::LEAST_WHOLE,
            keep_open: true,
        };
        let file = opener.open(&self.file.path, self.file.size)?;
        if file.rows() != self.file.rows {
            let detail = format!("it has {} rows, the table says {}", file.rows(), self.file.rows);
            return Err(SidecarError::Failed(detail));
        }
        let mut builder = NdvBuilder::new(self.columns.clone(), u64::MAX)?;
        for (place, column) in self.columns.iter().enumerate() {
            let at = self.schema.index_of(&column.name).map_err(|error| SidecarError::Failed(error.to_string()))?;
            let mut cursor = file.cursor(at, BatchLimit::default())?;
            while let Some(array) = cursor.next(ROWS)? {
                if self.stop.is_set() {
                    return Ok(None);
                }
                builder.add_to(place, &array)?;
            }
            if cursor.row() != self.file.rows {
                let detail = format!("column `{}` ends after {} rows", column.name, cursor.row());
                return Err(ColumnarError::Usage { detail }.into());
            }
        }
        Ok(Some(builder.finish()))
    }
}
