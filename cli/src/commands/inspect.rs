//! `firn inspect`: what is in a sidecar, a note or table statistics. All of it is read and checked.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use firn_model::BlobId;
use firn_sidecar::{Inspected, InspectedColumn, InspectedStatistics, Inspection, NoIndex, SidecarKind};
use firn_storage::{BlobStore, LocalStore};
use serde_json::json;

use crate::args::{Format, InspectArgs};
use crate::commands::{Context, complain, load_config, refuse};
use crate::exit::Exit;
use crate::output::stdout::Stdout;
use crate::output::table::{grouped, plural, size};

pub(crate) async fn run(args: InspectArgs, context: &Context) -> Exit {
    let (store, id) = match place(&args) {
        Ok(place) => place,
        Err(exit) => return exit,
    };
    let inspected = match firn_sidecar::inspect(store, &id).await {
        Ok(inspected) => inspected,
        Err(error) => {
            complain(&error);
            if context.format == Format::Json {
                let _ = writeln!(Stdout, "{}", json!({"summary": true, "ok": false, "error": error.to_string()}));
            }
            return Exit::Failed;
        }
    };
    // As with other answers: nobody reading is no reason to fail.
    let _ = match context.format {
        Format::Json => write_json(&mut Stdout, &inspected),
        Format::Text => write_text(&mut Stdout, &id, &inspected),
    };
    Exit::Done
}

/// A file of this machine needs no configuration; a blob needs the credential that stands in it.
fn place(args: &InspectArgs) -> Result<(Arc<dyn BlobStore>, BlobId), Exit> {
    let text = &args.sidecar;
    if !text.contains("://") {
        let path = std::path::absolute(Path::new(text)).map_err(|error| refuse(format!("\"{text}\": {error}")))?;
        return Ok((Arc::new(LocalStore::new()), BlobId::local(path.to_string_lossy())));
    }
    let id = BlobId::parse(text).map_err(refuse)?;
    if id.is_local() {
        return Ok((Arc::new(LocalStore::new()), id));
    }
    let config = load_config(&args.config, None)?;
    let store = firn_pass::open_store(&config).map_err(|error| {
        complain(&error);
        Exit::of_error(&error)
    })?;
    Ok((store, id))
}

fn write_json(out: &mut dyn Write, inspection: &Inspection) -> io::Result<()> {
    let line = serde_json::to_value(inspection).unwrap_or_default();
    writeln!(out, "{line}")?;
    let columns = match inspection {
        Inspection::Sidecar(inspected) => inspected.columns.len(),
        Inspection::Statistics(inspected) => inspected.columns.len(),
        Inspection::Note(_) => 0,
    };
    writeln!(out, "{}", json!({"summary": true, "ok": true, "columns": columns}))
}

fn write_text(out: &mut dyn Write, id: &BlobId, inspection: &Inspection) -> io::Result<()> {
    match inspection {
        Inspection::Sidecar(inspected) => write_sidecar(out, id, inspected),
        Inspection::Statistics(inspected) => write_statistics(out, id, inspected),
        Inspection::Note(note) => write_note(out, id, note),
    }
}

fn write_statistics(out: &mut dyn Write, id: &BlobId, inspected: &InspectedStatistics) -> io::Result<()> {
    let InspectedStatistics { bytes, snapshot_id, sequence_number, data_files, data_rows, columns } = inspected;
    writeln!(out, "statistics of snapshot {snapshot_id} (sequence number {sequence_number})")?;
    writeln!(out, "  snapshot   {}, {}", plural(*data_files, "data file"), plural(*data_rows, "row"))?;
    writeln!(out, "  file       {}, all of it is as it was written ({id})", size(*bytes))?;
    columns.iter().try_for_each(|column| write_column(out, column))
}

fn write_note(out: &mut dyn Write, id: &BlobId, note: &NoIndex) -> io::Result<()> {
    writeln!(out, "no full-text index of {}", note.data.path)?;
    writeln!(out, "  data file  {}, {}", size(note.data.size), plural(note.data.rows, "row"))?;
    writeln!(out, "  reason     {}", note.reason)?;
    match &note.decided_on {
        Some(on) => writeln!(
            out,
            "  decided on columns {:?}, writers {:?}, memoryMb {}, tempDiskMb {} ({id})",
            on.columns, on.writers, on.memory_mb, on.temp_disk_mb
        ),
        None => writeln!(out, "  decided on nothing that it says: the next pass looks at the file again ({id})"),
    }
}

