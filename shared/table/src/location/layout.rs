//! The layouts of Iceberg's location providers: where a new data file of a table belongs.

use std::collections::HashMap;

use firn_model::PartitionKey;
use iceberg::spec::PartitionSpec;

use super::human::human_string;

/// Why Firn cannot place files of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayoutError {
    /// The table's files are placed by code that only other engines have.
    #[error("property `{property}` = `{value}` places files by code that Firn does not have; remove the property")]
    CustomProvider { property: &'static str, value: String },
    /// Tuple and spec do not belong together.
    #[error("partition tuple ({key}) has {found} values, spec {spec_id} has {expected} fields")]
    Tuple { key: String, spec_id: i32, found: usize, expected: usize },
}

const CUSTOM_PROVIDERS: [&str; 2] = ["write.location-provider.impl", "write.py-location-provider.impl"];
const DATA_PATH: &str = "write.data.path";
const FOLDER_STORAGE_PATH: &str = "write.folder-storage.path";
const OBJECT_STORAGE_PATH: &str = "write.object-storage.path";
const OBJECT_STORAGE: &str = "write.object-storage.enabled";
const PARTITIONED_PATHS: &str = "write.object-storage.partitioned-paths";
const METADATA_PATH: &str = "write.metadata.path";

/// Bits of the hash that become directories, in groups of four and a rest, as Iceberg does since 1.7.
const ENTROPY_BITS: usize = 20;
const ENTROPY_DIRECTORY_BITS: usize = 4;
const ENTROPY_DIRECTORIES: usize = 3;

/// Full path of a new data file called `file_name`.
pub(crate) fn data_path(
    table_location: &str,
    properties: &HashMap<String, String>,
    spec: &PartitionSpec,
    partition: &PartitionKey,
    file_name: &str,
) -> Result<String, LayoutError> {
    if let Some((property, value)) =
        CUSTOM_PROVIDERS.iter().find_map(|property| properties.get(*property).map(|value| (*property, value)))
    {
        return Err(LayoutError::CustomProvider { property, value: value.clone() });
    }
    let location = table_location.trim_end_matches('/');
    let partition_path = partition_path(spec, partition)?;
    let named = match &partition_path {
        Some(directories) => format!("{directories}/{file_name}"),
        None => file_name.to_owned(),
    };
    if !is_true(properties, OBJECT_STORAGE, false) {
        return Ok(format!("{}/{named}", data_root(location, properties, &[DATA_PATH, FOLDER_STORAGE_PATH])));
    }
    let root = data_root(location, properties, &[DATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH]);
    let partitioned_paths = is_true(properties, PARTITIONED_PATHS, true);
    let named = if partitioned_paths { named } else { file_name.to_owned() };
    let entropy = entropy(&named);
    if !root.starts_with(location) {
        // Several tables share this root: Java names database and table, so that their files can be told apart.
        return Ok(format!("{root}/{entropy}/{}/{named}", path_context(location)));
    }
    let joint = if partitioned_paths { '/' } else { '-' };
    Ok(format!("{root}/{entropy}{joint}{named}"))
}

/// The directory of a table's metadata files, without a slash at its end.
pub(crate) fn metadata_root(table_location: &str, properties: &HashMap<String, String>) -> String {
    match properties.get(METADATA_PATH) {
        Some(path) => path.trim_end_matches('/').to_owned(),
        None => format!("{}/metadata", table_location.trim_end_matches('/')),
    }
}

/// `name=value/…` as `PartitionSpec.partitionToPath` writes it; None for a spec that partitions nothing.
fn partition_path(spec: &PartitionSpec, key: &PartitionKey) -> Result<Option<String>, LayoutError> {
    if spec.is_unpartitioned() {
        return Ok(None);
    }
    if spec.fields().len() != key.values.len() {
        return Err(LayoutError::Tuple {
            key: key.to_string(),
            spec_id: spec.spec_id(),
            found: key.values.len(),
            expected: spec.fields().len(),
        });
    }
    let directories: Vec<String> = spec
        .fields()
        .iter()
        .zip(&key.values)
        .map(|(field, value)| {
            let text = human_string(field.transform, value.value.as_ref());
            format!("{}={}", form_encode(&field.name), form_encode(&text))
        })
        .collect();
    Ok(Some(directories.join("/")))
}

