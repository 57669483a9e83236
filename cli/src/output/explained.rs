//! An explained partition for people: facts first, then what must hold, then every rule, then what comes of it.

use std::io::{self, Write};

use firn_model::Rule;
use firn_pass::ExplainedPartition;
use firn_plan::PartitionDecision;

use crate::output::table::{grouped, plural, size};

/// Writes a partition and an empty line.
pub(crate) fn write_text(out: &mut dyn Write, partition: &ExplainedPartition) -> io::Result<()> {
    let counts = &partition.explanation.counts;
    writeln!(out, "{} {}", partition.dataset, partition.label)?;
    writeln!(
        out,
        "  files   {}, {}, {}; {} small ({})",
        plural(counts.files as u64, "file"),
        size(partition.bytes),
        plural(partition.rows, "row"),
        grouped(counts.small_files as u64),
        size(counts.small_bytes)
    )?;
    let sizes: Vec<String> = partition.sizes().iter().map(|(size, files)| format!("{files} of {size}")).collect();
    writeln!(out, "  sizes   {}", sizes.join(", "))?;
    writeln!(out, "  time    {}", counts.coldness)?;
    for condition in &partition.explanation.conditions {
        match &condition.broken {
            None => writeln!(out, "  holds   {}", condition.asks)?,
            Some(reason) => writeln!(out, "  BROKEN  {}: {reason}", condition.asks)?,
        }
    }
    for verdict in &partition.explanation.rules {
        let (word, why) = match &verdict.decision {
            PartitionDecision::Selected { reason, groups } => {
                let files: usize = groups.iter().map(|group| group.files().len()).sum();
                let bytes: u64 = groups.iter().map(|group| group.bytes()).sum();
                let what = format!(
                    "{reason}; {} of {} in {}",
                    plural(files as u64, "file"),
                    size(bytes),
                    plural(groups.len() as u64, "merge")
                );
                ("takes", what)
            }
            PartitionDecision::Left(reason) => ("leaves", reason.to_string()),
        };
        writeln!(out, "  {:9} {word:7} asks for: {}", verdict.rule.as_str(), verdict.asks)?;
        writeln!(out, "                    {why}")?;
    }
    if let Some(why) = &partition.held_back {
        return writeln!(out, "  So no tick sends it: {why}.\n");
    }
    let [tick, schedule] = partition.selected_by().map(|rule| rule.map_or("nothing", Rule::as_str));
    writeln!(out, "  So the next tick takes it by: {tick}; the one after a scheduled time by: {schedule}.\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::{FileFacts, FileFormat, PartitionKey, RowOrder};
    use firn_plan::{PartitionFiles, PartitionTime, PlanSettings, TableRules, explain_partition};

    use super::*;

    fn told(sizes_mb: &[u64], held_back: Option<&str>) -> String {
        let key = Arc::new(PartitionKey::unpartitioned(0));
        let files: Vec<FileFacts> = sizes_mb
            .iter()
            .enumerate()
            .map(|(at, size)| FileFacts {
                path: format!("f{at}"),
                partition: key.clone(),
                data_sequence_number: 1 + i64::try_from(at).unwrap(),
                added_snapshot_id: None,
                added_position: None,
                size: size << 20,
                rows: 1000,
                format: FileFormat::Parquet,
                sort_order_id: None,
                key_bounds: Vec::new(),
                key_range: None,
            })
            .collect();
        let partition = PartitionFiles { files: &files, deletes: &[], time: PartitionTime::default() };
        let rules = TableRules { format_version: 2, enabled: true, order: &RowOrder::default() };
        let mut out = Vec::new();
        let explained = ExplainedPartition {
            dataset: "readings".into(),
            partition: PartitionKey::clone(&key),
            label: "day=2026-11-01".into(),
            bytes: files.iter().map(|file| file.size).sum(),
            rows: files.iter().map(|file| file.rows).sum(),
            delete_files: 0,
            explanation: explain_partition(partition, partition, &rules, &PlanSettings::default()),
            held_back: held_back.map(str::to_owned),
        };
        write_text(&mut out, &explained).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_person_reads_facts_then_rules_then_what_comes_of_it() {
        let text = told(&[20, 20, 200], None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "readings day=2026-11-01",
                "  files   3 files, 240.0 MB, 3,000 rows; 2 small (40.0 MB)",
                "  sizes   2 of 16 MB to 64 MB, 1 of 75 % of the target and more",
            ]
        );
        let rule = |name: &str| {
            let at = lines.iter().position(|line| line.starts_with(&format!("  {name} "))).unwrap();
            [lines[at], lines[at + 1]].join("\n")
        };
        assert!(rule("schedule").contains(" takes "), "{text}");
        assert!(rule("schedule").contains("2 small files, 40.0 MB; 2 files of 40.0 MB in 1 merge"), "{text}");
        assert!(rule("backlog").contains(" leaves "), "{text}");
        assert!(rule("backlog").contains("2 small files, not more than backlogFileThreshold 100"), "{text}");
        let last = "  So the next tick takes it by: nothing; the one after a scheduled time by: schedule.";
        assert_eq!(lines[lines.len() - 2..], [last, ""]);
    }

    #[test]
    fn who_waits_for_a_parked_partition_is_told_so() {
        let text = told(&[1, 2], Some("parked: dies at merge (until its inputs change)"));
        assert!(
            text.ends_with("\n  So no tick sends it: parked: dies at merge (until its inputs change).\n\n"),
            "{text}"
        );
    }
}
