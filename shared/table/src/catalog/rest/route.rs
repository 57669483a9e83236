//! Paths below a REST catalog's address.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ident::TableIdent;

/// Everything but RFC 3986 `unreserved` is encoded: a name is one segment, whatever is in it.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A prefix comes from the server as it belongs into the path, escapes and several segments too; other clients send it so.
const NOT_IN_URLS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'?')
    .add(b'#');

/// Makes the paths of one catalog.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// Address and version: `https://host/api/v1`.
    root: String,
    prefix: Option<String>,
    separator: String,
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// `GET` this first.
pub(super) fn config(uri: &str, warehouse: Option<&str>) -> String {
    let query = warehouse.map(|warehouse| format!("?warehouse={}", encode(warehouse))).unwrap_or_default();
    format!("{}/config{query}", root(uri))
}

/// Where tokens come from when nobody says otherwise.
pub(super) fn tokens(uri: &str) -> String {
    format!("{}/oauth/tokens", root(uri))
}

/// The address may be written with or without the version.
fn root(uri: &str) -> String {
    let uri = uri.trim_end_matches('/');
    if uri.ends_with("/v1") { uri.to_owned() } else { format!("{uri}/v1") }
}

impl Routes {
    pub(super) fn new(uri: &str, prefix: Option<&str>, separator: &str) -> Self {
        let prefix = prefix.map(|prefix| utf8_percent_encode(prefix, NOT_IN_URLS).to_string());
        Self { root: root(uri), prefix, separator: separator.to_owned() }
    }

    fn namespace(&self, levels: &[String]) -> String {
        format!("{}/{}", self.root_of_namespaces(), self.levels(levels))
    }

    fn root_of_namespaces(&self) -> String {
        let prefix = self.prefix.as_ref().map(|prefix| format!("/{prefix}")).unwrap_or_default();
        format!("{}{prefix}/namespaces", self.root)
    }

    fn levels(&self, levels: &[String]) -> String {
        let levels: Vec<String> = levels.iter().map(|level| encode(level)).collect();
        levels.join(&encode(&self.separator))
    }

    /// The namespaces directly in `parent`; in none: those of the first level.
    pub(super) fn namespaces(&self, parent: &[String], page: Option<&str>) -> String {
        let parent = (!parent.is_empty()).then(|| format!("parent={}", self.levels(parent)));
        let page = page.map(|page| format!("pageToken={}", encode(page)));
        let query: Vec<String> = parent.into_iter().chain(page).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", self.root_of_namespaces(), query.join("&"))
    }

    pub(super) fn tables(&self, levels: &[String], page: Option<&str>) -> String {
        let query = page.map(|page| format!("?pageToken={}", encode(page))).unwrap_or_default();
        format!("{}/tables{query}", self.namespace(levels))
    }

    pub(super) fn table(&self, ident: &TableIdent) -> String {
        format!("{}/tables/{}", self.namespace(ident.namespace_levels()), encode(ident.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_servers_that_people_have() {
        let spans = TableIdent::new(["a b", "c/d"], "s p%");
        for (uri, prefix, separator, expected) in [
            ("http://h:8181", None, "\u{1f}", "http://h:8181/v1/namespaces/a%20b%1Fc%2Fd/tables/s%20p%25"),
            // Polaris: the prefix is the catalog's name.
            (
                "https://p/api/catalog/",
                Some("lake"),
                "\u{1f}",
                "https://p/api/catalog/v1/lake/namespaces/a%20b%1Fc%2Fd/tables/s%20p%25",
            ),
            // Unity: the prefix has segments.
            (
                "https://u/api/2.1/unity-catalog/iceberg-rest",
                Some("catalogs/lake"),
                "\u{1f}",
                "https://u/api/2.1/unity-catalog/iceberg-rest/v1/catalogs/lake/namespaces/a%20b%1Fc%2Fd/tables/s%20p%25",
            ),
            (
                "https://n/iceberg/v1",
                Some("main%7Cx|"),
                ".",
                "https://n/iceberg/v1/main%7Cx%7C/namespaces/a%20b.c%2Fd/tables/s%20p%25",
            ),
        ] {
            assert_eq!(Routes::new(uri, prefix, separator).table(&spans), expected);
        }
        let routes = Routes::new("http://h", None, "\u{1f}");
        assert_eq!(routes.tables(&["db".into()], None), "http://h/v1/namespaces/db/tables");
        assert_eq!(routes.tables(&["db".into()], Some("a=")), "http://h/v1/namespaces/db/tables?pageToken=a%3D");
        assert_eq!(routes.namespaces(&[], None), "http://h/v1/namespaces");
        let inner = ["a b".to_owned(), "c".to_owned()];
        assert_eq!(routes.namespaces(&inner, None), "http://h/v1/namespaces?parent=a%20b%1Fc");
        assert_eq!(routes.namespaces(&inner, Some("p=")), "http://h/v1/namespaces?parent=a%20b%1Fc&pageToken=p%3D");
        assert_eq!(config("http://h/", Some("ws/item")), "http://h/v1/config?warehouse=ws%2Fitem");
        assert_eq!(config("http://h/v1", None), "http://h/v1/config");
        assert_eq!(tokens("https://p/api/catalog"), "https://p/api/catalog/v1/oauth/tokens");
    }
}