fn write_column(out: &mut dyn Write, column: &InspectedColumn) -> io::Result<()> {
    let name = column.name.clone().unwrap_or_else(|| "column".into());
    write!(out, "  {name} (field id {})", column.field_id)?;
    if let Some(nulls) = column.nulls {
        write!(out, ", {}", plural(nulls, "null"))?;
    }
    if let Some(bytes) = column.filter_bytes {
        write!(out, ", filter of {}", size(bytes))?;
    }
    if let Some(distinct) = column.distinct {
        write!(out, ", about {} different values", grouped(distinct))?;
    }
    writeln!(out)
}

fn write_sidecar(out: &mut dyn Write, id: &BlobId, inspected: &Inspected) -> io::Result<()> {
    writeln!(out, "{} of {}", inspected.kind, inspected.data.path)?;
    writeln!(out, "  data file  {}, {}", size(inspected.data.size), plural(inspected.data.rows, "row"))?;
    writeln!(out, "  sidecar    {}, all of it is as it was written ({id})", size(inspected.bytes))?;
    inspected.columns.iter().try_for_each(|column| write_column(out, column))?;
    if inspected.kind == SidecarKind::Text {
        let dropped = inspected.dropped_words.unwrap_or(0);
        writeln!(out, "  {} too long for the index", plural(dropped, "word"))?;
    }
    for part in &inspected.parts {
        writeln!(out, "  part {} {}", part.name, size(part.bytes))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use firn_sidecar::{DataFile, DecidedOn, InspectedPart};

    use super::*;

    #[test]
    fn people_and_programs_read_the_same() {
        let column = InspectedColumn {
            name: Some("host".into()),
            field_id: 4,
            nulls: Some(1),
            filter_bytes: Some(2048),
            distinct: None,
        };
        let inspected = Inspection::Sidecar(Inspected {
            kind: SidecarKind::Bloom,
            bytes: 2500,
            data: DataFile { path: "/t/data/a.parquet".into(), size: 1_000_000, rows: 12_000 },
            columns: vec![column],
            dropped_words: None,
            parts: vec![InspectedPart { name: "4.sbbf".into(), bytes: 2048 }],
        });
        let mut text = Vec::new();
        write_text(&mut text, &BlobId::local("/t/_firn/x.bloom"), &inspected).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("bloom filter of /t/data/a.parquet\n"), "{text}");
        assert!(text.contains("  host (field id 4), 1 null, filter of 2"), "{text}");
        let mut lines = Vec::new();
        write_json(&mut lines, &inspected).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let parsed: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            parsed,
            [
                json!({
                    "kind": "bloom", "bytes": 2500,
                    "data": {"path": "/t/data/a.parquet", "size": 1_000_000, "rows": 12_000},
                    "columns": [{"name": "host", "fieldId": 4, "nulls": 1, "filterBytes": 2048}],
                    "parts": [{"name": "4.sbbf", "bytes": 2048}],
                }),
                json!({"summary": true, "ok": true, "columns": 1}),
            ]
        );
    }

    fn text(name: &str, inspection: &Inspection) -> String {
        let mut text = Vec::new();
        write_text(&mut text, &BlobId::local(format!("/t/_firn/{name}")), inspection).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn statistics_and_notes_are_told_to_people() {
        let column =
            InspectedColumn { name: None, field_id: 4, nulls: None, filter_bytes: None, distinct: Some(12_000) };
        let statistics = Inspection::Statistics(InspectedStatistics {
            bytes: 2500,
            snapshot_id: 4711,
            sequence_number: 9,
            data_files: 2,
            data_rows: 1,
            columns: vec![column],
        });
        let told = text("4711-a.stats", &statistics);
        assert!(told.starts_with("statistics of snapshot 4711 (sequence number 9)\n"), "{told}");
        assert!(told.contains("  snapshot   2 data files, 1 row\n"), "{told}");
        assert!(told.contains("  column (field id 4), about 12,000 different values\n"), "{told}");
        let data = DataFile { path: "/t/data/a.parquet".into(), size: 1_000_000, rows: 12_000 };
        let note = NoIndex::new(data, "it does not fit", DecidedOn::new(&[], &[".*"], 512, 400));
        let told = text("a.none", &Inspection::Note(note.clone()));
        assert!(told.starts_with("no full-text index of /t/data/a.parquet\n"), "{told}");
        assert!(told.contains("  reason     it does not fit\n"), "{told}");
        assert!(told.contains("writers [\".*\"], memoryMb 512, tempDiskMb 400"), "{told}");
        let old = text("a.none", &Inspection::Note(NoIndex { decided_on: None, ..note }));
        assert!(old.contains("looks at the file again"), "{old}");
    }
}
