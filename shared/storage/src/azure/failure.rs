//! What an answer of the Blob or Queue service, or none, means.

use std::time::Duration;

use azure_core::Error;
use azure_core::error::ErrorKind;
use azure_core::http::RawResponse;
use firn_model::BlobId;

use super::identity::TokenError;
use crate::error::{StorageError, chain, redact};
use crate::retry::{Failure, GaveUp, Reached};

impl Failure {
    /// The meaning of an error of the SDK.
    pub(super) fn of(error: &Error) -> Failure {
        match error.kind() {
            ErrorKind::HttpResponse { status, error_code, raw_response } => {
                answered(u16::from(*status), error_code.as_deref(), raw_response.as_deref())
            }
            ErrorKind::Connection => {
                Failure { reached: Reached::Nothing, status: None, code: None, detail: chain(error) }
            }
            ErrorKind::Io => Failure::perhaps(chain(error)),
            ErrorKind::Credential => match error.downcast_ref::<TokenError>() {
                Some(no_token) => no_token.failure(),
                None => Failure::lasting(chain(error)),
            },
            _ => Failure::lasting(chain(error)),
        }
    }

    pub(super) fn is(&self, status: u16) -> bool {
        self.status == Some(status)
    }

    pub(super) fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether it says that the condition of a write did not hold.
    pub(super) fn is_conflict(&self) -> bool {
        // UnauthorizedBlobOverwrite: the blob is there, and the signature allows to create blobs only.
        self.is(412) || ["BlobAlreadyExists", "UnauthorizedBlobOverwrite"].iter().any(|code| self.has_code(code))
    }
}

fn answered(status: u16, code: Option<&str>, response: Option<&RawResponse>) -> Failure {
    let reached = match (status, code.unwrap_or_default()) {
        (429 | 503, _) => Reached::Refused { retry_after: response.and_then(retry_after) },
        // The body arrived damaged and was not taken.
        (400, "Crc64Mismatch" | "Md5Mismatch") => Reached::Refused { retry_after: None },
        // The emulator's answer to what it will never do.
        (500, "FeatureNotSupported") => Reached::Final,
        (408 | 500 | 502 | 504, _) => Reached::Perhaps,
        _ => Reached::Final,
    };
    let code = code.filter(|code| !code.is_empty()).map(str::to_owned);
    let mut detail = format!("HTTP {status}");
    if let Some(code) = &code {
        detail = format!("{detail} {code}");
    }
    if let Some(message) = response.and_then(message) {
        detail = format!("{detail}: {message}");
    }
    Failure { reached, status: Some(status), code, detail }
}

