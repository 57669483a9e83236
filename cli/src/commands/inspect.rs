//! `firn inspect`: what is in a sidecar. All of it is read and checked.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use firn_model::BlobId;
use firn_sidecar::{Inspected, SidecarKind};
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

fn write_json(out: &mut dyn Write, inspected: &Inspected) -> io::Result<()> {
    let line = serde_json::to_value(inspected).unwrap_or_default();
    writeln!(out, "{line}")?;
    writeln!(out, "{}", json!({"summary": true, "ok": true, "columns": inspected.columns.len()}))
}

fn write_text(out: &mut dyn Write, id: &BlobId, inspected: &Inspected) -> io::Result<()> {
    writeln!(out, "{} of {}", inspected.kind, inspected.data.path)?;
    writeln!(out, "  data file  {}, {}", size(inspected.data.size), plural(inspected.data.rows, "row"))?;
    writeln!(out, "  sidecar    {}, all of it is as it was written ({id})", size(inspected.bytes))?;
    for column in &inspected.columns {
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
        writeln!(out)?;
    }
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
    use firn_sidecar::{DataFile, InspectedColumn, InspectedPart};

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
        let inspected = Inspected {
            kind: SidecarKind::Bloom,
            bytes: 2500,
            data: DataFile { path: "/t/data/a.parquet".into(), size: 1_000_000, rows: 12_000 },
            columns: vec![column],
            dropped_words: None,
            parts: vec![InspectedPart { name: "4.sbbf".into(), bytes: 2048 }],
        };
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
}
