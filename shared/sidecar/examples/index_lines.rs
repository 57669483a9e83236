//! What tantivy alone needs for the lines of a file, with the schema of Firn's index and one thread: the yardstick of `benches/sidecars.sh`.
//!
//! `index_lines FILE [MB of memory]`: indexes each line as a document in memory, merges to one segment, and prints
//! seconds and bytes.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{LowerCaser, SimpleTokenizer, TextAnalyzer};
use tantivy::{Index, IndexSettings, TantivyDocument};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).ok_or("usage: index_lines FILE [MB of memory]")?;
    let megabytes: usize = arguments.get(2).map_or(Ok(48), |text| text.parse())?;
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("words")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let mut schema = Schema::builder();
    let line = schema.add_text_field("line", TextOptions::default().set_indexing_options(indexing));
    let index = Index::builder().schema(schema.build()).settings(IndexSettings::default()).create_in_ram()?;
    let words = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build();
    index.tokenizers().register("words", words);
    let started = Instant::now();
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, megabytes << 20)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let (mut rows, mut bytes) = (0_u64, 0_u64);
    for text in BufReader::new(File::open(path)?).lines() {
        let text = text?;
        rows += 1;
        bytes += text.len() as u64;
        let mut document = TantivyDocument::default();
        document.add_text(line, text);
        writer.add_document(document)?;
    }
    writer.commit()?;
    let indexed = started.elapsed();
    let segments = index.searchable_segment_ids()?;
    let count = segments.len();
    writer.merge(&segments).wait()?;
    writer.wait_merging_threads()?;
    let space = index.reader()?.searcher().space_usage()?.total().get_bytes();
    println!(
        "{rows} lines, {bytes} bytes of text: indexed in {:.1} s ({count} segments), with their merge {:.1} s; {space} bytes",
        indexed.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
