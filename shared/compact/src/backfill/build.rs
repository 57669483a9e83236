//! The text index of one data file, built by reading the file's text columns. Blocks, on a thread of its own.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_columnar::{BatchLimit, ColumnarError, InputFile, ReadGate, SideBySide, StopFlag, TempSpace};
use firn_config::Dataset;
use firn_model::FileFacts;
use firn_sidecar::{Built, SetLimits, SidecarColumns, SidecarError, SidecarSet};
use firn_table::LoadedTable;
use tokio::runtime::Handle;

use crate::control::RunControl;
use crate::open::{Opener, name_mapping};
use crate::services::Services;
use crate::settings::JobSettings;
use crate::sidecars::arena_bytes;

/// Rows handed to the index at once.
const ROWS: usize = 4096;
/// Memory that reading takes: a page, a dictionary and a batch of each column.
const READ_BYTES_A_COLUMN: u64 = 16 << 20;

/// What becomes of a file.
pub(super) enum Verdict {
    /// This is its index.
    Built(Box<Built>),
    /// It gets none as long as the configuration is what it is.
    Note(String),
    /// It gets none in this run.
    Later(String),
}

impl Verdict {
    /// What an index that could not be built means for its file. An index is built alone, with all memory and temporary disk of a job: one
    /// that does not fit then does not fit another time.
    fn of_building(error: &SidecarError) -> Verdict {
        match error {
            SidecarError::Disk(_) | SidecarError::Storage(_) => Verdict::Later(error.to_string()),
            SidecarError::OverBudget { .. }
            | SidecarError::Absent { .. }
            | SidecarError::Unusable { .. }
            | SidecarError::Unsupported { .. }
            | SidecarError::Failed(_) => Verdict::Note(error.to_string()),
        }
    }

    /// The same for a file that could not be read.
    fn of_reading(error: &ColumnarError) -> Verdict {
        match error {
            ColumnarError::Read { .. } | ColumnarError::Disk { .. } | ColumnarError::Usage { .. } => {
                Verdict::Later(error.to_string())
            }
            error => Verdict::Note(error.to_string()),
        }
    }
}

/// Everything that the thread needs.
pub(super) struct IndexWork {
    table: LoadedTable,
    schema: SchemaRef,
    columns: SidecarColumns,
    places: Vec<usize>,
    file: FileFacts,
    dataset: Dataset,
    limits: SetLimits,
    temp_bytes: u64,
    temp_root: PathBuf,
    stop: StopFlag,
    handle: Handle,
}

impl IndexWork {
    #[allow(clippy::too_many_arguments)] // What the steps before have found, and nothing that belongs together.
    pub(super) fn new(
        services: &Services,
        control: &RunControl,
        dataset: &Dataset,
        table: &LoadedTable,
        schema: &SchemaRef,
        columns: &SidecarColumns,
        settings: &JobSettings,
        file: &FileFacts,
    ) -> Result<IndexWork, String> {
        let needed = columns.needed();
        let places = needed.iter().map(|column| schema.index_of(&column.name).map_err(|error| error.to_string()));
        let reading = READ_BYTES_A_COLUMN * needed.len() as u64;
        let memory_bytes = settings.memory_bytes.saturating_sub(reading);
        let arena_bytes = arena_bytes(columns, file.rows, memory_bytes);
        Ok(IndexWork {
            table: table.clone(),
            schema: Arc::clone(schema),
            columns: columns.clone(),
            places: places.collect::<Result<_, String>>()?,
            file: file.clone(),
            dataset: dataset.clone(),
            limits: SetLimits { rows: file.rows, arena_bytes, memory_bytes },
            temp_bytes: settings.temp_bytes,
            temp_root: services.temp_root.clone(),
            stop: control.merge_stop(),
            handle: Handle::current(),
        })
    }

    /// Builds the index.
    pub(super) async fn run_on_own_thread(self) -> Verdict {
        match tokio::task::spawn_blocking(move || self.run()).await {
            Ok(verdict) => verdict,
            // The libraries' panics are caught where they are called; this one is ours, and the same file would meet it at every pass.
            Err(panic) if panic.is_panic() => {
                Verdict::Note(format!("building ended by a fault of the program: {panic}"))
            }
            Err(cancelled) => Verdict::Later(cancelled.to_string()),
        }
    }

    fn run(&self) -> Verdict {
        self.build().unwrap_or_else(|error| Verdict::of_reading(&error))
    }

    fn build(&self) -> Result<Verdict, ColumnarError> {
        let mapping = name_mapping(&self.table)?;
        let opener = Opener {
            table: &self.table,
            schema: &self.schema,
            mapping: mapping.as_ref(),
            handle: &self.handle,
            gate: ReadGate::default(),
            whole: InputFile::LEAST_WHOLE,
            keep_open: true,
        };
        let file = opener.open(&self.file.path, self.file.size)?;
        let writer = file.metadata().file_metadata().created_by().unwrap_or_default();
        if !self.dataset.backfills_files_of(writer) {
            return Ok(Verdict::Note(format!("it was written by `{writer}`, which backfillWriters does not name")));
        }
        if file.rows() != self.file.rows {
            let detail = format!("it has {} rows, the table says {}", file.rows(), self.file.rows);
            return Ok(Verdict::Note(detail));
        }
        let space = TempSpace::create(&self.temp_root, self.temp_bytes)?;
        let mut set = SidecarSet::start(&self.columns, self.limits, &space);
        let columns = self.places.iter().map(|place| file.cursor(*place, BatchLimit::default()));
        let mut columns = SideBySide::new(columns.collect::<Result<_, _>>()?);
        while let Some(arrays) = columns.next(ROWS)? {
            if self.stop.is_set() {
                return Ok(Verdict::Later("this run was told to stop".into()));
            }
            if set.is_empty() {
                break;
            }
            set.add(&arrays);
        }
        let (mut built, dropped) = set.finish(self.file.rows);
        Ok(match (built.pop(), dropped.into_iter().next()) {
            (Some(built), _) => Verdict::Built(Box::new(built)),
            (None, Some(dropped)) => Verdict::of_building(&dropped.error),
            (None, None) => Verdict::Later("no index was asked for".into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use firn_model::BlobId;
    use firn_storage::StorageError;

    use super::*;

    fn is_noted(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Note(_))
    }

    #[test]
    fn what_does_not_fit_and_what_is_wrong_with_the_file_is_noted_and_what_may_pass_is_not() {
        let over =
            || SidecarError::OverBudget { what: "an index".into(), needed_bytes: 2 << 20, budget_bytes: 1 << 20 };
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let away = || StorageError::NotFound { blob: Box::new(BlobId::local("/a")) };
        for (error, noted) in [
            (over(), true),
            (SidecarError::Failed("building a sidecar panicked: index out of bounds".into()), true),
            (SidecarError::Disk(full()), false),
            (SidecarError::Storage(away()), false),
        ] {
            let verdict = Verdict::of_building(&error);
            assert_eq!(is_noted(&verdict), noted, "{error}");
            let (Verdict::Note(reason) | Verdict::Later(reason)) = verdict else { panic!("{error}") };
            assert_eq!(reason, error.to_string());
        }
        for (error, noted) in [
            (ColumnarError::OverBudget { what: "rows".into(), needed_bytes: 2, budget_bytes: 1 }, true),
            (ColumnarError::NoFieldIds { file: "a".into() }, true),
            (ColumnarError::Disk { path: "/tmp".into(), source: full() }, false),
            (ColumnarError::Usage { detail: "no".into() }, false),
        ] {
            assert_eq!(is_noted(&Verdict::of_reading(&error)), noted, "{error}");
        }
    }
}
