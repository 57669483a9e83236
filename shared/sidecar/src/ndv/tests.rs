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
