//! What the demo says at its end.

use serde_json::{Value, json};

/// One table before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableReport {
    pub(crate) table: String,
    pub(crate) files_before: u64,
    pub(crate) files_after: u64,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
    pub(crate) rows_before: u64,
    pub(crate) rows_after: u64,
    pub(crate) duplicates_dropped: u64,
}

/// A check and what it found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: String,
    /// None: it held.
    pub(crate) problem: Option<String>,
}

/// The answer of the demo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DemoReport {
    pub(crate) tables: Vec<TableReport>,
    pub(crate) checks: Vec<Check>,
}

impl DemoReport {
    /// Adds a check; `problem` says what is wrong.
    pub(crate) fn check(&mut self, name: impl Into<String>, problem: Option<String>) {
        self.checks.push(Check { name: name.into(), problem });
    }

    /// Whether every check held, and there were any: a demo that broke off has none.
    pub(crate) fn ok(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.problem.is_none())
    }

    /// The one JSON line (design section 10).
    pub(crate) fn json(&self) -> Value {
        let table = |table: &TableReport| {
            json!({
                "table": table.table,
                "filesBefore": table.files_before,
                "filesAfter": table.files_after,
                "rowsBefore": table.rows_before,
                "rowsAfter": table.rows_after,
                "duplicatesDropped": table.duplicates_dropped,
            })
        };
        json!({ "ok": self.ok(), "tables": self.tables.iter().map(table).collect::<Vec<_>>() })
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{:<16} {:>14} {:>22} {:>20} {:>10}\n", "table", "files", "bytes", "rows", "duplicates");
        for table in &self.tables {
            text += &format!(
                "{:<16} {:>14} {:>22} {:>20} {:>10}\n",
                table.table,
                format!("{} -> {}", table.files_before, table.files_after),
                format!("{} -> {}", table.bytes_before, table.bytes_after),
                format!("{} -> {}", table.rows_before, table.rows_after),
                table.duplicates_dropped
            );
        }
        for check in &self.checks {
            text += &match &check.problem {
                None => format!("ok      {}\n", check.name),
                Some(problem) => format!("FAILED  {}: {problem}\n", check.name),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_check_fails_the_demo() {
        let table = TableReport {
            table: "demo.readings".into(),
            files_before: 216,
            files_after: 3,
            bytes_before: 900,
            bytes_after: 400,
            rows_before: 100,
            rows_after: 90,
            duplicates_dropped: 10,
        };
        let held = Check { name: "rows".into(), problem: None };
        let broken = Check { name: "queue".into(), problem: Some("1 message is left".into()) };
        let good = DemoReport { tables: vec![table], checks: vec![held] };
        let line = r#"{"ok":true,"tables":[{"duplicatesDropped":10,"filesAfter":3,"filesBefore":216,"rowsAfter":90,"rowsBefore":100,"table":"demo.readings"}]}"#;
        assert_eq!(good.json(), serde_json::from_str::<Value>(line).unwrap());
        assert!(good.text().contains("216 -> 3"));
        let bad = DemoReport { checks: [good.checks.clone(), vec![broken]].concat(), ..good };
        assert_eq!((bad.ok(), &bad.json()["ok"]), (false, &json!(false)));
        assert!(bad.text().contains("FAILED  queue: 1 message is left"));
    }
}
