//! Small Avro files for the tests beside.

use std::collections::HashMap;
use std::io::Read;

use apache_avro::types::Value;
use apache_avro::{Reader, Schema, Writer};

/// A file of two records, 5 and -1 in their only field, with `k` = `v` in its metadata.
pub(super) fn two_rows(schema: &str) -> Vec<u8> {
    let schema = Schema::parse_str(schema).unwrap();
    let Schema::Record(record) = &schema else { panic!("no record") };
    let name = record.fields[0].name.clone();
    let mut writer = Writer::new(&schema, Vec::new());
    writer.add_user_metadata("k".to_owned(), "v").unwrap();
    for a in [5, -1] {
        writer.append(Value::Record(vec![(name.clone(), Value::Int(a))])).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Metadata and records of a file.
pub(super) fn read(file: impl Read) -> (HashMap<String, Vec<u8>>, Vec<Value>) {
    let reader = Reader::new(file).unwrap();
    (reader.user_metadata().clone(), reader.map(Result::unwrap).collect())
}