/// The wait that the service asked for.
pub(super) fn retry_after(response: &RawResponse) -> Option<Duration> {
    let header = |name: &'static str| response.headers().get_optional_str(&name.into());
    let milliseconds = ["x-ms-retry-after-ms", "retry-after-ms"].iter().find_map(|name| header(name)?.parse().ok());
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = header("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some(at.signed_duration_since(chrono::Utc::now()).to_std().unwrap_or_default())
}

/// The first line of the error's `<Message>`, and the request id for a support ticket.
fn message(response: &RawResponse) -> Option<String> {
    let body = String::from_utf8_lossy(response.body());
    let start = body.find("<Message>")? + "<Message>".len();
    let text = &body[start..];
    let text = &text[..text.find("</Message>")?];
    let first = text.lines().next()?.trim().trim_end_matches('.');
    let request = response.headers().get_optional_str(&"x-ms-request-id".into());
    let request = request.map(|id| format!(", request id {id}")).unwrap_or_default();
    (!first.is_empty()).then(|| redact(&format!("{first}{request}")))
}

impl GaveUp {
    /// The error for the caller of a read, a delete, or anything else that may be repeated without harm.
    pub(super) fn into_error(self, id: &BlobId, endpoint: &str) -> StorageError {
        let blob = Box::new(id.clone());
        let detail = self.detail(endpoint);
        let failure = self.failure;
        match (failure.status, failure.code.as_deref().unwrap_or_default()) {
            (Some(404), "ContainerNotFound") => StorageError::NoContainer { blob },
            (Some(404), _) => StorageError::NotFound { blob },
            (Some(409), "BlobAlreadyExists") | (Some(403), "UnauthorizedBlobOverwrite") => {
                StorageError::AlreadyExists { blob }
            }
            (Some(409), "BlockCountExceedsLimit") => StorageError::Full { blob, detail },
            (Some(409 | 412), code) if code.starts_with("Lease") => StorageError::Leased { blob },
            (Some(401 | 403), _) => StorageError::Denied { blob, detail },
            (Some(412), _) => StorageError::Precondition { blob, detail },
            (Some(429 | 503), _) => match failure.reached {
                Reached::Refused { retry_after } => StorageError::Throttled { blob, retry_after, detail },
                _ => StorageError::Throttled { blob, retry_after: None, detail },
            },
            _ if failure.reached == Reached::Final => StorageError::Other { blob, detail },
            _ => StorageError::Unavailable { blob, detail },
        }
    }

    /// What happened, how often and how long.
    pub(super) fn detail(&self, endpoint: &str) -> String {
        let what = match self.failure.reached {
            Reached::Nothing => format!("cannot connect to {endpoint}: {}", self.failure.detail),
            _ => self.failure.detail.clone(),
        };
        match self.tries {
            1 => what,
            tries => format!("{what}, after {tries} tries in {:.1} s", self.elapsed.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use azure_core::http::StatusCode;
    use azure_core::http::headers::Headers;

    fn response(status: u16, headers: &[(&'static str, String)], body: &'static str) -> RawResponse {
        let mut all = Headers::new();
        for (name, value) in headers {
            all.insert(*name, value.clone());
        }
        RawResponse::from_bytes(StatusCode::from(status), all, body)
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let wait = |name, value: &str| retry_after(&response(503, &[(name, value.to_owned())], ""));
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("x-ms-retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Fri, 26 Jun 2015 23:39:12 GMT"), Some(Duration::ZERO));
        let soon = (chrono::Utc::now() + chrono::TimeDelta::seconds(100)).to_rfc2822();
        let asked = wait("retry-after", &soon).unwrap();
        assert!(asked > Duration::from_secs(90) && asked <= Duration::from_secs(100), "{asked:?}");
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("other", "7"), None);
    }

    #[test]
    fn answers_are_told_apart_by_what_may_have_happened() {
        let reached = |status, code| answered(status, Some(code), None).reached;
        assert_eq!(reached(503, "ServerBusy"), Reached::Refused { retry_after: None });
        assert_eq!(reached(429, ""), Reached::Refused { retry_after: None });
        assert_eq!(reached(400, "Crc64Mismatch"), Reached::Refused { retry_after: None });
        assert_eq!(reached(500, "OperationTimedOut"), Reached::Perhaps);
        assert_eq!(reached(504, ""), Reached::Perhaps);
        assert_eq!(reached(409, "LeaseAlreadyPresent"), Reached::Final);
        assert_eq!(reached(403, "AuthenticationFailed"), Reached::Final);
    }

    #[test]
    fn errors_name_what_the_caller_does_next() {
        let id = BlobId::parse("abfss://lake@acct.dfs.core.windows.net/k").unwrap();
        let blob = || Box::new(id.clone());
        let error = |status, code: &str| {
            let failure = answered(status, Some(code), None);
            let gave_up =
                GaveUp { failure, tries: 1, reached_before: false, perhaps_done: false, elapsed: Duration::ZERO };
            gave_up.into_error(&id, "https://acct.blob.core.windows.net")
        };
        assert_eq!(error(404, "ContainerNotFound"), StorageError::NoContainer { blob: blob() });
        assert_eq!(error(404, "BlobNotFound"), StorageError::NotFound { blob: blob() });
        assert_eq!(error(404, ""), StorageError::NotFound { blob: blob() });
        assert_eq!(error(409, "BlobAlreadyExists"), StorageError::AlreadyExists { blob: blob() });
        assert_eq!(error(403, "UnauthorizedBlobOverwrite"), StorageError::AlreadyExists { blob: blob() });
        assert!(matches!(error(409, "BlockCountExceedsLimit"), StorageError::Full { .. }));
        assert!(matches!(error(403, "AuthorizationFailure"), StorageError::Denied { .. }));
        assert!(matches!(error(412, "ConditionNotMet"), StorageError::Precondition { .. }));
        for code in
            ["LeaseIdMissing", "LeaseLost", "LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation"]
        {
            assert_eq!(error(412, code), StorageError::Leased { blob: blob() });
        }
        assert!(matches!(error(503, "ServerBusy"), StorageError::Throttled { .. }));
        assert!(matches!(error(500, "InternalError"), StorageError::Unavailable { .. }));
        assert!(matches!(error(400, "Crc64Mismatch"), StorageError::Unavailable { .. }));
        assert!(matches!(error(409, "BlobArchived"), StorageError::Other { .. }));
    }

    #[test]
    fn messages_quote_the_service_in_one_line() {
        let body =
            "<?xml version=\"1.0\"?><Error><Code>X</Code><Message>It is busy.\nRequestId:1\nTime:2</Message></Error>";
        let busy = response(503, &[("x-ms-request-id", "77".into())], body);
        assert_eq!(
            answered(503, Some("ServerBusy"), Some(&busy)).detail,
            "HTTP 503 ServerBusy: It is busy, request id 77"
        );
    }
}
