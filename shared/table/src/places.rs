//! The folders that are a table's own, and whether another program looks after it.

use std::collections::HashMap;

use iceberg::spec::TableMetadata;

use crate::location::layout::metadata_root;

/// Where data files go, the newest name of the property first. Each of them may have been in use at some time.
const DATA_PATHS: [&str; 3] = ["write.data.path", "write.object-storage.path", "write.folder-storage.path"];

/// Properties by which other services are switched on for a table: Apache Amoro, Tabular, Databricks.
const OPTIMIZERS: [&str; 4] = [
    "self-optimizing.enabled",
    "optimizer.enabled",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
];

/// Folders of a table, as its metadata has them, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlaces {
    /// The table location.
    pub location: String,
    /// Where data files go: `<location>/data`, or what the properties name.
    pub data: Vec<String>,
    /// Where metadata files go.
    pub metadata: String,
}

impl TablePlaces {
    /// The places of a version of a table.
    pub fn of(metadata: &TableMetadata) -> Self {
        Self::from_properties(metadata.location(), metadata.properties())
    }

    /// The places of a table at `location` with these properties.
    pub fn from_properties(location: &str, properties: &HashMap<String, String>) -> Self {
        let trimmed = |path: &str| path.trim_end_matches('/').to_owned();
        let location = trimmed(location);
        let mut data: Vec<String> =
            DATA_PATHS.iter().filter_map(|key| properties.get(*key)).map(|path| trimmed(path)).collect();
        // Files from before the property was set lie there.
        data.push(format!("{location}/data"));
        data.dedup();
        Self { metadata: metadata_root(&location, properties), location, data }
    }
}

/// The property that switches another optimizer on for a table, if one does.
pub fn other_optimizer(metadata: &TableMetadata) -> Option<&'static str> {
    let on =
        |key: &&&str| metadata.properties().get(**key).is_some_and(|value| !value.trim().eq_ignore_ascii_case("false"));
    OPTIMIZERS.iter().find(on).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_paths_of_all_times_and_the_default_are_own() {
        let places = |properties: &[(&str, &str)]| {
            let owned = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            TablePlaces::from_properties("az://c/t/", &owned.collect())
        };
        let plain = places(&[]);
        assert_eq!((plain.location.as_str(), plain.metadata.as_str()), ("az://c/t", "az://c/t/metadata"));
        assert_eq!(plain.data, ["az://c/t/data"]);
        let moved = places(&[
            ("write.data.path", "az://c/d//"),
            ("write.object-storage.path", "az://c/o"),
            ("write.metadata.path", "az://c/m/"),
        ]);
        assert_eq!(moved.metadata, "az://c/m");
        assert_eq!(moved.data, ["az://c/d", "az://c/o", "az://c/t/data"]);
    }
}
