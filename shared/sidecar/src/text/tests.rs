use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, StringViewArray};
use arrow_schema::DataType;
use firn_columnar::TempSpace;
use firn_model::BlobId;
use firn_storage::{BlobStore, MemoryStore};
use proptest::prelude::*;

use super::*;
use crate::bundle::BundleReader;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn, SidecarKind};
use crate::query::{Query, Scanner};

fn columns() -> Vec<SidecarColumn> {
    let column = |name: &str, field_id| SidecarColumn { name: name.into(), field_id, data_type: DataType::Utf8 };
    vec![column("message", 3), column("host", 4)]
}

fn data(rows: usize) -> DataFile {
    DataFile { path: "/t/data/a.parquet".into(), size: 1000, rows: rows as u64 }
}

type Row = (Option<String>, Option<String>);

fn arrays(rows: &[Row]) -> Vec<ArrayRef> {
    let messages: StringArray = rows.iter().map(|(message, _)| message.as_deref()).collect();
    let hosts: StringArray = rows.iter().map(|(_, host)| host.as_deref()).collect();
    vec![Arc::new(messages), Arc::new(hosts)]
}

/// An index in memory; each batch is followed by the end of its segment when `segments` says so.
struct Lake {
    store: Arc<MemoryStore>,
    id: BlobId,
    rows: usize,
    _root: tempfile::TempDir,
    space: TempSpace,
}

impl Lake {
    fn new() -> Lake {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 1 << 30).unwrap();
        Lake { store: Arc::default(), id: BlobId::local("/t/_firn/a.tantivy"), rows: 0, _root: root, space }
    }

    fn builder(&self) -> TextBuilder {
        TextBuilder::new(columns(), LEAST_ARENA_BYTES, &self.space).unwrap()
    }

    async fn write(&mut self, builder: TextBuilder, rows: usize) {
        self.rows = rows;
        let bundle = builder.finish().unwrap();
        bundle.write(&*self.store, &self.id, data(rows)).await.unwrap();
    }

    async fn index(&self) -> TextIndex {
        TextIndex::open(self.store.clone(), &self.id, &data(self.rows)).await.unwrap()
    }
}

async fn rows(index: &TextIndex, text: &str) -> Vec<u64> {
    match index.rows(&Query::parse(text, &columns()).unwrap()).await.unwrap() {
        TextAnswer::Rows(rows) => rows.iter().collect(),
        TextAnswer::Scan(reason) => panic!("{text}: {reason}"),
    }
}

fn row(message: &str) -> Row {
    (Some(message.to_owned()), None)
}

#[tokio::test]
async fn every_row_is_found_by_its_number_through_many_segments() {
    let mut lake = Lake::new();
    let mut builder = lake.builder();
    // Words of their own make segments large: several of them, merged in the order of the rows.
    let all: Vec<Row> = (0..6000)
        .map(|n| {
            let unique: Vec<String> = (0..40).map(|word| format!("w{n}x{word}padding{}", n * 7919 + word)).collect();
            (Some(format!("number n{n} {}", unique.join(" "))), Some(format!("host{}", n % 7)))
        })
        .collect();
    for batch in all.chunks(500) {
        builder.add(&arrays(batch)).unwrap();
    }
    let debug = format!("{builder:?}");
    assert!(!debug.contains("segments: 0") && !debug.contains("segments: 1,"), "one segment proves nothing: {debug}");
    lake.write(builder, all.len()).await;
    let index = lake.index().await;
    for n in (0..6000).step_by(101).chain([5999]) {
        assert_eq!(rows(&index, &format!("n{n}")).await, [n]);
        assert_eq!(rows(&index, &format!("\"n{n} w{n}x0padding{}\"", n * 7919)).await, [n]);
    }
    let expected: Vec<u64> = (0..6000).filter(|n| n % 7 == 3).collect();
    assert_eq!(rows(&index, "host:host3").await, expected);
    assert_eq!(lake.space.used_bytes(), 0, "temporary files are gone");
}

