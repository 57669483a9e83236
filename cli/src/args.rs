//! The command line as it is typed (design section 10). Values are read fully here: what reaches a command is sound.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use firn_pass::{DateRange, PartitionCondition};

/// Keeps Apache Iceberg tables on Azure Blob Storage compact.
#[derive(Debug, Parser)]
#[command(name = "firn", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// How the answer is written on stdout: tables for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
    pub(crate) format: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Text,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Merge small files: one pass with any flag beside --config, else the long-running compactor
    Compact(CompactArgs),
    /// Recompute proofs and invariants on live tables
    Verify(OverDatasets),
    /// Show the whole job on this machine, from small files to checked large ones
    Demo(DemoArgs),
    /// Run the local Functions host: timers, queue listeners, HTTP endpoints
    Local(WithConfig),
    /// Run one function of a running host now
    Invoke(InvokeArgs),
    /// Expire snapshots now
    Expire(OverDatasets),
    /// Merge the sketches of distinct values of a table's files into table statistics, now
    Statistics(OverDatasets),
    /// Delete files that no snapshot refers to, now; the first sweep of a table only looks, a later one deletes after the grace
    Orphans(OrphansArgs),
    /// Read a sidecar
    Inspect(InspectArgs),
    /// Search through text sidecars, scanning files that have none
    Search(SearchArgs),
    /// Check configuration, identity, roles, catalog, clock and locations before anything runs
    Doctor(WithConfig),
    /// Write the package that Azure takes
    Package(PackageArgs),
    /// Put parked work back into the queue
    Requeue(RequeueArgs),
    /// Undo a sweep: bring back what its receipt says was deleted
    Restore(RestoreArgs),
    /// Say why a partition was or was not selected
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WithConfig {
    /// The configuration file; FIRN_CONFIG where it is not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OverDatasets {
    #[command(flatten)]
    pub(crate) config: WithConfig,
    /// Only this dataset
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) config: WithConfig,
    /// Only this dataset
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// Only partitions that hold a date in this inclusive range
    #[arg(long, value_name = "FROM:TO", value_parser = DateRange::parse)]
    pub(crate) date_range: Option<DateRange>,
    /// Only partitions with this value; may be repeated, all must match; COL is a partition field or its source column,
    /// COL=\N is null
    #[arg(long = "partition", value_name = "COL=VALUE", value_parser = PartitionCondition::parse)]
    pub(crate) partitions: Vec<PartitionCondition>,
    /// List the files that would be merged; merge and commit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// List the files that orphan cleanup would delete; delete nothing, merge nothing
    #[arg(long)]
    pub(crate) orphan_dry_run: bool,
    /// Merge every partition that is not one sorted run
    #[arg(long)]
    pub(crate) full: bool,
    /// Post messages for the workers instead of merging here
    #[arg(long)]
    pub(crate) enqueue: bool,
    /// One pass by the ordinary rules (schedule, cold, tier, backlog) over all datasets or those named, then the end: for cron in
    /// place of the long-running compactor
    #[arg(long, conflicts_with_all = ["full", "enqueue", "orphan_dry_run"])]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave everything running
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where the tables are registered; a server is started for the demo from the programs of this machine
    #[arg(long, value_enum, default_value_t = DemoCatalogKind::Sqlite)]
    pub(crate) catalog: DemoCatalogKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoCatalogKind {
    Sqlite,
    Postgres,
    Rest,
}

