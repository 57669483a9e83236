//! Whether a snapshot gets statistics. Pure but for what was loaded.

use std::collections::BTreeSet;
use std::fmt;

use firn_sidecar::SidecarColumn;
use firn_table::{LiveFiles, LoadedTable};
use iceberg::spec::StatisticsFile;

use super::STATISTICS_ENDING;

/// Why a table gets no statistics in this run. No failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatisticsOff {
    /// The catalog takes no commits; it says why.
    ReadOnlyCatalog(String),
    /// `firn.enabled=false`.
    Disabled,
    /// None of `ndvColumns` can have a sketch.
    NoColumns,
    /// The table has no snapshot.
    NoSnapshot,
    /// The snapshot has statistics of these columns.
    UpToDate,
    /// The snapshot has statistics of another program. A snapshot has one statistics file, and theirs may have more than Firn's would.
    OfAnotherProgram {
        /// Their file.
        path: String,
    },
    /// Sketches count the rows that delete files delete.
    DeleteFiles(u64),
}

impl StatisticsOff {
    /// Whether the owner of the table or its catalog wants it so, not the state that the table is in.
    pub fn is_wanted(&self) -> bool {
        matches!(self, StatisticsOff::ReadOnlyCatalog(_) | StatisticsOff::Disabled)
    }
}

impl fmt::Display for StatisticsOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatisticsOff::ReadOnlyCatalog(reason) => f.write_str(reason),
            StatisticsOff::Disabled => f.write_str("table property firn.enabled=false"),
            StatisticsOff::NoColumns => f.write_str("none of ndvColumns can have a sketch"),
            StatisticsOff::NoSnapshot => f.write_str("the table has no snapshot"),
            StatisticsOff::UpToDate => f.write_str("the snapshot has its statistics"),
            StatisticsOff::OfAnotherProgram { path } => {
                write!(f, "the snapshot has statistics of another program, which stay: `{path}`")
            }
            StatisticsOff::DeleteFiles(files) => {
                write!(f, "the snapshot has {files} delete files: sketches count the rows that they delete, too")
            }
        }
    }
}

/// Why a table gets none, whatever its snapshot.
pub(super) fn of_table(table: &LoadedTable, columns: &[SidecarColumn]) -> Option<StatisticsOff> {
    if let Some(reason) = &table.read_only {
        return Some(StatisticsOff::ReadOnlyCatalog(reason.to_string()));
    }
    if !table.is_enabled() {
        return Some(StatisticsOff::Disabled);
    }
    columns.is_empty().then_some(StatisticsOff::NoColumns)
}

/// Why a snapshot gets none.
pub(super) fn of_snapshot(
    table: &LoadedTable,
    live: &LiveFiles<'_>,
    columns: &[SidecarColumn],
) -> Option<StatisticsOff> {
    let deletes = live.delete_files();
    of_statistics(table.metadata.statistics_for_snapshot(live.snapshot_id()), columns)
        .or_else(|| (deletes > 0).then_some(StatisticsOff::DeleteFiles(deletes)))
}

/// What the statistics that a snapshot has mean for new ones.
fn of_statistics(file: Option<&StatisticsFile>, columns: &[SidecarColumn]) -> Option<StatisticsOff> {
    let file = file?;
    let own_name = format!("/{}/", firn_sidecar::identity::FOLDER);
    let own = file.statistics_path.contains(&own_name) && file.statistics_path.ends_with(STATISTICS_ENDING);
    if !own {
        return Some(StatisticsOff::OfAnotherProgram { path: file.statistics_path.clone() });
    }
    let has: BTreeSet<&[i32]> = file.blob_metadata.iter().map(|blob| blob.fields.as_slice()).collect();
    let wanted: BTreeSet<[i32; 1]> = columns.iter().map(|column| [column.field_id]).collect();
    (has == wanted.iter().map(|field| field.as_slice()).collect()).then_some(StatisticsOff::UpToDate)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_schema::DataType;
    use iceberg::spec::BlobMetadata;

    use super::*;

    fn columns(ids: &[i32]) -> Vec<SidecarColumn> {
        let column = |id: &i32| SidecarColumn { name: format!("c{id}"), field_id: *id, data_type: DataType::Int64 };
        ids.iter().map(column).collect()
    }

    fn file(path: &str, ids: &[i32]) -> StatisticsFile {
        let blob = |id: &i32| BlobMetadata {
            r#type: firn_sidecar::ndv::THETA.into(),
            snapshot_id: 7,
            sequence_number: 1,
            fields: vec![*id],
            properties: HashMap::new(),
        };
        StatisticsFile {
            snapshot_id: 7,
            statistics_path: path.into(),
            file_size_in_bytes: 1,
            file_footer_size_in_bytes: 1,
            key_metadata: None,
            blob_metadata: ids.iter().map(blob).collect(),
        }
    }

    #[test]
    fn statistics_of_firn_are_made_again_for_other_columns_and_those_of_others_stay() {
        let own = "abfss://c@a.dfs.core.windows.net/t/_firn/7-6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f.stats";
        assert_eq!(of_statistics(None, &columns(&[1])), None);
        assert_eq!(of_statistics(Some(&file(own, &[2, 1])), &columns(&[1, 2])), Some(StatisticsOff::UpToDate));
        assert_eq!(of_statistics(Some(&file(own, &[1])), &columns(&[1, 2])), None);
        assert_eq!(of_statistics(Some(&file(own, &[1, 2])), &columns(&[2])), None);
        let theirs = "abfss://c@a.dfs.core.windows.net/t/metadata/7-x.stats";
        let off = of_statistics(Some(&file(theirs, &[1])), &columns(&[1]));
        assert_eq!(off, Some(StatisticsOff::OfAnotherProgram { path: theirs.into() }));
    }
}