fn data_root(location: &str, properties: &HashMap<String, String>, keys: &[&str]) -> String {
    match keys.iter().find_map(|key| properties.get(*key)) {
        Some(path) => path.trim_end_matches('/').to_owned(),
        None => format!("{location}/data"),
    }
}

/// Java's `Boolean.parseBoolean`: only `true`, in any case, is true.
fn is_true(properties: &HashMap<String, String>, key: &str, default: bool) -> bool {
    properties.get(key).map_or(default, |value| value.eq_ignore_ascii_case("true"))
}

/// The last two names of the table location.
fn path_context(location: &str) -> String {
    let after_scheme = location.split_once("://").map_or(location, |(_, rest)| rest);
    let path = after_scheme.split_once('/').map_or("", |(_, path)| path);
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [.., parent, name] => format!("{parent}/{name}"),
        [name] => (*name).to_owned(),
        [] => after_scheme.trim_matches('/').to_owned(),
    }
}

/// `java.net.URLEncoder` with UTF-8: the form encoding, where a space is `+`.
fn form_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Directories from the low bits of a hash of the name, for example `0101/0110/1001/10110010`.
fn entropy(name: &str) -> String {
    let bits = format!("{:032b}", murmur3_32(name.as_bytes()));
    let bits = &bits[bits.len() - ENTROPY_BITS..];
    let mut parts: Vec<&str> = (0..ENTROPY_DIRECTORIES)
        .map(|index| &bits[index * ENTROPY_DIRECTORY_BITS..(index + 1) * ENTROPY_DIRECTORY_BITS])
        .collect();
    parts.push(&bits[ENTROPY_DIRECTORIES * ENTROPY_DIRECTORY_BITS..]);
    parts.join("/")
}

