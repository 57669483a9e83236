use arrow_schema::DataType;

use super::*;

fn columns() -> Vec<SidecarColumn> {
    let column = |name: &str, field_id| SidecarColumn { name: name.into(), field_id, data_type: DataType::Utf8 };
    vec![column("message", 3), column("host", 4)]
}

fn parsed(text: &str) -> String {
    Query::parse(text, &columns()).unwrap().to_string()
}

#[test]
fn queries_mean_what_they_look_like() {
    for (text, meaning) in [
        ("Error", "error"),
        ("error timeout", "(error AND timeout)"),
        ("error AND timeout disk", "(error AND timeout AND disk)"),
        ("a b OR c", "((a AND b) OR c)"),
        ("(a OR b) -c", "((a OR b) AND NOT c)"),
        ("NOT a", "NOT a"),
        ("\"Connection  refused!\"", "\"connection refused\""),
        ("10.0.0.1", "\"10 0 0 1\""),
        ("message:error host:\"web 1\"", "(message:error AND host:\"web 1\")"),
        ("http://x", "\"http x\""),
        ("12:30", "\"12 30\""),
        ("and or", "(and AND or)"),
        ("foo-bar", "\"foo bar\""),
        ("ÄRGER", "ärger"),
    ] {
        assert_eq!(parsed(text), meaning, "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_told_with_its_place() {
    for (text, at, detail) in [
        ("", 1, "it is empty: give a word to look for"),
        ("a AND", 6, "it ends where a word should be"),
        ("OR a", 1, "`OR` where a word should be"),
        ("a (b", 3, "the bracket is not closed: add `)`"),
        ("a) b", 2, "`)` closes nothing"),
        ("ä \"b", 3, "the quote is not closed: add `\"`"),
        ("a !!", 3, "`!!` has no letter and no digit, and only words of those can be found"),
    ] {
        let error = Query::parse(text, &columns()).unwrap_err();
        assert_eq!((error.at, error.detail.as_str()), (at, detail), "{text}");
    }
    let deep = format!("{}a{}", "(".repeat(70), ")".repeat(70));
    assert!(Query::parse(&deep, &columns()).unwrap_err().detail.contains("64"));
}

#[test]
fn rows_are_matched_word_by_word() {
    let matches = |text: &str, message: Option<&str>, host: Option<&str>| {
        Scanner::new(&Query::parse(text, &columns()).unwrap()).matches(&[message, host])
    };
    assert!(matches("refused", Some("Connection REFUSED"), None));
    assert!(!matches("refuse", Some("Connection REFUSED"), None), "no parts of words");
    assert!(matches("\"connection refused\"", Some("a connection -- refused"), None));
    assert!(!matches("\"refused connection\"", Some("connection refused"), None));
    assert!(!matches("\"a b\"", Some("a"), Some("b")), "a phrase lies in one column");
    assert!(matches("a b", Some("a"), Some("b")), "words may lie in several");
    assert!(!matches("host:a", Some("a"), Some("b")));
    assert!(matches("-a", Some("b"), None) && matches("-a", None, None) && !matches("-a", Some("a"), None));
    assert!(matches("\"x x\"", Some("y x x"), None) && !matches("\"x x\"", Some("x y x"), None));
}

#[test]
fn a_column_of_the_table_that_is_not_searched_is_a_mistake() {
    let message = SidecarColumn { name: "message".into(), field_id: 1, data_type: arrow_schema::DataType::Utf8 };
    let parse = |text: &str| Query::parse_in_table(text, std::slice::from_ref(&message), &["level"]);
    let error = parse("retry level:ERROR").unwrap_err();
    assert_eq!(
        error.to_string(),
        "query `retry level:ERROR`, character 7: column `level` is not in tantivy.indexingColumns, which has message"
    );
    assert_eq!(parse("at 10:30 message:a").unwrap(), Query::parse("at 10:30 message:a", &[message]).unwrap());
}