/// Temporary disk that holds the index once and a part of it a second time: several segments, and each row is still where it was.
#[tokio::test]
async fn a_small_disk_makes_several_segments_and_no_other_answer() {
    let all: Vec<Row> = (0..6000)
        .map(|n| {
            let unique: Vec<String> = (0..40).map(|word| format!("w{n}x{word}padding{}", n * 7919 + word)).collect();
            row(&format!("number n{n} m{} {}", n % 5, unique.join(" ")))
        })
        .collect();
    let fill = |lake: &Lake| {
        let mut builder = lake.builder();
        all.chunks(500).for_each(|batch| builder.add(&arrays(batch)).unwrap());
        builder
    };
    let mut lake = Lake::new();
    let whole = fill(&lake);
    let bytes = lake.space.used_bytes();
    drop(whole);
    let root = tempfile::tempdir().unwrap();
    lake.space = TempSpace::create(root.path(), bytes * 16 / 10).unwrap();
    let builder = fill(&lake);
    lake.write(builder, all.len()).await;
    assert!(lake.space.peak_bytes() <= bytes * 16 / 10);
    let index = lake.index().await;
    assert!(index.about().segments.len() > 1, "{:?}", index.about().segments);
    for n in (0..6000).step_by(97).chain([5999]) {
        assert_eq!(rows(&index, &format!("n{n}")).await, [n]);
        assert_eq!(rows(&index, &format!("\"m{} w{n}x0padding{}\"", n % 5, n * 7919)).await, [n]);
    }
    let expected: Vec<u64> = (0..6000).filter(|n| n % 5 != 3).collect();
    assert_eq!(rows(&index, "number -m3").await, expected);
    let bundle = BundleReader::open(lake.store.clone(), &lake.id, SidecarKind::Text, Some(&data(6000))).await.unwrap();
    bundle.verify().await.unwrap();
}

