//! What a database error says about whether a statement was executed.

use sqlx::error::DatabaseError;

/// SQLite result codes (sqlite.org/rescode.html): the low byte is the primary code.
const SQLITE_ERROR: u32 = 1;
const SQLITE_PERM: u32 = 3;
const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_READONLY: u32 = 8;
const SQLITE_FULL: u32 = 13;
const SQLITE_CANTOPEN: u32 = 14;
const SQLITE_CONSTRAINT: u32 = 19;
const SQLITE_AUTH: u32 = 23;
const SQLITE_NOTADB: u32 = 26;

/// The database was locked by another writer. An autocommit statement that ends so was rolled back, also when the lock was
/// met at its commit: it was not applied.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// The database refused the statement, so it was not applied, and would refuse it again. Anything else (a lost connection,
/// an I/O error, a damaged page) may have happened after the change was on disk.
pub(crate) fn is_refused(error: &sqlx::Error) -> bool {
    matches!(
        primary_code(error),
        Some(
            SQLITE_ERROR
                | SQLITE_PERM
                | SQLITE_READONLY
                | SQLITE_FULL
                | SQLITE_CANTOPEN
                | SQLITE_CONSTRAINT
                | SQLITE_AUTH
                | SQLITE_NOTADB
        )
    )
}

fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error().and_then(DatabaseError::code)?.parse().ok()?;
    Some(code & 0xff)
}