#[derive(Debug, Args)]
pub(crate) struct InvokeArgs {
    /// Name of the function
    pub(crate) function: String,
    /// What it is called with: the message of a queue function, the body of an HTTP function
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    pub(crate) data: Option<String>,
    /// Address of the host, where `firn local` does not run or runs more than once
    #[arg(long, value_name = "URL", value_parser = host_url)]
    pub(crate) url: Option<String>,
    /// Its master key
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OrphansArgs {
    #[command(flatten)]
    pub(crate) over: OverDatasets,
    /// List what would be deleted; delete nothing, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show the receipt of the last sweep instead
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) last: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Needed for a blob: its credential stands there
    #[command(flatten)]
    pub(crate) config: WithConfig,
    /// Path or URL of the sidecar, note (.none) or table statistics (.stats)
    pub(crate) sidecar: String,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) over: OverDatasets,
    /// What to look for: words (all of them), "phrases", AND, OR, NOT or -, brackets, COLUMN:word
    pub(crate) query: String,
    /// At most this many rows; the summary says when more match
    #[arg(long, value_name = "ROWS")]
    pub(crate) limit: Option<u64>,
    /// Look at every row, whatever indexes there are
    #[arg(long)]
    pub(crate) scan: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// The configuration that goes into it; FIRN_CONFIG where it is not given, else firn.yaml of the working directory
    #[command(flatten)]
    pub(crate) config: WithConfig,
    /// Where to write it: a zip when it ends in .zip, else a folder
    #[arg(long, value_name = "PATH")]
    pub(crate) out: PathBuf,
    /// A handler that is built already, instead of one built now for glibc 2.28
    #[arg(long, value_name = "PATH")]
    pub(crate) handler: Option<PathBuf>,
    /// Refuse a handler that needs a newer glibc than 2.28; one that is built now is always checked
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RequeueArgs {
    #[command(flatten)]
    pub(crate) over: OverDatasets,
    /// Only these parked entries, by their ids; all of them where none is given
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) config: WithConfig,
    /// The receipt of the sweep: its id, as firn orphans --last shows it
    pub(crate) receipt: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) over: OverDatasets,
    /// Only partitions with this value; may be repeated, all must match; COL=\N is null
    #[arg(long = "partition", value_name = "COL=VALUE", value_parser = PartitionCondition::parse)]
    pub(crate) partitions: Vec<PartitionCondition>,
}

impl CompactArgs {
    /// A run is one pass only with at least one flag beside `--config`.
    pub(crate) fn is_manual(&self) -> bool {
        self.dataset.is_some()
            || self.date_range.is_some()
            || !self.partitions.is_empty()
            || self.dry_run
            || self.orphan_dry_run
            || self.full
            || self.enqueue
            || self.once
    }
}

/// An address with scheme and host; anything else would only fail as a host that does not answer.
fn host_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') => Ok(text.to_owned()),
        _ => Err("this is no address; write for example http://127.0.0.1:7071".into()),
    }
}

/// Takes a text that is JSON, as it stands.
fn json_text(text: &str) -> Result<String, String> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("\"{text}\" is not JSON: {error}")),
    }
}

