use super::*;
use crate::source::MemoryFile;
use parquet::column::page::PageReader;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn int_field(delta: u8, value: i64, out: &mut Vec<u8>) {
    out.push(delta << 4 | 5);
    varint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// A page of version 1 of plain 32-bit integers.
fn page(values: &[i32], crc: Option<u32>) -> Vec<u8> {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut out = Vec::new();
    int_field(1, 0, &mut out);
    int_field(1, body.len() as i64, &mut out);
    int_field(1, body.len() as i64, &mut out);
    if let Some(crc) = crc {
        int_field(1, i64::from(crc as i32), &mut out);
    }
    out.push((if crc.is_some() { 1 } else { 2 }) << 4 | 12);
    int_field(1, values.len() as i64, &mut out);
    for encoding in [0, 3, 3] {
        int_field(1, encoding, &mut out);
    }
    out.extend([0, 0]);
    out.extend(body);
    out
}

fn crc_of(values: &[i32]) -> u32 {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    checksum(CrcAlgorithm::Crc32IsoHdlc, &body) as u32
}

/// A required column of these pages, which claims `values` values.
fn chunk(pages: &[Vec<u8>], values: usize) -> SharedPages {
    let bytes = [b"PAR1".to_vec(), pages.concat()].concat();
    let message = parse_message_type("message m { required int32 x; }").unwrap();
    let descriptor = SchemaDescriptor::new(Arc::new(message)).column(0);
    let length = bytes.len() as u64 - 4;
    let metadata = ColumnChunkMetaData::builder(descriptor)
        .set_num_values(values as i64)
        .set_data_page_offset(4)
        .set_total_compressed_size(length as i64)
        .set_total_uncompressed_size(length as i64)
        .build()
        .unwrap();
    let place = ChunkPlace { file: "t".into(), row_group: 3, column: "x".into() };
    let source = Arc::new(MemoryFile::new("t", bytes.into()));
    SharedPages::new(ChunkPages::new(place, source, metadata, 4..4 + length, values as u64, None, 1024))
}

fn all(pages: &mut SharedPages) -> Result<Vec<u32>, ColumnarError> {
    pages.lock().begin(0, None, true)?;
    let mut values = Vec::new();
    loop {
        match pages.get_next_page() {
            Ok(Some(page)) => values.push(page.num_values()),
            Ok(None) => return Ok(values),
            Err(_) => return Err(pages.lock().take_failure().expect("the real error is kept")),
        }
    }
}

#[test]
fn checksums_are_checked_where_there_are_some() {
    let good = page(&[1, 2, 3], Some(crc_of(&[1, 2, 3])));
    assert_eq!(all(&mut chunk(&[good.clone(), page(&[4], None)], 4)).unwrap(), [3, 1]);
    let wrong = page(&[1, 2, 4], Some(crc_of(&[1, 2, 3])));
    let error = all(&mut chunk(&[good, wrong], 6)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("row group 3, column `x`, page 1: its CRC is"), "{text}");
}

#[test]
fn pages_must_hold_what_the_footer_promises() {
    let one = || page(&[1, 2, 3], None);
    for (pages, values, words) in [
        (vec![one()], 4, "hold 3 of 4 values"),
        (vec![one(), one()], 5, "more than 5 values"),
        (vec![one()[..20].to_vec()], 3, "reach beyond its chunk"),
        (vec![one()[..5].to_vec()], 3, "leads beyond its chunk"),
    ] {
        let text = all(&mut chunk(&pages, values)).unwrap_err().to_string();
        assert!(text.contains(words), "{text} lacks {words}");
    }
}

#[test]
fn empty_pages_are_passed_over() {
    let pages = [page(&[], None), page(&[1], None), page(&[], None), page(&[2, 3], None)];
    assert_eq!(all(&mut chunk(&pages, 3)).unwrap(), [1, 2]);
}

#[test]
fn seeking_goes_to_the_page_of_a_row_in_any_direction() {
    let mut pages = chunk(&[page(&[1, 2, 3], None), page(&[4], None), page(&[5, 6], None)], 6);
    for (row, first, values) in [(4, 4, 2), (0, 0, 3), (3, 3, 1), (5, 4, 2), (2, 0, 3)] {
        assert_eq!(pages.lock().begin(row, None, true).unwrap(), first);
        assert_eq!(pages.get_next_page().unwrap().unwrap().num_values(), values, "row {row}");
        pages.lock().release();
    }
    assert!(pages.lock().begin(6, None, true).is_err());
}

#[test]
fn a_pause_holds_pages_back() {
    let mut pages = chunk(&[page(&[1, 2, 3], None), page(&[4], None), page(&[5, 6], None)], 6);
    pages.lock().begin(0, None, true).unwrap();
    pages.lock().resume(1000, 4);
    assert_eq!(pages.get_next_page().unwrap().map(|page| page.num_values()), Some(3));
    assert_eq!(pages.get_next_page().unwrap().map(|page| page.num_values()), Some(1));
    assert!(pages.get_next_page().unwrap().is_none(), "row 4 is reached");
    assert_eq!(pages.lock().next_row(), 4);
    pages.lock().pause();
    assert!(pages.get_next_page().unwrap().is_none());
    pages.lock().resume(1, u64::MAX);
    assert_eq!(pages.get_next_page().unwrap().map(|page| page.num_values()), Some(2));
}
