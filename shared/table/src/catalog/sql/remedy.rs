//! What a person does where a database does not accept who asks. No message is to blame, so work waits for it.

use super::said::code_of;
use crate::error::SwapError;
use crate::ident::TableIdent;

/// What a person does where the file or server takes no writes.
pub(super) const WRITE_REMEDY: &str =
    "let catalog.uri name a database that takes writes, with space left, and this user write there";

/// What a person does where a server does not accept who asks; None: that is not why.
pub(super) fn login_remedy(error: &sqlx::Error) -> Option<&'static str> {
    match code_of(error)?.as_str() {
        // SQLite's codes are shorter.
        "28P01" | "28000" => Some(
            "correct user and password in catalog.uri, or set PGPASSWORD; with auth: entra let the identity be a user of the server. After a \
             change of a secret restart the handler",
        ),
        "42501" => Some("GRANT SELECT, UPDATE ON iceberg_tables to the user of catalog.uri"),
        _ => None,
    }
}

pub(super) fn denied_swap(ident: &TableIdent, error: &sqlx::Error, remedy: &str) -> SwapError {
    SwapError::Denied { ident: ident.clone(), source: format!("{error}: {remedy}").into() }
}
