use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

const GEN: &str = "0193e8a0-0000-7000-8000-00000000000a";

fn parse(text: &str) -> Result<Message, BadMessage> {
    parse_message(text.as_bytes())
}

fn partition(value: Value) -> PartitionJson {
    value.as_object().unwrap().clone()
}

#[test]
fn the_form_of_the_design_is_read_and_written() {
    let text = format!(
        "{{\"v\":1,\"dataset\":\"spans\",\"partition\":{{\"day\":\"2026-11-01\"}},\"specId\":0,\"rule\":\"backlog\",\
         \"pass\":\"{GEN}\",\"gen\":\"{GEN}\"}}"
    );
    let message = parse(&text).unwrap();
    let generation = GEN.parse().unwrap();
    let expected = Message {
        dataset: "spans".into(),
        partition: Some(partition(json!({"day": "2026-11-01"}))),
        spec_id: Some(0),
        rule: Some(Rule::Backlog),
        pass: Some(GEN.into()),
        generation: Some(generation),
        date_range: None,
        dry_run: false,
    };
    assert_eq!(message, expected);
    assert_eq!(message.kind(), MessageKind::Worker { generation });
    let written: Value = serde_json::from_str(&message.to_json().unwrap()).unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn every_form_by_hand_is_read() {
    let dataset = Message::by_hand("spans");
    let one = Message { partition: Some(partition(json!({"day": null, "n": 7, "b": true}))), ..dataset.clone() };
    let filtered = Message {
        date_range: Some("2026-11-01:2026-11-02".into()),
        dry_run: true,
        rule: Some(Rule::Full),
        ..dataset.clone()
    };
    let unpartitioned = Message { partition: Some(PartitionJson::new()), spec_id: Some(3), ..dataset.clone() };
    for (text, expected, kind) in [
        (r#"{"dataset":"spans"}"#, &dataset, MessageKind::ByHandDataset),
        (r#"{"v":1,"dataset":"spans","dryRun":false,"partition":null}"#, &dataset, MessageKind::ByHandDataset),
        (r#"{"dataset":"spans","partition":{"day":null,"n":7,"b":true}}"#, &one, MessageKind::ByHandPartition),
        (
            r#"{"dataset":"spans","dateRange":"2026-11-01:2026-11-02","dryRun":true,"rule":"full"}"#,
            &filtered,
            MessageKind::ByHandDataset,
        ),
        (r#"{"dataset":"spans","partition":{},"specId":3}"#, &unpartitioned, MessageKind::ByHandPartition),
    ] {
        let base64 = STANDARD.encode(text);
        let wrapped = format!("{}\r\n{}\n", &base64[..10], &base64[10..]);
        for form in [
            text.to_owned(),
            format!("{text}\n"),
            format!(" \r\n{text}\r\n"),
            format!("\u{FEFF}{text}"),
            base64.clone(),
            format!("{base64}\n"),
            base64.trim_end_matches('=').to_owned(),
            wrapped,
            STANDARD.encode(format!("{text}\n")),
        ] {
            assert_eq!(parse(&form).as_ref(), Ok(expected), "{form}");
        }
        assert_eq!(expected.kind(), kind);
    }
    assert_eq!(dataset.rule_or_manual(), Rule::Manual);
}

#[test]
fn everything_else_is_refused_with_a_sentence() {
    let utf16: Vec<u8> = r#"{"dataset":"spans"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_mark: Vec<u8> = [vec![0xFF, 0xFE], utf16.clone()].concat();
    let large = format!(r#"{{"dataset":"spans","partition":{{"s":"{}"}}}}"#, "x".repeat(MESSAGE_LIMIT));
    for (body, part) in [
        (Vec::new(), "the message is empty"),
        (b" \n".to_vec(), "the message is empty"),
        (vec![0xC3, 0x28], "not UTF-8 text"),
        (utf16.clone(), "UTF-16"),
        (STANDARD.encode(&utf16).into_bytes(), "UTF-16"),
        (STANDARD.encode(&with_mark).into_bytes(), "encode it as UTF-8"),
        (STANDARD.encode([0xC3, 0x28, 0xA0, 0xA1]).into_bytes(), "Base64 of something that is no UTF-8 text"),
        (STANDARD.encode("hello world").into_bytes(), "it begins with `hello world`"),
        (STANDARD.encode(STANDARD.encode(r#"{"dataset":"spans"}"#)).into_bytes(), "not JSON"),
        (b"hello!".to_vec(), "not JSON (expected value at line 1 column 1)"),
        (b"{\"dataset\":\"spans\"".to_vec(), "not JSON (EOF while parsing"),
        (b"{\"dataset\":\"spans\"}}".to_vec(), "trailing characters"),
        (b"{dataset:spans}".to_vec(), "not JSON"),
        (b"42".to_vec(), "the message is a number, not a JSON object"),
        (b"1234".to_vec(), "the message is a number"),
        (b"null".to_vec(), "the message is null"),
        (b"true".to_vec(), "the message is true or false"),
        (b"\"spans\"".to_vec(), "the message is a JSON string"),
        (b"[{\"dataset\":\"spans\"}]".to_vec(), "the message is an array"),
        (STANDARD.encode("42").into_bytes(), "the message is a number"),
        (large.clone().into_bytes(), "a message has less than 8192"),
        (STANDARD.encode(&large).into_bytes(), "a message has less than 8192"),
    ] {
        let error = parse_message(&body).unwrap_err();
        assert!(error.to_string().contains(part), "{}: {error}", String::from_utf8_lossy(&body));
        assert!(!error.is_newer());
    }
    for (text, part) in [
        ("{}", "names no dataset"),
        (r#"{"dataset":" "}"#, "names no dataset"),
        (r#"{"dataset":null}"#, "names no dataset"),
        (r#"{"dataset":7}"#, "`dataset` is 7, but must be the name of a dataset"),
        (r#"{"v":0,"dataset":"a"}"#, "version 0 of the message is not one"),
        (r#"{"v":"1","dataset":"a"}"#, "`v` is \"1\", but must be a whole number"),
        (r#"{"v":-1,"dataset":"a"}"#, "`v` is -1"),
        (r#"{"v":1.5,"dataset":"a"}"#, "`v` is 1.5"),
        (r#"{"dataset":"a","files":["x"]}"#, "unknown field `files`"),
        (r#"{"dataset":"a","date_range":"x"}"#, "did you mean dateRange?"),
        (r#"{"Dataset":"a"}"#, "did you mean dataset?"),
        (r#"{"dataset":"a","partition":"day=1"}"#, "`partition` is \"day=1\", but must be an object"),
        (r#"{"dataset":"a","partition":[]}"#, "`partition` is []"),
        (r#"{"dataset":"a","partition":{"day":["x"]}}"#, "`partition.day` is [\"x\"], but must be a text"),
        (r#"{"dataset":"a","partition":{},"specId":"0"}"#, "`specId` is \"0\""),
        (r#"{"dataset":"a","partition":{},"specId":-1}"#, "`specId` is -1"),
        (r#"{"dataset":"a","partition":{},"specId":3000000000}"#, "`specId` is 3000000000"),
        (r#"{"dataset":"a","rule":"nightly"}"#, "`rule` is \"nightly\", but must be backlog, tier"),
        (r#"{"dataset":"a","rule":"backlog"}"#, "rule `backlog` of a whole dataset: by hand it is manual or full"),
        (r#"{"dataset":"a","pass":"../x"}"#, "`pass` is \"../x\""),
        (r#"{"dataset":"a","pass":""}"#, "`pass` is \"\""),
        (r#"{"dataset":"a","partition":{},"gen":"x"}"#, "`gen` is \"x\", but must be a UUID"),
        (r#"{"dataset":"a","dateRange":["x"]}"#, "`dateRange` is [\"x\"]"),
        (r#"{"dataset":"a","dryRun":"yes"}"#, "`dryRun` is \"yes\", but must be true or false"),
        (r#"{"dataset":"a","partition":{},"dateRange":"x"}"#, "`dateRange` beside `partition`"),
        (r#"{"dataset":"a","specId":0}"#, "`specId` without `partition`"),
        (&format!(r#"{{"dataset":"a","gen":"{GEN}"}}"#), "`gen` without `partition`"),
        (&format!(r#"{{"dataset":"a","partition":{{}},"gen":"{GEN}","dryRun":true}}"#), "`dryRun` beside `gen`"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert!(!error.is_newer());
    }
}

#[test]
fn a_newer_version_is_for_a_newer_handler_whatever_else_stands_in_it() {
    for text in [r#"{"v":2}"#, r#"{"v":2,"dataset":["a"],"shards":[1]}"#] {
        assert_eq!(parse(text), Err(BadMessage::NewerVersion { v: 2 }), "{text}");
        assert_eq!(parse(&STANDARD.encode(text)), Err(BadMessage::NewerVersion { v: 2 }), "{text}");
    }
    assert!(BadMessage::NewerVersion { v: 2 }.is_newer());
}

#[test]
fn a_message_that_would_be_too_large_is_not_written() {
    let long = Message { partition: Some(partition(json!({"s": "x".repeat(9000)}))), ..Message::by_hand("a") };
    assert!(matches!(long.to_json(), Err(BadMessage::TooLarge { bytes }) if bytes > 9000));
}

fn any_message() -> impl Strategy<Value = Message> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let partition = prop::collection::btree_map(".{0,6}", value, 0..4).prop_map(|map| map.into_iter().collect());
    let rule = prop::sample::select(Rule::ALL.to_vec());
    let parts = (
        "[^ ].{0,20}[^ ]".prop_filter("a name", |name| !name.trim().is_empty()),
        prop::option::of((partition, prop::option::of(0..i32::MAX), prop::option::of(rule))),
        prop::option::of("[A-Za-z0-9-]{1,64}"),
        prop::option::of(any::<u128>().prop_map(Uuid::from_u128)),
        prop::option::of(".{0,30}"),
        any::<bool>(),
    );
    parts.prop_map(|(dataset, one, pass, generation, date_range, dry_run)| {
        let generation = generation.filter(|_| one.is_some());
        let date_range = date_range.filter(|_| one.is_none());
        let dry_run = dry_run && generation.is_none();
        let (partition, spec_id, rule) =
            one.map_or((None, None, None), |(tuple, spec, rule)| (Some(tuple), spec, rule));
        Message { dataset, partition, spec_id, rule, pass, generation, date_range, dry_run }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(message in any_message()) {
        let text = message.to_json().unwrap();
        prop_assert_eq!(parse(&text), Ok(message.clone()));
        prop_assert_eq!(parse(&STANDARD.encode(&text)), Ok(message.clone()));
        prop_assert_eq!(parse(&format!("{text}\n")), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_or_a_sentence(body in any::<Vec<u8>>()) {
        if let Err(error) = parse_message(&body) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_json_is_a_message_or_a_sentence(text in r#"(\{|\}|\[|\]|"|:|,|v|dataset|partition|specId|rule|pass|gen|1|-|2|null|é){0,24}"#) {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