/// K33 and the list of odd values: nulls, empty strings, long words, NUL, emoji, case.
#[tokio::test]
async fn odd_values_are_found_as_a_scan_finds_them() {
    let mut lake = Lake::new();
    let long = "y".repeat(MAX_WORD_BYTES + 1);
    let fits = "z".repeat(MAX_WORD_BYTES);
    let all: Vec<Row> = vec![
        (None, None),
        row(""),
        row("x"),
        row("Error\u{0}disk"),
        row("😀 smile 😀"),
        row("ÄRGER mit Umlauten"),
        row(&format!("before {long} after")),
        row(&fits),
        (None, Some("web-01.example".into())),
        row(&"word ".repeat(100_000)),
    ];
    let mut builder = lake.builder();
    builder.add(&arrays(&all)).unwrap();
    lake.write(builder, all.len()).await;
    let index = lake.index().await;
    let about = index.about();
    assert_eq!(about.dropped_words, 1);
    assert_eq!(about.columns.iter().map(|column| column.nulls).collect::<Vec<_>>(), [2, 9]);
    for (query, expected) in [
        ("x", vec![2]),
        ("DISK error", vec![3]),
        ("smile", vec![4]),
        ("ärger", vec![5]),
        ("\"before after\"", vec![]),
        ("before after", vec![6]),
        (fits.as_str(), vec![7]),
        ("web-01.example", vec![8]),
        ("host:01", vec![8]),
        ("message:01", vec![]),
        ("\"word word word\"", vec![9]),
        ("nothing", vec![]),
        ("NOT x", vec![0, 1, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        assert_eq!(rows(&index, query).await, expected, "{query}");
    }
    // A word that is not in the index, although a row has it.
    for query in [long.clone(), format!("NOT {long}"), format!("x OR \"before {long}\"")] {
        let answer = index.rows(&Query::parse(&query, &columns()).unwrap()).await.unwrap();
        assert!(matches!(answer, TextAnswer::Scan(_)), "{query}");
    }
}

/// Values from nothing to 10 MB, beside a column that has none: whoever looks at every row finds what the index finds.
#[tokio::test]
async fn values_of_any_size_are_found_by_index_and_scan_alike() {
    let mut lake = Lake::new();
    let long = "y".repeat(MAX_WORD_BYTES + 1);
    let large = format!("{}needle10mb", "Lorem IPSUM dolor ".repeat(555_555));
    assert!(large.len() > 10_000_000 - 100, "{}", large.len());
    let texts = ["", "x", "\u{0}", "Error\u{0}disk", "😀", "a😀b", "MiXeD", &format!("before {long} after"), &large];
    let mut all: Vec<Row> = texts.iter().map(|text| row(text)).collect();
    all.push((None, None));
    let mut builder = lake.builder();
    builder.add(&arrays(&all)).unwrap();
    lake.write(builder, all.len()).await;
    let index = lake.index().await;
    assert_eq!(index.about().columns[1].nulls, all.len() as u64, "no row has a host");
    for text in [
        "x",
        "disk",
        "\"error disk\"",
        "a",
        "b",
        "\"a b\"",
        "mixed",
        "before",
        "needle10mb",
        "\"dolor needle10mb\"",
        "\"lorem ipsum dolor lorem\"",
        "host:x",
        "NOT host:x",
        "NOT lorem",
        "-x -mixed",
        "😀 OR x",
    ] {
        // An emoji alone is no word.
        let Ok(query) = Query::parse(text, &columns()) else { continue };
        let mut scanner = Scanner::new(&query);
        let scanned = (0_u64..).zip(&all).filter(|(_, (message, _))| scanner.matches(&[message.as_deref(), None]));
        let scanned: Vec<u64> = scanned.map(|(row, _)| row).collect();
        assert_eq!(rows(&index, text).await, scanned, "{text}");
    }
    assert_eq!(rows(&index, "needle10mb").await, [8]);
    let asked = index.rows(&Query::parse(&long, &columns()).unwrap()).await.unwrap();
    assert!(matches!(asked, TextAnswer::Scan(_)), "{asked:?}");
}

#[tokio::test]
async fn a_column_that_is_not_in_the_index_means_a_scan() {
    let mut lake = Lake::new();
    let mut builder = lake.builder();
    builder.add(&arrays(&[row("a")])).unwrap();
    lake.write(builder, 1).await;
    let index = lake.index().await;
    let mut more = columns();
    more.push(SidecarColumn { name: "body".into(), field_id: 9, data_type: DataType::Utf8 });
    let asked = |text: &str| Query::parse(text, &more).unwrap();
    assert_eq!(index.rows(&asked("a")).await.unwrap(), TextAnswer::Scan("column `body` is not in the index".into()));
    assert!(matches!(index.rows(&asked("message:a")).await.unwrap(), TextAnswer::Rows(_)));
    // Renamed, but the same column.
    let renamed = vec![SidecarColumn { name: "text".into(), ..columns()[0].clone() }];
    let TextAnswer::Rows(found) = index.rows(&Query::parse("text:a", &renamed).unwrap()).await.unwrap() else {
        panic!("the field id is the same")
    };
    assert_eq!(found.iter().collect::<Vec<_>>(), [0]);
}

#[tokio::test]
async fn an_index_of_nulls_can_be_opened_and_finds_nothing() {
    let mut lake = Lake::new();
    let mut builder = lake.builder();
    let nulls: ArrayRef = Arc::new(StringViewArray::from(vec![None::<&str>; 5]));
    builder.add(&[Arc::clone(&nulls), nulls]).unwrap();
    lake.write(builder, 5).await;
    let index = lake.index().await;
    assert_eq!(rows(&index, "a").await, Vec::<u64>::new());
    assert_eq!(rows(&index, "NOT a").await, [0, 1, 2, 3, 4]);
}

/// K40: what is damaged, cut or another's is as good as absent.
#[tokio::test]
async fn damaged_blobs_are_refused_or_found_out_and_never_panic() {
    let mut lake = Lake::new();
    let mut builder = lake.builder();
    let all: Vec<Row> = (0..200).map(|n| row(&format!("row {n} of many"))).collect();
    builder.add(&arrays(&all)).unwrap();
    lake.write(builder, all.len()).await;
    let whole = lake.store.read_all(&lake.id).await.unwrap();
    let query = Query::parse("row", &columns()).unwrap();
    let open = async |bytes: Vec<u8>| {
        let store: Arc<MemoryStore> = Arc::default();
        store.put(&lake.id, bytes.into(), firn_storage::PutCondition::Any).await.unwrap();
        let bundle = BundleReader::open(store, &lake.id, SidecarKind::Text, Some(&data(200))).await?;
        TextIndex::of(bundle).await?.rows(&query).await
    };
    assert!(matches!(open(whole.to_vec()).await, Ok(TextAnswer::Rows(rows)) if rows.len() == 200));
    for length in (0..whole.len()).step_by(97) {
        assert!(open(whole[..length].to_vec()).await.is_err(), "cut at {length}");
    }
    for at in (0..whole.len()).step_by(31) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0x10;
        assert!(open(damaged).await.is_err(), "byte {at}");
    }
    let absent = TextIndex::open(lake.store.clone(), &BlobId::local("/no"), &data(200)).await.unwrap_err();
    assert!(matches!(absent, SidecarError::Absent { .. }), "{absent}");
    let other = TextIndex::open(lake.store.clone(), &lake.id, &data(201)).await.unwrap_err();
    assert!(matches!(other, SidecarError::Unusable { .. }), "{other}");
}

#[test]
fn only_text_is_indexed_and_not_without_memory() {
    let lake = Lake::new();
    let number = SidecarColumn { name: "n".into(), field_id: 1, data_type: DataType::Int64 };
    let error = TextBuilder::new(vec![number], LEAST_ARENA_BYTES, &lake.space).unwrap_err();
    assert_eq!(error.to_string(), "column `n` cannot be indexed: its type is Int64");
    let error = TextBuilder::new(columns(), 1, &lake.space).unwrap_err();
    assert!(matches!(error, SidecarError::OverBudget { .. }), "{error}");
}

/// Texts of few words, so that queries find something, with odd characters between them.
fn text() -> impl Strategy<Value = Option<String>> {
    let word = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "Error", "ERROR", "x1", "été", "ÉTÉ", "东"]).prop_map(str::to_owned),
        1 => Just("L".repeat(MAX_WORD_BYTES + 1)),
        1 => "\\PC{0,4}",
    ];
    let gap = prop::sample::select(vec![" ", "-", "\u{0}", " 😀 ", "_", ": "]);
    let texts = prop::collection::vec((word, gap), 0..8)
        .prop_map(|parts| parts.into_iter().map(|(word, gap)| format!("{word}{gap}")).collect::<String>());
    prop_oneof![1 => Just(None), 8 => texts.prop_map(Some)]
}