/// MurmurHash3, x86 variant of 32 bits, seed 0 (Guava's `murmur3_32_fixed`).
fn murmur3_32(bytes: &[u8]) -> u32 {
    let mix = |block: u32| block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    let mut hash = 0_u32;
    let mut blocks = bytes.chunks_exact(4);
    for block in &mut blocks {
        let block = block.iter().rev().fold(0_u32, |value, byte| (value << 8) | u32::from(*byte));
        hash = (hash ^ mix(block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let rest = blocks.remainder().iter().rev().fold(0_u32, |value, byte| (value << 8) | u32::from(*byte));
    if !blocks.remainder().is_empty() {
        hash ^= mix(rest);
    }
    // The length is mixed in modulo 2^32, as the algorithm says.
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::{PartitionValue, Scalar};
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type};

    use super::*;

    const LOCATION: &str = "abfss://lake@acc.dfs.core.windows.net/wh/db/t";

    fn schema() -> Arc<Schema> {
        let fields = vec![
            Arc::new(NestedField::optional(1, "s", Type::Primitive(PrimitiveType::String))),
            Arc::new(NestedField::optional(2, "d", Type::Primitive(PrimitiveType::Date))),
        ];
        Arc::new(Schema::builder().with_fields(fields).build().unwrap())
    }

    fn spec() -> PartitionSpec {
        PartitionSpec::builder(schema())
            .with_spec_id(3)
            .add_partition_field("s", "s p/q", Transform::Identity)
            .unwrap()
            .add_partition_field("d", "d_day", Transform::Day)
            .unwrap()
            .build()
            .unwrap()
    }

    fn key(s: Option<&str>) -> PartitionKey {
        let s = PartitionValue { name: "s p/q".into(), value: s.map(|s| Scalar::String(s.into())) };
        PartitionKey::new(3, vec![s, PartitionValue { name: "d_day".into(), value: Some(Scalar::Date(20_758)) }])
    }

    fn place(properties: &[(&str, &str)], key: &PartitionKey) -> Result<String, LayoutError> {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        data_path(LOCATION, &properties, &spec(), key, "f.parquet")
    }

    #[test]
    fn the_default_layout_encodes_names_and_values_as_a_form_does() {
        assert_eq!(
            place(&[], &key(Some("11/12 é*~%"))).unwrap(),
            format!("{LOCATION}/data/s+p%2Fq=11%2F12+%C3%A9*%7E%25/d_day=2026-11-01/f.parquet")
        );
        assert_eq!(place(&[], &key(None)).unwrap(), format!("{LOCATION}/data/s+p%2Fq=null/d_day=2026-11-01/f.parquet"));
    }

    #[test]
    fn data_path_and_its_old_names_are_followed() {
        let at = |properties: &[(&str, &str)]| place(properties, &key(Some("a"))).unwrap();
        let tail = "s+p%2Fq=a/d_day=2026-11-01/f.parquet";
        assert_eq!(at(&[("write.data.path", "abfss://x@y/z/")]), format!("abfss://x@y/z/{tail}"));
        assert_eq!(at(&[("write.folder-storage.path", "abfss://x@y/z")]), format!("abfss://x@y/z/{tail}"));
        // Only the object-storage layout knows this one.
        assert_eq!(at(&[("write.object-storage.path", "abfss://x@y/z")]), format!("{LOCATION}/data/{tail}"));
    }

    #[test]
    fn the_object_storage_layout_hashes_the_name_with_its_partition() {
        let on = ("write.object-storage.enabled", "true");
        let at = |properties: &[(&str, &str)]| place(properties, &key(Some("a"))).unwrap();
        let tail = "s+p%2Fq=a/d_day=2026-11-01/f.parquet";
        let hashed = entropy(tail);
        assert_eq!(at(&[on]), format!("{LOCATION}/data/{hashed}/{tail}"));
        assert_eq!(
            at(&[on, ("write.object-storage.partitioned-paths", "false")]),
            format!("{LOCATION}/data/{}-f.parquet", entropy("f.parquet"))
        );
        assert_eq!(
            at(&[on, ("write.object-storage.path", "abfss://x@y/z")]),
            format!("abfss://x@y/z/{hashed}/db/t/{tail}")
        );
    }

    /// Values computed with PyIceberg 0.12 (`ObjectStoreLocationProvider._compute_hash`) and with mmh3.
    #[test]
    fn entropy_is_that_of_other_writers() {
        assert_eq!(entropy("a"), "0101/0110/1001/10110010");
        for (text, expected) in
            [("", 0), ("a", 0x3C25_69B2), ("ab", 0x9BBF_D75F), ("abc", 0xB3DD_93FA), ("abcd", 0x43ED_676A)]
        {
            assert_eq!(murmur3_32(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(murmur3_32("The quick brown fox jumps over the lazy dog".as_bytes()), 0x2E4F_F723);
    }

    #[test]
    fn a_provider_that_firn_lacks_is_named() {
        let error = place(&[("write.location-provider.impl", "com.acme.Layout")], &key(None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "property `write.location-provider.impl` = `com.acme.Layout` places files by code that Firn does not have; \
             remove the property"
        );
    }

    #[test]
    fn a_tuple_of_another_spec_is_refused() {
        assert!(matches!(
            place(&[], &PartitionKey::new(3, vec![])),
            Err(LayoutError::Tuple { found: 0, expected: 2, .. })
        ));
    }

    #[test]
    fn an_unpartitioned_table_has_no_directories() {
        let spec = PartitionSpec::unpartition_spec();
        let path = data_path("file:///w/t/", &HashMap::new(), &spec, &PartitionKey::unpartitioned(0), "f.parquet");
        assert_eq!(path.unwrap(), "file:///w/t/data/f.parquet");
        assert_eq!(path_context("file:///w/t"), "w/t");
        assert_eq!(metadata_root("file:///w/t/", &HashMap::new()), "file:///w/t/metadata");
    }
}
