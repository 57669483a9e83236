//! What the status of an answer says about a commit (design section 6).

use std::time::Duration;

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
    /// Nobody knows.
    Unknown,
}

/// The outcome of a commit by its status. Only what the specification calls a refusal is one; everything else may have been said by a
/// proxy while or after the server worked. 429 too: one that sends a request again after a lost answer may meet the server's limit with the
/// second delivery of a commit that was applied, and to look for the snapshot costs little.
pub(super) fn outcome(status: u16) -> Outcome {
    match status {
        200..=299 => Outcome::Done,
        401 | 403 | 419 => Outcome::NotAllowed,
        409 => Outcome::Conflict,
        // The request as it stands, an unknown table, what the server cannot do.
        400 | 404 | 406 | 422 => Outcome::Permanent,
        _ => Outcome::Unknown,
    }
}

/// Whether the same question may be answered at another time: all but what the specification defines as an answer, because a proxy may
/// say anything (a redirect to its page for maintenance, 421, 499).
pub(super) fn may_pass(status: u16) -> bool {
    !matches!(status, 200..=299 | 400..=407 | 409..=417 | 419 | 422)
}

/// How long a server asks to be left alone: `Retry-After` in seconds. As a date it is not read.
pub(super) fn retry_after(header: Option<&str>) -> Option<Duration> {
    header?.trim().parse().ok().map(Duration::from_secs)
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
            (vec![400, 404, 406, 422], Outcome::Permanent),
            (vec![401, 403, 419], Outcome::NotAllowed),
            (vec![500, 502, 503, 504, 507, 599, 100], Outcome::Unknown),
            // What a proxy says.
            (
                vec![301, 302, 307, 308, 402, 405, 407, 408, 410, 412, 413, 421, 425, 429, 431, 451, 499],
                Outcome::Unknown,
            ),
        ] {
            for status in statuses {
                assert_eq!(outcome(status), expected, "{status}");
            }
        }
    }

    #[test]
    fn a_question_is_asked_again_unless_it_was_answered() {
        for status in [400, 401, 403, 404, 405, 406, 409, 410, 419, 422] {
            assert!(!may_pass(status), "{status}");
        }
        for status in [302, 307, 408, 421, 425, 429, 499, 500, 502, 503, 504, 520, 598] {
            assert!(may_pass(status), "{status}");
        }
    }

    #[test]
    fn a_wait_that_is_asked_for_is_read() {
        assert_eq!(retry_after(Some(" 7 ")), Some(Duration::from_secs(7)));
        for odd in [None, Some("Wed, 21 Oct 2026 07:28:00 GMT"), Some("-1"), Some("")] {
            assert_eq!(retry_after(odd), None, "{odd:?}");
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
