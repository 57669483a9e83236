//! Whatever a cursor is asked for, it gives the rows of the file.

use arrow_array::Array;
use firn_columnar::{BatchLimit, ColumnCursor, InputFile};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;

use crate::random::{Random, random_array, random_field};
use crate::support::{open, schema, write};

fn random_properties(random: &mut Random) -> WriterProperties {
    let compression = random.one_of(&[
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::try_new(1).unwrap()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::GZIP(GzipLevel::try_new(1).unwrap()),
    ]);
    let statistics = random.one_of(&[EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page]);
    WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(random.one_of(&[WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]))
        .set_dictionary_enabled(random.chance(70))
        .set_dictionary_page_size_limit(random.one_of(&[64, 1000, 1_000_000]))
        .set_data_page_size_limit(random.one_of(&[100, 2000, 1_000_000]))
        .set_data_page_row_count_limit(random.one_of(&[1, 7, 100, 20_000]))
        .set_write_batch_size(random.one_of(&[1, 16, 1024]))
        .set_max_row_group_row_count(Some(random.one_of(&[1, 50, 333, 100_000])))
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(statistics != EnabledStatistics::Page && random.chance(50))
        .build()
}

fn check(seed: u64) {
    let random = &mut Random(seed);
    let mut next_id = 1;
    let nullable = random.chance(60);
    let column = random_field(random, "c", 2, &mut next_id, nullable);
    let longest = random.one_of(&[1, 40, 400, 1500]);
    let rows = random.below(longest) as usize;
    let array = random_array(random, &column, rows);
    let target = schema(vec![column]);
    let bytes = write(&target, vec![array.clone()], random_properties(random));
    let file = open(bytes, &target).unwrap();
    assert_eq!(file.rows(), rows as u64);
    let limit = BatchLimit {
        rows: random.one_of(&[1, 10, 100, 10_000]),
        bytes: random.one_of(&[16, 500, 20_000, 1_000_000]),
        read_ahead: random.one_of(&[0, 64, 5_000, 1_000_000]),
    };
    let mut cursor = file.cursor(0, limit).unwrap();
    assert_eq!(cursor.data_type(), target.field(0).data_type());
    let mut row = 0;
    while row < rows {
        assert_eq!(cursor.row(), row as u64);
        match random.below(10) {
            0 => cursor.release(),
            1 => cursor.expect(random.below(300)),
            2 | 3 => {
                let step = random.one_of(&[0, 1, 5, 60, 500]).min(rows - row);
                cursor.skip(step as u64).unwrap();
                row += step;
            }
            _ => {
                let wanted = random.one_of(&[1, 3, 50, 100_000]);
                let got = cursor.next(wanted).unwrap().expect("rows are left");
                assert!(!got.is_empty() && got.len() <= wanted && got.len() <= rows - row);
                assert!(got.len() <= limit.rows);
                assert_eq!(got.data_type(), target.field(0).data_type());
                assert_eq!(got.as_ref(), array.slice(row, got.len()).as_ref(), "rows from {row}");
                row += got.len();
            }
        }
    }
    assert_eq!(cursor.row(), rows as u64);
    assert!(cursor.next(1).unwrap().is_none());
    assert!(cursor.skip(1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn any_steps_give_the_rows_of_the_file(seed in any::<u64>()) {
        check(seed);
    }
}

#[test]
fn files_and_cursors_go_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    fn moved<T: Send>() {}
    shared::<InputFile>();
    moved::<ColumnCursor>();
}
