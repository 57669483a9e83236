//! Whether the columns that a dataset wants sidecars of are in the table and of a type that can have them. What cannot is left out of every
//! merge, which only the events tell.

use std::fmt;

use firn_config::Dataset;
use firn_sidecar::SidecarColumns;
use firn_table::LoadedTable;

use super::finding::Finding;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sidecars {
    /// Every column can have what is asked for it.
    Possible { dataset: String },
    /// Merges go on without these; each text names one.
    LeftOut { dataset: String, problems: Vec<String> },
}

/// None where no sidecar is asked for.
pub(super) fn look(dataset: &Dataset, table: &LoadedTable) -> Option<Sidecars> {
    let Dataset { indexing_columns: text, bloom_filter_columns: bloom, ndv_columns: ndv, .. } = dataset;
    if text.is_empty() && bloom.is_empty() && ndv.is_empty() {
        return None;
    }
    let name = dataset.name.clone();
    Some(match table.arrow_schema() {
        Ok(schema) => decide(name, &SidecarColumns::resolve(&schema, text, bloom, ndv)),
        Err(error) => Sidecars::LeftOut { dataset: name, problems: vec![error.to_string()] },
    })
}

fn decide(dataset: String, columns: &SidecarColumns) -> Sidecars {
    match columns.left_out.is_empty() {
        true => Sidecars::Possible { dataset },
        false => {
            let problems = columns.left_out.iter().map(|(kind, reason)| format!("no {kind}: {reason}"));
            Sidecars::LeftOut { dataset, problems: problems.collect() }
        }
    }
}

impl fmt::Display for Sidecars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sidecars::Possible { dataset } => write!(f, "{dataset}: each column can have what is asked for it"),
            Sidecars::LeftOut { dataset, problems } => write!(
                f,
                "{dataset}: {}; correct tantivy.indexingColumns, bloomFilterColumns or ndvColumns",
                problems.join("; ")
            ),
        }
    }
}

impl Finding for Sidecars {
    /// Data is merged all the same.
    fn ok(&self) -> bool {
        true
    }

    fn warns(&self) -> bool {
        matches!(self, Sidecars::LeftOut { .. })
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn a_column_that_cannot_have_its_sidecar_is_named() {
        let field = |name: &str, data_type, id: &str| {
            Field::new(name, data_type, true).with_metadata([("PARQUET:field_id".to_owned(), id.to_owned())].into())
        };
        let schema = Schema::new(vec![field("message", DataType::Utf8, "1"), field("value", DataType::Float64, "2")]);
        let of = |text: &[&str], bloom: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            decide("logs".into(), &SidecarColumns::resolve(&schema, &names(text), &names(bloom), &[]))
        };
        assert_eq!(of(&["message"], &["value"]), Sidecars::Possible { dataset: "logs".into() });
        let wrong = of(&["value"], &["host"]);
        assert!(wrong.ok() && wrong.warns(), "{wrong}");
        let said = wrong.to_string();
        assert!(
            said.contains("logs: no full-text index: column `value` is of type Float64")
                && said.contains("the table has no column `host`")
                && said.contains("bloomFilterColumns"),
            "{said}"
        );
    }
}