impl Command {
    /// For what is agreed and not built yet: with what it comes. None for what stands.
    pub(crate) fn comes_with(&self) -> Option<&'static str> {
        match self {
            Command::Compact(_) | Command::Verify(_) | Command::Requeue(_) | Command::Explain(_) => None,
            Command::Demo(_) | Command::Local(_) | Command::Invoke(_) => None,
            Command::Doctor(_) | Command::Package(_) => None,
            Command::Expire(_) | Command::Statistics(_) | Command::Orphans(_) | Command::Restore(_) => None,
            Command::Inspect(_) | Command::Search(_) => None,
        }
    }

    /// What was asked for, as it is typed.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Compact(args) if args.orphan_dry_run => "firn compact --orphan-dry-run",
            Command::Compact(args) if args.enqueue => "firn compact --enqueue",
            Command::Compact(args) if !args.is_manual() => {
                "firn compact without a flag beside --config (the long-running compactor)"
            }
            Command::Compact(_) => "firn compact",
            Command::Verify(_) => "firn verify",
            Command::Demo(_) => "firn demo",
            Command::Local(_) => "firn local",
            Command::Invoke(_) => "firn invoke",
            Command::Expire(_) => "firn expire",
            Command::Statistics(_) => "firn statistics",
            Command::Orphans(_) => "firn orphans",
            Command::Inspect(_) => "firn inspect",
            Command::Search(_) => "firn search",
            Command::Doctor(_) => "firn doctor",
            Command::Package(_) => "firn package",
            Command::Requeue(_) => "firn requeue",
            Command::Restore(_) => "firn restore",
            Command::Explain(_) => "firn explain",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("firn").chain(line.split_ascii_whitespace()))
    }

    fn command(line: &str) -> Command {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_form_of_the_design_is_read() {
        for (line, comes_with) in [
            ("demo", None),
            ("demo --keep", None),
            ("demo --catalog postgres", None),
            ("demo --catalog rest", None),
            ("local --config f", None),
            ("invoke plan --data {}", None),
            ("compact --config f", None),
            ("compact --config f --enqueue --dataset d", None),
            ("compact --config f --orphan-dry-run", None),
            ("compact --config f --dataset d", None),
            ("compact --config f --date-range 2026-11-01:2026-11-30", None),
            ("compact --config f --partition day=2026-11-01 --partition region=\\N", None),
            ("compact --config f --dry-run", None),
            ("compact --config f --full", None),
            ("compact --config f --once", None),
            ("compact --config f --once --dataset d --dry-run", None),
            ("expire --config f --dataset d", None),
            ("statistics --config f --dataset d", None),
            ("orphans --dry-run --config f", None),
            ("orphans --last --config f --dataset d", None),
            ("inspect a.bloom", None),
            ("search --config f --dataset d error --limit 10", None),
            ("verify --config f --dataset d", None),
            ("doctor --config f", None),
            ("package --out firn.zip", None),
            ("package --out app --config f --handler h --check", None),
            ("requeue --config f", None),
            ("requeue --config f --dataset d 0af1 0af2", None),
            ("restore r-1 --config f", None),
            ("explain --config f --partition day=2026-11-01", None),
        ] {
            assert_eq!(command(line).comes_with(), comes_with, "{line}");
            assert!(command(line).name().starts_with(&format!("firn {}", line.split(' ').next().unwrap())), "{line}");
        }
    }

    #[test]
    fn the_format_stands_before_or_after_the_command() {
        for (line, format) in [
            ("verify --config f", Format::Text),
            ("--format json verify --config f", Format::Json),
            ("verify --format json --config f", Format::Json),
            ("verify --config f --format text", Format::Text),
        ] {
            assert_eq!(parse(line).unwrap().format, format, "{line}");
        }
    }

    #[test]
    fn flags_of_compact_arrive_as_values() {
        let Command::Compact(args) =
            command("compact --config f --date-range 2026-11-01:2026-11-02 --partition a=b=c --partition s=\\N")
        else {
            panic!("another command")
        };
        assert_eq!(args.date_range, DateRange::parse("2026-11-01:2026-11-02").ok());
        let condition = |column: &str, value: Option<&str>| PartitionCondition {
            column: column.into(),
            value: value.map(Into::into),
        };
        assert_eq!(args.partitions, [condition("a", Some("b=c")), condition("s", None)]);
        assert!(args.is_manual() && !args.dry_run && !args.full);
        let Command::Compact(once) = command("compact --config f --once") else { panic!("another command") };
        assert!(once.is_manual() && once.once);
    }

    #[test]
    fn wrong_values_are_usage_errors_that_quote_them() {
        for (line, part) in [
            ("compact --config f --date-range 2026-11-02:2026-11-01", "\"2026-11-02:2026-11-01\" runs backwards"),
            (
                "compact --config f --date-range 2026-02-30:2026-03-01",
                "\"2026-02-30\" in \"2026-02-30:2026-03-01\" is not a date",
            ),
            ("compact --config f --date-range yesterday", "\"yesterday\" is not a date range"),
            ("compact --config f --partition day", "\"day\" is not a partition"),
            ("compact --config f --nonsense", "--nonsense"),
            ("compact --config f --once --full", "cannot be used with"),
            ("compact --config f --once --enqueue", "cannot be used with"),
            ("compact --config f --format yaml", "yaml"),
            ("search --config f error --limit ten", "ten"),
            ("melt", "melt"),
            ("package", "--out"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(part), "{line}: {error}");
        }
    }
}
