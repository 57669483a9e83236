//! Names for files without field ids (Iceberg spec, "Column Projection" and "Name Mapping Serialization").

use serde::Deserialize;

use crate::error::ColumnarError;

/// The content of the table property `schema.name-mapping.default`: which names in a file mean which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameMapping {
    fields: Vec<MappedField>,
}

/// Names of one field, and those of the fields within it. Elements of lists are called `element`, keys and values of
/// maps `key` and `value`, whatever the file calls them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct MappedField {
    #[serde(rename = "field-id")]
    pub(crate) field_id: Option<i32>,
    pub(crate) names: Vec<String>,
    #[serde(default)]
    pub(crate) fields: Vec<MappedField>,
}

impl NameMapping {
    /// Reads the JSON of the property.
    ///
    /// # Errors
    /// [`ColumnarError::NameMapping`] when it is not such JSON or gives one name to two fields of a level.
    pub fn parse(json: &str) -> Result<Self, ColumnarError> {
        let fields: Vec<MappedField> =
            serde_json::from_str(json).map_err(|error| ColumnarError::NameMapping { detail: error.to_string() })?;
        check_names(&fields)?;
        Ok(Self { fields })
    }

    /// The names of top-level columns.
    pub(crate) fn fields(&self) -> &[MappedField] {
        &self.fields
    }
}

/// The field that `name` means among `fields`. Names are compared exactly (upper and lower case differ).
pub(crate) fn find<'a>(fields: &'a [MappedField], name: &str) -> Option<&'a MappedField> {
    fields.iter().find(|field| field.names.iter().any(|candidate| candidate == name))
}

fn check_names(fields: &[MappedField]) -> Result<(), ColumnarError> {
    for (index, field) in fields.iter().enumerate() {
        for name in &field.names {
            if find(&fields[..index], name).is_some() {
                return Err(ColumnarError::NameMapping { detail: format!("it names `{name}` twice on one level") });
            }
        }
        check_names(&field.fields)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_exactly() {
        let mapping = NameMapping::parse(
            r#"[{"field-id": 1, "names": ["id", "record_id"]},
                {"field-id": 2, "names": ["data"], "fields": [{"field-id": 3, "names": ["x"]}]},
                {"names": ["ignored"]}]"#,
        )
        .unwrap();
        assert_eq!(find(mapping.fields(), "record_id").unwrap().field_id, Some(1));
        assert_eq!(find(mapping.fields(), "ID"), None);
        assert_eq!(find(&find(mapping.fields(), "data").unwrap().fields, "x").unwrap().field_id, Some(3));
        assert_eq!(find(mapping.fields(), "ignored").unwrap().field_id, None);
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        for (json, word) in [
            ("{", "sequence"),
            (r#"[{"field-id": 1}]"#, "names"),
            (r#"[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b", "a"]}]"#, "`a` twice"),
        ] {
            let error = NameMapping::parse(json).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
            assert!(error.contains("schema.name-mapping.default"), "{error}");
        }
    }
}
