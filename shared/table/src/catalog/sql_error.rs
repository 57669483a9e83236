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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error;
    use std::fmt;

    use sqlx::error::ErrorKind;

    use super::*;

    #[derive(Debug)]
    struct Code(&'static str);

    impl fmt::Display for Code {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Code {}

    impl DatabaseError for Code {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn only_definite_answers_are_busy_or_refused() {
        // SQLITE_BUSY, BUSY_RECOVERY, BUSY_SNAPSHOT, LOCKED, LOCKED_SHAREDCACHE.
        for code in ["5", "261", "517", "6", "262"] {
            let error = sqlx::Error::Database(Box::new(Code(code)));
            assert!(is_busy(&error) && !is_refused(&error), "{code}");
        }
        // ERROR, PERM, READONLY, READONLY_DBMOVED, FULL, CONSTRAINT_TRIGGER, NOTADB.
        for code in ["1", "3", "8", "1032", "13", "1811", "26"] {
            let error = sqlx::Error::Database(Box::new(Code(code)));
            assert!(!is_busy(&error) && is_refused(&error), "{code}");
        }
        // IOERR, IOERR_FSYNC, CORRUPT, a PostgreSQL code.
        for code in ["10", "1034", "11", "57P01"] {
            let error = sqlx::Error::Database(Box::new(Code(code)));
            assert!(!is_busy(&error) && !is_refused(&error), "{code}");
        }
        let lost = sqlx::Error::Io(std::io::Error::other("connection reset"));
        assert!(!is_busy(&lost) && !is_refused(&lost));
        assert!(!is_busy(&sqlx::Error::WorkerCrashed) && !is_refused(&sqlx::Error::WorkerCrashed));
    }
}
