//! Which function a path belongs to.

use std::collections::BTreeMap;

/// The values of a route's `{name}` parts when `path` matches it, else None. Both without slashes at their ends; fixed parts
/// are compared without case; `{name}` takes one part, `{name?}` one or none, `{*name}` all that follow; a constraint
/// (`{id:int}`) is not checked.
pub fn matches(route: &str, path: &str) -> Option<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    for wanted in route.split('/').filter(|part| !part.is_empty()) {
        match wanted.strip_prefix('{').and_then(|wanted| wanted.strip_suffix('}')) {
            None => {
                if !parts.next()?.eq_ignore_ascii_case(wanted) {
                    return None;
                }
            }
            Some(name) => {
                let bare =
                    name.split([':', '=']).next().unwrap_or_default().trim_start_matches('*').trim_end_matches('?');
                let value = if name.starts_with('*') {
                    Some(parts.by_ref().collect::<Vec<_>>().join("/"))
                } else {
                    parts.next().map(str::to_owned)
                };
                match value {
                    Some(value) => values.insert(bare.to_owned(), value),
                    None if name.ends_with('?') => None,
                    None => return None,
                };
            }
        }
    }
    parts.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        for (route, path, expected) in [
            ("status", "status", Some(vec![])),
            ("status", "Status/", Some(vec![])),
            ("status", "status/more", None),
            ("status", "", None),
            ("a/{id}", "a/7", Some(vec![("id", "7")])),
            ("a/{id:int}", "a", None),
            ("a/{id?}", "a", Some(vec![])),
            ("a/{*rest}", "a/b/c", Some(vec![("rest", "b/c")])),
        ] {
            let expected = expected.map(|values| {
                values.into_iter().map(|(name, value): (&str, &str)| (name.to_owned(), value.to_owned())).collect()
            });
            assert_eq!(matches(route, path), expected, "{route} {path}");
        }
    }
}
