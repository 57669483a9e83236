//! What the status of an answer says about a commit (design section 6).

use serde::Deserialize;

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Applied.
    Done,
    /// Not applied: a requirement does not hold.
    Conflict,
    /// Not applied, and never will be as it is.
    Permanent,
    /// Not applied, because of who asked.
    NotAllowed,
    /// Not applied: the server takes no more for now.
    Later,
    /// Nobody knows.
    Unknown,
}

/// The outcome of a commit by its status. Anything that a gateway may have said after the server had worked is unknown.
pub(super) fn outcome(status: u16) -> Outcome {
    match status {
        200..=299 => Outcome::Done,
        401 | 403 | 419 => Outcome::NotAllowed,
        409 => Outcome::Conflict,
        429 => Outcome::Later,
        // The request as it stands, an unknown table, a redirect, which is not followed with a token.
        300..=499 if status != 408 => Outcome::Permanent,
        _ => Outcome::Unknown,
    }
}

/// Whether the same question may be answered at another time.
pub(super) fn may_pass(status: u16) -> bool {
    status == 408 || status == 429 || status >= 500
}

/// What the server says of an error: `409 CommitFailedException: …`, on one line, without the whole of a page of HTML.
pub(super) fn reason(status: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Body {
        error: Error,
        #[serde(default)]
        error_description: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Error {
        /// Of the catalog.
        Model {
            #[serde(default)]
            message: Option<String>,
            #[serde(default, rename = "type")]
            kind: Option<String>,
        },
        /// Of OAuth2.
        Code(String),
    }
    let said = match serde_json::from_slice::<Body>(body) {
        Ok(Body { error: Error::Model { message, kind }, .. }) => {
            [kind, message].into_iter().flatten().collect::<Vec<_>>().join(": ")
        }
        Ok(Body { error: Error::Code(code), error_description }) => {
            [Some(code), error_description].into_iter().flatten().collect::<Vec<_>>().join(": ")
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let one_line: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
    if one_line.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {one_line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sure_is_called_not_applied() {
        for (statuses, expected) in [
            (vec![200, 201, 204], Outcome::Done),
            (vec![409], Outcome::Conflict),
            (vec![400, 404, 405, 406, 410, 412, 422, 301, 307], Outcome::Permanent),
            (vec![401, 403, 419], Outcome::NotAllowed),
            (vec![429], Outcome::Later),
            (vec![408, 500, 502, 503, 504, 507, 599, 100], Outcome::Unknown),
        ] {
            for status in statuses {
                assert_eq!(outcome(status), expected, "{status}");
            }
        }
    }

    #[test]
    fn errors_of_every_kind_are_one_line() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"Requirement failed:\n  ref main","type":"CommitFailedException","code":409}}"#,
                "HTTP 409: CommitFailedException: Requirement failed: ref main",
            ),
            (r#"{"error":{"message":null,"code":409}}"#, "HTTP 409"),
            (
                r#"{"error":"invalid_client","error_description":"no such client"}"#,
                "HTTP 409: invalid_client: no such client",
            ),
            ("<html>\n bad gateway</html>", "HTTP 409: <html> bad gateway</html>"),
            ("", "HTTP 409"),
        ] {
            assert_eq!(reason(409, body.as_bytes()), expected);
        }
        assert_eq!(reason(500, "x".repeat(5_000).as_bytes()).len(), 310);
    }
}
