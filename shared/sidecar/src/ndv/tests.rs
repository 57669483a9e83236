use arrow_array::{Int64Array, StringArray};
use arrow_schema::DataType;
use firn_storage::MemoryStore;

use super::*;

fn column(name: &str, field_id: i32, data_type: DataType) -> SidecarColumn {
    SidecarColumn { name: name.into(), field_id, data_type }
}

fn data() -> DataFile {
    DataFile { path: "/t/data/a.parquet".into(), size: 1000, rows: 3000 }
}

/// K45: 1..=1000 and 501..=1500 are about 1500 values, neither the sum nor the larger of the two.
#[tokio::test]
async fn sketches_count_the_values_that_were_written() {
    let columns =
        vec![column("n", 1, DataType::Int64), column("name", 5, DataType::Utf8), column("no", 6, DataType::Utf8)];
    let mut builder = NdvBuilder::new(columns, u64::MAX).unwrap();
    for range in [1..=1000, 501..=1500] {
        let numbers = Int64Array::from_iter_values(range.clone());
        let names = StringArray::from_iter(range.map(|n| (n % 2 == 0).then(|| format!("name {}", n % 200))));
        let nulls = StringArray::from(vec![None::<&str>; 1000]);
        builder.add(&[Arc::new(numbers), Arc::new(names), Arc::new(nulls)]).unwrap();
    }
    let file = builder.finish();
    let (store, id) = (Arc::new(MemoryStore::default()), BlobId::local("/t/_firn/a.ndv"));
    file.write(&*store, &id, &data()).await.unwrap();
    let sidecar = NdvSidecar::open(store.clone(), &id, &data()).await.unwrap();
    // Below the nominal entries a sketch counts exactly.
    assert_eq!(sidecar.distinct(1).unwrap(), Some(1500.0));
    assert_eq!(sidecar.distinct(5).unwrap(), Some(100.0));
    assert_eq!(sidecar.distinct(6).unwrap(), Some(0.0));
    assert_eq!(sidecar.distinct(7).unwrap(), None);
    let written: Vec<_> = sidecar.blobs().iter().map(|blob| (blob.fields.clone(), blob.ndv())).collect();
    assert_eq!(written, [(vec![1], Some(1500)), (vec![5], Some(100)), (vec![6], Some(0))]);
    let other = DataFile { size: 1001, ..data() };
    assert!(matches!(NdvSidecar::open(store, &id, &other).await, Err(SidecarError::Unusable { .. })));
}

#[test]
fn many_values_are_estimated() {
    let mut builder = NdvBuilder::new(vec![column("n", 1, DataType::Int64)], u64::MAX).unwrap();
    builder.add(&[Arc::new(Int64Array::from_iter_values(0..200_000))]).unwrap();
    let ndv = builder.finish().blobs()[0].ndv().unwrap();
    assert!((190_000..210_000).contains(&ndv), "{ndv}");
}

#[test]
fn damaged_files_are_refused() {
    let mut builder = NdvBuilder::new(vec![column("n", 1, DataType::Int64)], u64::MAX).unwrap();
    builder.add(&[Arc::new(Int64Array::from_iter_values(0..100))]).unwrap();
    let whole = builder.finish().to_bytes(&data()).unwrap();
    let id = BlobId::local("/a.ndv");
    assert!(puffin::read(&id, &whole).is_ok());
    for length in 0..whole.len() {
        assert!(puffin::read(&id, &whole.slice(..length)).is_err(), "cut at {length}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 1;
        if let Ok((blobs, found)) = puffin::read(&id, &damaged.into()) {
            // A bit of the footer: the sketch itself is as it was, or the file is another's.
            assert!(blobs[0].bytes == whole.slice(4..4 + blobs[0].bytes.len()) || found != data(), "bit of byte {at}");
        }
    }
}

fn numbers(range: std::ops::Range<i64>, column: &SidecarColumn) -> NdvSidecar {
    let mut builder = NdvBuilder::new(vec![column.clone()], u64::MAX).unwrap();
    let array: ArrayRef = match column.data_type {
        DataType::Int32 => Arc::new(arrow_array::Int32Array::from_iter_values(range.map(|n| n as i32))),
        _ => Arc::new(Int64Array::from_iter_values(range)),
    };
    builder.add_to(0, &array).unwrap();
    assert!(builder.add_to(1, &array).is_err());
    builder.finish().opened(&BlobId::local("/a.ndv"), data())
}

/// K45 over files: what two files both have counts once, and the result does not depend on their order.
#[test]
fn a_union_counts_each_value_once() {
    let n = column("n", 1, DataType::Int64);
    let of = OfSnapshot { snapshot_id: 77, sequence_number: 5 };
    let union = |ranges: &[std::ops::Range<i64>]| {
        let mut union = NdvUnion::new(vec![n.clone()]).unwrap();
        for range in ranges {
            let sketches = numbers(range.clone(), &n).sketches(std::slice::from_ref(&n)).unwrap().unwrap();
            union.add(&sketches, 10).unwrap();
        }
        assert_eq!(union.files(), ranges.len() as u64);
        union.finish(of).unwrap()
    };
    let few = union(&[0..1000, 500..1500, 0..0]);
    assert_eq!(few.blobs[0].ndv(), Some(1500));
    let many = union(&[0..50_000, 25_000..100_000, 40_000..60_000]);
    let ndv = many.blobs[0].ndv().unwrap();
    assert!((95_000..105_000).contains(&ndv), "{ndv}");
    assert_eq!(many.bytes, union(&[40_000..60_000, 25_000..100_000, 0..50_000]).bytes);
    assert_eq!(union(&[]).blobs[0].ndv(), Some(0));

    // The footer is as long as it says, and the blobs say whose they are.
    let start = few.bytes.len() - few.footer_bytes as usize;
    assert_eq!((&few.bytes[start..start + 4], &few.bytes[few.bytes.len() - 4..]), (&b"PFA1"[..], &b"PFA1"[..]));
    let footer: serde_json::Value = serde_json::from_slice(&few.bytes[start + 4..few.bytes.len() - 12]).unwrap();
    let blob = &footer["blobs"][0];
    assert_eq!((&blob["snapshot-id"], &blob["sequence-number"], &blob["fields"]), (&77.into(), &5.into(), &[1].into()));
    assert_eq!((&footer["properties"]["firn.data-files"], &blob["properties"]["ndv"]), (&"3".into(), &"1500".into()));

    let mut other = NdvUnion::new(vec![n.clone(), n.clone()]).unwrap();
    let one = numbers(0..3, &n).sketches(std::slice::from_ref(&n)).unwrap().unwrap();
    assert!(other.add(&one, 3).is_err());
}

/// An int that has become a long has other bytes: its old sketch would count every value a second time.
#[test]
fn sketches_of_another_type_or_of_too_few_columns_are_none() {
    let (int, long) = (column("n", 1, DataType::Int32), column("n", 1, DataType::Int64));
    let sidecar = numbers(0..10, &int);
    assert!(sidecar.sketches(std::slice::from_ref(&int)).unwrap().is_some());
    assert!(sidecar.sketches(std::slice::from_ref(&long)).unwrap().is_none());
    assert!(sidecar.sketches(&[int.clone(), column("m", 2, DataType::Int32)]).unwrap().is_none());
    // Renamed it is the same column.
    assert!(sidecar.sketches(&[column("renamed", 1, DataType::Int32)]).unwrap().is_some());
}
