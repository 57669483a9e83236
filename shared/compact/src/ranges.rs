//! Key ranges of files from their footers: metadata proves bounds of single columns only, and two files that share a series overlap by them.

use firn_columnar::{InputFile, ReadGate, claimed_key_range};
use firn_model::RowOrder;
use firn_table::{LoadedTable, PartitionFacts};
use tokio::runtime::Handle;

use crate::open::{Opener, name_mapping, several_at_once};

/// More files than this are no sorted run of a merge; their footers are not worth the requests.
const FILES_AT_MOST: usize = 1000;

/// Fills in the key ranges that footers prove, for rules that ask whether a partition is one sorted run
/// ([`firn_plan::wants_key_ranges`]). A footer that cannot be read proves nothing; the merge will say what is wrong with the file.
pub async fn prove_key_ranges(table: &LoadedTable, order: &RowOrder, facts: &mut PartitionFacts) {
    let worth_it = !order.is_unordered() && (2..=FILES_AT_MOST).contains(&facts.files.len());
    if !worth_it {
        return;
    }
    let (table, order, handle) = (table.clone(), order.clone(), Handle::current());
    let mut files = std::mem::take(&mut facts.files);
    let kept = files.clone();
    // Reading blocks: it must not hold a thread of the runtime that serves the reads.
    let proved = tokio::task::spawn_blocking(move || {
        let schema = match table.arrow_schema() {
            Ok(schema) => schema,
            Err(error) => {
                tracing::warn!(%error, "key ranges not known");
                return files;
            }
        };
        let mapping = match name_mapping(&table) {
            Ok(mapping) => mapping,
            Err(error) => {
                tracing::warn!(%error, "key ranges not known");
                return files;
            }
        };
        let opener = Opener {
            table: &table,
            schema: &schema,
            mapping: mapping.as_ref(),
            handle: &handle,
            gate: ReadGate::default(),
            whole: InputFile::LEAST_WHOLE,
            keep_open: false,
        };
        let ranges = several_at_once(&files, |file| {
            let input = opener.open(&file.path, file.size)?;
            claimed_key_range(&input, &schema, &order)
        });
        for (file, range) in files.iter_mut().zip(ranges) {
            match range {
                Ok(range) => file.key_range = range,
                Err(error) => tracing::warn!(file = file.path, %error, "key range not known"),
            }
        }
        files
    });
    facts.files = proved.await.unwrap_or(kept);
}
