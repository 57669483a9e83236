//! The name of a table in its catalog.

use std::fmt;
use std::str::FromStr;

use firn_config::TableName;

/// Namespace levels and table name, as a dataset's `table` key gives them: `iot.readings`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableIdent {
    namespace: Vec<String>,
    name: String,
}

impl TableIdent {
    /// A table `name` in the namespace made of these levels.
    pub fn new(namespace: impl IntoIterator<Item = impl Into<String>>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into_iter().map(Into::into).collect(), name: name.into() }
    }

    /// Namespace levels joined by dots, the form of the `table_namespace` column of a SQL catalog.
    pub fn namespace(&self) -> String {
        self.namespace.join(".")
    }

    /// Namespace levels, outermost first.
    pub fn namespace_levels(&self) -> &[String] {
        &self.namespace
    }

    /// Table name without its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<&TableName> for TableIdent {
    fn from(name: &TableName) -> Self {
        Self { namespace: name.namespace.clone(), name: name.name.clone() }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace(), self.name)
    }
}

/// A text that is no table name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a table name: write it as namespace.table")]
pub struct TableIdentError(pub String);

impl FromStr for TableIdent {
    type Err = TableIdentError;

    /// Splits at dots; the last part is the table, at least one namespace level comes before it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(TableIdentError(text.to_owned()));
        }
        match parts.pop() {
            Some(name) if !parts.is_empty() => Ok(Self { namespace: parts, name }),
            _ => Err(TableIdentError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_the_table() {
        let ident: TableIdent = "a.b.t".parse().unwrap();
        assert_eq!((ident.namespace().as_str(), ident.name()), ("a.b", "t"));
        assert_eq!(ident.to_string(), "a.b.t");
        assert_eq!(ident, TableIdent::new(["a", "b"], "t"));
    }

    #[test]
    fn the_configuration_names_a_table() {
        let name = TableName { namespace: vec!["a".into(), "b".into()], name: "t".into() };
        assert_eq!(TableIdent::from(&name), TableIdent::new(["a", "b"], "t"));
    }

    #[test]
    fn a_name_without_namespace_or_with_an_empty_part_is_refused() {
        for text in ["t", "", ".t", "a.", "a..t"] {
            assert_eq!(text.parse::<TableIdent>(), Err(TableIdentError(text.to_owned())));
        }
    }
}
