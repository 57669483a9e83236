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
    let sizes: Vec<String> = partition.sizes().iter().map(|(size, files)| format!("{files} {size}")).collect();
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
    let [tick, schedule] = partition.selected_by().map(|rule| rule.map_or("nothing", Rule::as_str));
    writeln!(out, "  So the next tick takes it by: {tick}; the one after a scheduled time by: {schedule}.\n")
}
