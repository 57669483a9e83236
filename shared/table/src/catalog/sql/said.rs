//! What a database error says about whether a statement was executed.

use sqlx::error::DatabaseError;

/// What an error says of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// It met another writer or a limit of the moment and was not applied; sent again it may be.
    Busy,
    /// It was not applied because of who asked, or of a state of the server that a person or a failover ends.
    Denied,
    /// It was not applied and never will be.
    Refused,
    /// It may have been applied.
    Unknown,
}

/// SQLite result codes (sqlite.org/rescode.html): the low byte is the primary code.
mod code {
    pub(super) const ERROR: u32 = 1;
    pub(super) const PERM: u32 = 3;
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const READONLY: u32 = 8;
    pub(super) const FULL: u32 = 13;
    pub(super) const CANTOPEN: u32 = 14;
    pub(super) const CONSTRAINT: u32 = 19;
    pub(super) const AUTH: u32 = 23;
    pub(super) const NOTADB: u32 = 26;
}

/// What SQLite says.
///
/// Busy: locked by another writer. An autocommit statement that ends so was rolled back, also when the lock was met at its commit.
/// Anything that is no definite answer (an I/O error, a damaged page) may have happened after the change was on disk.
pub(crate) fn sqlite(error: &sqlx::Error) -> Said {
    let primary = code_of(error).and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
    match primary {
        Some(code::BUSY | code::LOCKED) => Said::Busy,
        Some(code::PERM | code::READONLY | code::FULL | code::CANTOPEN | code::AUTH) => Said::Denied,
        Some(code::ERROR | code::CONSTRAINT | code::NOTADB) => Said::Refused,
        _ => Said::Unknown,
    }
}

/// What PostgreSQL says (its manual, appendix A: error codes). A statement of its own is a transaction: an error of a class that
/// is raised before the transaction ends says that it was rolled back.
pub(crate) fn postgres(error: &sqlx::Error) -> Said {
    let Some(code) = code_of(error) else { return Said::Unknown };
    match code.as_str() {
        // statement_completion_unknown, as its name says.
        "40003" => Said::Unknown,
        // lock_not_available, query_canceled (a time-out), cannot_connect_now.
        "55P03" | "57014" | "57P03" => Said::Busy,
        // insufficient_privilege; read_only_sql_transaction, which a server says that is a replica after a failover; no such database.
        "42501" | "25006" | "3D000" => Said::Denied,
        code => match code.get(..2) {
            // Serialization failures and deadlocks; connections, memory or disk used up; a prepared statement that a pooler lost.
            Some("40" | "53" | "26") => Said::Busy,
            // Who asks is not let in.
            Some("28") => Said::Denied,
            // What the statement, the schema or a trigger do not allow.
            Some("0A" | "22" | "23" | "25" | "3D" | "3F" | "42" | "44" | "54" | "55" | "P0") => Said::Refused,
            // Lost connections, shutdowns, errors of the system: the answer to a commit may be among what was lost.
            _ => Said::Unknown,
        },
    }
}

pub(super) fn code_of(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(DatabaseError::code).map(std::borrow::Cow::into_owned)
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

    #[track_caller]
    fn all(of: fn(&sqlx::Error) -> Said, codes: &[&'static str], expected: Said) {
        for code in codes {
            let error = sqlx::Error::Database(Box::new(Code(code)));
            assert_eq!(of(&error), expected, "{code}");
        }
    }

    #[test]
    fn only_definite_answers_of_sqlite_are_busy_or_refused() {
        // SQLITE_BUSY, BUSY_RECOVERY, BUSY_SNAPSHOT, LOCKED, LOCKED_SHAREDCACHE.
        all(sqlite, &["5", "261", "517", "6", "262"], Said::Busy);
        // PERM, READONLY, READONLY_DBMOVED, FULL, CANTOPEN, AUTH.
        all(sqlite, &["3", "8", "1032", "13", "14", "23"], Said::Denied);
        // ERROR, CONSTRAINT_TRIGGER, NOTADB.
        all(sqlite, &["1", "1811", "26"], Said::Refused);
        // IOERR, IOERR_FSYNC, CORRUPT, a PostgreSQL code.
        all(sqlite, &["10", "1034", "11", "57P01"], Said::Unknown);
    }

    #[test]
    fn only_definite_answers_of_postgresql_are_busy_or_refused() {
        // serialization_failure, deadlock_detected, lock_not_available, query_canceled, too_many_connections, disk_full,
        // cannot_connect_now, invalid_sql_statement_name.
        all(postgres, &["40001", "40P01", "55P03", "57014", "53300", "53100", "57P03", "26000"], Said::Busy);
        // invalid_password, invalid_authorization_specification, insufficient_privilege, read_only_sql_transaction, invalid_catalog_name.
        all(postgres, &["28P01", "28000", "42501", "25006", "3D000"], Said::Denied);
        // undefined_table, string_data_right_truncation, unique_violation, raise_exception.
        all(postgres, &["42P01", "22001", "23505", "P0001"], Said::Refused);
        // statement_completion_unknown, connection_failure, admin_shutdown, crash_shutdown, io_error, internal_error, SQLite's busy.
        all(postgres, &["40003", "08006", "57P01", "57P02", "58030", "XX000", "5", ""], Said::Unknown);
    }

    #[test]
    fn what_is_no_answer_is_unknown() {
        for of in [sqlite, postgres] {
            assert_eq!(of(&sqlx::Error::Io(std::io::Error::other("connection reset"))), Said::Unknown);
            assert_eq!(of(&sqlx::Error::WorkerCrashed), Said::Unknown);
            assert_eq!(of(&sqlx::Error::PoolTimedOut), Said::Unknown);
        }
    }
}