fn query_text() -> impl Strategy<Value = String> {
    let long = "l".repeat(MAX_WORD_BYTES + 1);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            "c",
            "error",
            "x1",
            "été",
            "\"a b\"",
            "\"b a\"",
            "\"a a\"",
            "message:a",
            "host:\"c error\"",
            "q",
            "东",
            "\"error x1 b\"",
        ])
        .prop_map(str::to_owned),
        Just(long),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} OR {right})")),
            inner.prop_map(|part| format!("NOT {part}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn index_and_scan_find_the_same_rows(
        texts in prop::collection::vec((text(), text()), 1..60),
        queries in prop::collection::vec(query_text(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lake = Lake::new();
            let mut builder = lake.builder();
            for batch in texts.chunks(7) {
                builder.add(&arrays(batch)).unwrap();
            }
            lake.write(builder, texts.len()).await;
            let index = lake.index().await;
            for text in &queries {
                let query = Query::parse(text, &columns()).unwrap();
                let mut scanner = Scanner::new(&query);
                let scanned = (0_u64..).zip(&texts)
                    .filter(|(_, (message, host))| scanner.matches(&[message.as_deref(), host.as_deref()]))
                    .map(|(row, _)| row)
                    .collect::<Vec<_>>();
                match index.rows(&query).await.unwrap() {
                    TextAnswer::Rows(found) => assert_eq!(found.iter().collect::<Vec<_>>(), scanned, "{query}"),
                    TextAnswer::Scan(_) => assert!(text.contains(&"l".repeat(MAX_WORD_BYTES + 1)), "{query}"),
                }
            }
        });
    }
}
