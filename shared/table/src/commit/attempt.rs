//! The manifests and the manifest list that a try of a commit writes, and their removal when the try has failed for sure.

use chrono::{DateTime, Utc};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, FormatVersion, Manifest, ManifestFile, ManifestList, ManifestListWriter, ManifestStatus, ManifestWriter,
    ManifestWriterBuilder, PartitionSpec, SchemaRef,
};
use uuid::Uuid;

use super::entry::{CarriedEntry, Carry};
use crate::avro::{plain_spec, with_plain_names, with_spec_names};
use crate::loaded::LoadedTable;
use crate::location::layout::metadata_root;

/// Why a try could not write its files. Nothing was sent to the catalog.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// The store did not take a file.
    #[error("cannot write `{path}`: {source}")]
    Store { path: String, source: iceberg::Error },
    /// The table's entries cannot be written so that they say the same as before.
    #[error("{0}")]
    Content(String),
}

/// A snapshot id that no snapshot of the table has.
pub(crate) fn new_snapshot_id(table: &LoadedTable) -> i64 {
    loop {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        let id = i64::from_be_bytes((high ^ low).to_be_bytes()) & i64::MAX;
        if id > 0 && table.metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

/// Files of a commit that are written together: the manifests of one or several tries, or the list of one. All tries of a commit have one
/// snapshot id, which manifests carry in their entries; the names of their files are their own.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) snapshot_id: i64,
    id: Uuid,
    root: String,
    /// Files that were written, or of which the upload was begun.
    written: Vec<String>,
}

impl Attempt {
    pub(crate) fn new(table: &LoadedTable, snapshot_id: i64) -> Self {
        let metadata = &table.metadata;
        let root = metadata_root(metadata.location(), metadata.properties());
        Self { snapshot_id, id: Uuid::new_v4(), root, written: Vec::new() }
    }

    /// Writes a manifest of new files with an explicit data sequence number.
    pub(crate) async fn write_added(
        &mut self,
        table: &LoadedTable,
        schema: &SchemaRef,
        spec: &PartitionSpec,
        files: &[DataFile],
        data_sequence_number: i64,
    ) -> Result<ManifestFile, AttemptError> {
        let wanted = files.iter().map(|file| Wanted {
            status: ManifestStatus::Added,
            snapshot_id: self.snapshot_id,
            sequence_number: data_sequence_number,
            file_sequence_number: None,
            file,
        });
        let wanted: Vec<Wanted<'_>> = wanted.collect();
        self.write_manifest(table, schema, spec, &wanted).await
    }

    /// Writes a manifest of entries that were in the table before.
    pub(crate) async fn write_carried(
        &mut self,
        table: &LoadedTable,
        schema: &SchemaRef,
        spec: &PartitionSpec,
        entries: &[CarriedEntry],
    ) -> Result<ManifestFile, AttemptError> {
        let wanted = entries.iter().map(|entry| {
            let (status, snapshot_id) = match entry.carry {
                Carry::Existing { snapshot_id } => (ManifestStatus::Existing, snapshot_id),
                Carry::Deleted => (ManifestStatus::Deleted, self.snapshot_id),
            };
            Wanted {
                status,
                snapshot_id,
                sequence_number: entry.sequence_number,
                file_sequence_number: Some(entry.file_sequence_number),
                file: &entry.file,
            }
        });
        let wanted: Vec<Wanted<'_>> = wanted.collect();
        self.write_manifest(table, schema, spec, &wanted).await
    }

    /// The manifest is made in memory and read back before it is stored: a library that drops or changes a value must not
    /// change the table.
    async fn write_manifest(
        &mut self,
        table: &LoadedTable,
        schema: &SchemaRef,
        spec: &PartitionSpec,
        wanted: &[Wanted<'_>],
    ) -> Result<ManifestFile, AttemptError> {
        let fields = spec.fields().len();
        if let Some(odd) = wanted.iter().find(|entry| entry.file.partition().fields().len() != fields) {
            return Err(AttemptError::Content(format!(
                "`{}` has {} partition values, its spec {} has {fields} fields",
                odd.file.file_path(),
                odd.file.partition().fields().len(),
                spec.spec_id()
            )));
        }
        let unmade = |detail: String| AttemptError::Content(format!("cannot make a manifest: {detail}"));
        let broken = |error: iceberg::Error| unmade(error.to_string());
        let scratch = FileIO::new_with_memory();
        let output = scratch.new_output(SCRATCH).map_err(broken)?;
        let renamed = plain_spec(spec).map_err(unmade)?;
        let written_as = renamed.as_ref().unwrap_or(spec).clone();
        let builder = ManifestWriterBuilder::new(output, Some(self.snapshot_id), schema.clone(), written_as);
        let mut writer = match table.metadata.format_version() {
            FormatVersion::V1 => builder.build_v1(),
            FormatVersion::V2 => builder.build_v2_data(),
            FormatVersion::V3 => builder.build_v3_data(),
        };
        for entry in wanted {
            entry.add_to(&mut writer).map_err(broken)?;
        }
        let mut made = writer.write_manifest_file().await.map_err(broken)?;
        let mut bytes = scratch.new_input(SCRATCH).map_err(broken)?.read().await.map_err(broken)?;
        if renamed.is_some() {
            bytes = with_spec_names(&bytes, spec).map_err(unmade)?.into();
            made.manifest_length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        }
        let read = Manifest::parse_avro(&with_plain_names(&bytes).map_err(unmade)?).map_err(broken)?;
        if let Some(difference) = difference(&read, wanted) {
            return Err(AttemptError::Content(difference));
        }
        made.manifest_path = format!("{}/{}-m{}.avro", self.root, self.id, self.written.len());
        self.store(table, made.manifest_path.clone(), bytes).await?;
        Ok(made)
    }

    /// Writes the manifest list.
    pub(crate) async fn write_list(
        &mut self,
        table: &LoadedTable,
        parent: i64,
        manifests: Vec<ManifestFile>,
    ) -> Result<WrittenList, AttemptError> {
        let broken = |error: iceberg::Error| AttemptError::Content(format!("cannot make a manifest list: {error}"));
        let metadata = &table.metadata;
        let (id, number) = (self.snapshot_id, metadata.next_sequence_number());
        let scratch = FileIO::new_with_memory();
        let output = scratch.new_output(SCRATCH).map_err(broken)?.writer().await.map_err(broken)?;
        let mut writer = match metadata.format_version() {
            FormatVersion::V1 => ManifestListWriter::v1(output, id, Some(parent)),
            FormatVersion::V2 => ManifestListWriter::v2(output, id, Some(parent), number),
            FormatVersion::V3 => ManifestListWriter::v3(output, id, Some(parent), number, Some(metadata.next_row_id())),
        };
        let wanted: Vec<String> = manifests.iter().map(|file| file.manifest_path.clone()).collect();
        writer.add_manifests(manifests.into_iter()).map_err(broken)?;
        writer.close().await.map_err(broken)?;
        let bytes = scratch.new_input(SCRATCH).map_err(broken)?.read().await.map_err(broken)?;
        let read = ManifestList::parse_with_version(&bytes, metadata.format_version()).map_err(broken)?;
        if !read.entries().iter().map(|file| &file.manifest_path).eq(wanted.iter()) {
            return Err(AttemptError::Content("a manifest list does not read back as it was written".to_owned()));
        }
        let path = format!("{}/snap-{id}-1-{}.avro", self.root, self.id);
        let store_time = self.store(table, path.clone(), bytes).await?;
        Ok(WrittenList { path, store_time })
    }

    /// Writes a file; returns when that was by the store's clock.
    async fn store(
        &mut self,
        table: &LoadedTable,
        path: String,
        bytes: bytes::Bytes,
    ) -> Result<DateTime<Utc>, AttemptError> {
        // Noted before it is written: an upload that fails may still have left a file.
        self.written.push(path.clone());
        let failed = |source| AttemptError::Store { path: path.clone(), source };
        Ok(table.store.create(&path, bytes).await.map_err(failed)?.last_modified)
    }

    /// Removes what was written. The only place that removes files of a commit, and only to be called when it is known that no try that
    /// used them is or will be in the table; outputs are left to the sweep, other tries may still use them.
    pub(crate) async fn clean_up(self, io: &FileIO) {
        for path in self.written {
            if let Err(error) = io.delete(&path).await {
                tracing::warn!(path, %error, "a file of a failed commit could not be removed; the sweep will");
            }
        }
    }
}

/// A manifest list in the store.
#[derive(Debug)]
pub(crate) struct WrittenList {
    pub(crate) path: String,
    /// When it was written, by the store's clock.
    pub(crate) store_time: DateTime<Utc>,
}

const SCRATCH: &str = "memory:///manifest.avro";

/// An entry as it must stand in a manifest.
#[derive(Debug)]
struct Wanted<'a> {
    status: ManifestStatus,
    snapshot_id: i64,
    sequence_number: i64,
    /// None: inherited from the manifest, which is that of our snapshot.
    file_sequence_number: Option<i64>,
    file: &'a DataFile,
}

impl Wanted<'_> {
    fn add_to(&self, writer: &mut ManifestWriter) -> iceberg::Result<()> {
        let file = self.file.clone();
        match self.status {
            ManifestStatus::Added => writer.add_file(file, self.sequence_number),
            ManifestStatus::Deleted => writer.add_delete_file(file, self.sequence_number, self.file_sequence_number),
            ManifestStatus::Existing => {
                writer.add_existing_file(file, self.snapshot_id, self.sequence_number, self.file_sequence_number)
            }
        }
    }
}

/// What a manifest does not say as it should; None when it says everything.
fn difference(read: &Manifest, wanted: &[Wanted<'_>]) -> Option<String> {
    if read.entries().len() != wanted.len() {
        return Some(format!("a manifest of {} entries reads back with {}", wanted.len(), read.entries().len()));
    }
    // Version 1 has no sequence numbers; they read back as 0.
    let numbered = read.metadata().format_version != FormatVersion::V1;
    let same = |found: &iceberg::spec::ManifestEntry, wanted: &Wanted<'_>| {
        found.status() == wanted.status
            && found.snapshot_id() == Some(wanted.snapshot_id)
            && (!numbered || found.sequence_number() == Some(wanted.sequence_number))
            && (!numbered || found.file_sequence_number == wanted.file_sequence_number)
            && found.data_file() == wanted.file
    };
    let odd = read.entries().iter().zip(wanted).find(|(found, wanted)| !same(found, wanted))?;
    Some(format!(
        "the manifest entry of `{}` does not read back as it was written, so this table cannot be rewritten safely",
        odd.1.file.file_path()
    ))
}
