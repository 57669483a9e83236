//! Checks of live tables: invariants of the metadata, and the proofs that Firn's files carry.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_columnar::{BlobRange, FileClaims, InputFile, MergeError, Reread, field_id, reread};
use firn_compact::{Services, name_mapping};
use firn_config::{Config, Dataset};
use firn_model::{FileFacts, PartitionKey, RowOrder};
use firn_table::{
    LoadedTable, OrderColumns, PartitionFilter, SizeLimits, TableIdent, audit, partition_facts, partition_stats,
    row_order,
};
use tokio::runtime::Handle;

use crate::load::{chosen, pass_error};
use crate::report::{PassError, VerifyCheck};
use crate::wiring;

/// Recomputes proofs and invariants (design section 8) of the tables of one or all datasets, and changes nothing.
/// `checked` is called for each check.
///
/// # Errors
/// [`PassError::Usage`] for a dataset that is not configured, [`PassError::Unavailable`] when the catalog cannot be opened. A table that
/// cannot be loaded is a check that failed.
pub async fn verify(
    config: &Config,
    dataset: Option<&str>,
    checked: &mut (dyn FnMut(&VerifyCheck) + Send),
) -> Result<(), PassError> {
    let datasets = chosen(config, dataset)?;
    let services = wiring::open(config).await?;
    for dataset in datasets {
        let mut report = |check: &str, problems: Vec<String>, what: String| {
            let ok = problems.is_empty();
            let message = if ok { what } else { problems.join("; ") };
            checked(&VerifyCheck { check: check.to_owned(), ok, message: format!("{}: {message}", dataset.name) });
        };
        if let Err(error) = verify_dataset(&services, dataset, &mut report).await {
            report("table", vec![error.to_string()], String::new());
        }
    }
    Ok(())
}

type Checked<'a> = dyn FnMut(&str, Vec<String>, String) + Send + 'a;

async fn verify_dataset(services: &Services, dataset: &Dataset, report: &mut Checked<'_>) -> Result<(), PassError> {
    let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
    let table = services.catalog.load(&ident).await.map_err(pass_error)?;
    report("table", Vec::new(), format!("{ident} loaded from {}", table.metadata_location));
    let found = audit(&table).await.map_err(pass_error)?;
    let scope = format!("{} files of {} snapshots", found.files, found.snapshots);
    report("I2 files exist", [found.missing, found.resized].concat(), format!("all {scope}"));
    report("I3 no path twice", found.doubled, scope.clone());
    report("I4 summary totals", found.wrong_totals, format!("{} snapshots", found.snapshots));
    let order = row_order(&table.metadata, &OrderColumns::from(dataset))
        .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", dataset.name)))?;
    let proofs = claims_of(&table, dataset, &order).await?;
    let scope = format!("{} files with claims of {} live ones", proofs.claims, proofs.files);
    report("I5 sortedness", proofs.order, scope.clone());
    report("row proof", proofs.rows, scope);
    Ok(())
}

#[derive(Default)]
struct Proofs {
    files: usize,
    claims: usize,
    order: Vec<String>,
    rows: Vec<String>,
}

async fn claims_of(table: &LoadedTable, dataset: &Dataset, order: &RowOrder) -> Result<Proofs, PassError> {
    let schema = table.arrow_schema().map_err(pass_error)?;
    let stats = partition_stats(table, &dataset.branch, &PartitionFilter::all(), SizeLimits::default())
        .await
        .map_err(pass_error)?;
    let mut proofs = Proofs::default();
    for partition in stats {
        let wanted: HashSet<PartitionKey> = [PartitionKey::clone(&partition.key)].into();
        let facts = partition_facts(table, &dataset.branch, &wanted, order).await.map_err(pass_error)?;
        let files: Vec<FileFacts> = facts.into_values().flat_map(|facts| facts.files).collect();
        let work = (table.clone(), schema.clone(), order.clone(), Handle::current());
        // Decoding blocks: it must not hold a thread of the runtime that serves its reads.
        let checked = tokio::task::spawn_blocking(move || {
            let (table, schema, order, handle) = work;
            let mut proofs = Proofs::default();
            for file in &files {
                check_file(&table, &schema, &order, &handle, file, &mut proofs);
            }
            proofs
        });
        let found = checked.await.map_err(|error| PassError::Unavailable(format!("a check ended early: {error}")))?;
        proofs.files += found.files;
        proofs.claims += found.claims;
        proofs.order.extend(found.order);
        proofs.rows.extend(found.rows);
    }
    Ok(proofs)
}

fn check_file(
    table: &LoadedTable,
    schema: &SchemaRef,
    order: &RowOrder,
    handle: &Handle,
    file: &FileFacts,
    proofs: &mut Proofs,
) {
    proofs.files += 1;
    match read_again(table, schema, order, handle, file) {
        Ok(None) => {}
        Ok(Some((claims, found))) => {
            proofs.claims += 1;
            if claims.row_sum.is_some_and(|claimed| claimed != found.row_sum) || found.rows != file.rows {
                proofs.rows.push(format!("`{}` does not hold the rows that its footer claims", file.path));
            }
            if claims.order.as_deref() == Some(order.canonical().as_str()) && !found.sorted {
                proofs.order.push(format!("`{}` claims an order that its rows do not have", file.path));
            }
            if claims.unique && order.dedup_columns.is_some() && !found.unique {
                proofs.order.push(format!("`{}` claims unique keys but holds a key twice", file.path));
            }
        }
        Err(error) => proofs.rows.push(error.to_string()),
    }
}

/// A file's claims and what it holds; None for a file that claims nothing.
fn read_again(
    table: &LoadedTable,
    schema: &SchemaRef,
    order: &RowOrder,
    handle: &Handle,
    file: &FileFacts,
) -> Result<Option<(FileClaims, Reread)>, MergeError> {
    let usage = |error: firn_table::TableError| firn_columnar::ColumnarError::Usage { detail: error.to_string() };
    let id = table.blob_id(&file.path).map_err(usage)?;
    let range = BlobRange::new(table.blobs().clone(), id, file.path.as_str(), file.size, handle.clone());
    let mapping = name_mapping(table)?;
    let input = InputFile::open(Arc::new(range), schema, mapping.as_ref())?;
    let mut claims = FileClaims::read(input.metadata());
    if has_dropped_column(&input, schema) {
        // The sum was made with a column that the table no longer has.
        claims.row_sum = None;
    }
    if claims == FileClaims::default() {
        return Ok(None);
    }
    let found = reread(&input, schema, order)?;
    Ok(Some((claims, found)))
}

/// Whether the file has a top-level column whose field id the table's current schema lacks.
fn has_dropped_column(input: &InputFile, schema: &SchemaRef) -> bool {
    let known: HashSet<i32> = schema.fields().iter().filter_map(|field| field_id(field)).collect();
    let columns = input.metadata().file_metadata().schema_descr().root_schema().get_fields();
    columns.iter().map(|column| column.get_basic_info()).any(|info| info.has_id() && !known.contains(&info.id()))
}
