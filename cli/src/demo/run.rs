//! From the start of Azurite to the answer.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_compact::HostServices;
use firn_config::Config;
use firn_local_host::{Azurite, Host, HostOptions, RunningHost, Timing};
use firn_pass::{ManualRequest, NoReport, VerifyCheck};
use firn_state::COMPACT_TICKS;
use firn_telemetry::Emitter;
use tempfile::TempDir;

use super::DemoError;
use super::app::{Places, write_config};
use super::catalog::DemoCatalog;
use super::check::{Expected, live_files, live_rows};
use super::lake::{Lake, NAMESPACE};
use super::report::{Check, DemoReport, TableReport};
use super::rows::DemoTable;
use super::search;
use crate::args::{DemoArgs, DemoCatalogKind, Format};
use crate::as_handler::App;
use crate::commands::local::hung_up;
use crate::commands::{Context, complain, told_to_stop};
use crate::exit::Exit;
use crate::output::Answer;
use crate::output::progress::Progress;
use crate::output::stdout::Stdout;

/// The demo's timer fires this often, so that nobody waits five minutes for it.
const TIMER: &str = "*/5 * * * * *";
/// Longer than any machine needs; a demo that hangs must end.
const LIMIT: Duration = Duration::from_secs(15 * 60);
const LOOK: Duration = Duration::from_millis(200);

/// Runs the demo; `keep` leaves Azurite and the host running until the process is told to stop.
pub(crate) async fn run(args: &DemoArgs, context: &Context) -> Exit {
    let keep = args.keep;
    let work = tokio::select! {
        work = demo(args.catalog) => work,
        () = told_to_stop() => Err(DemoError::new("interrupted")),
        () = hung_up() => Err(DemoError::new("the terminal was closed")),
    };
    let Finished { report, host, azurite, catalog, places, folder } = match work {
        Ok(finished) => finished,
        Err(error) => {
            complain(error);
            // The last line of standard output says how it went, whatever happened.
            say(context, &DemoReport::default());
            return Exit::Failed;
        }
    };
    if keep {
        show(&host, &places);
        say(context, &report);
        tokio::select! {
            () = told_to_stop() => {}
            () = hung_up() => {}
        }
    }
    host.stop().await;
    drop((azurite, catalog, folder));
    if !keep {
        // Whoever reads the answer finds nothing running any more.
        say(context, &report);
    }
    if report.ok() { Exit::Done } else { Exit::Failed }
}

/// The table that a person sees who asks first. It goes where the steps go, for standard output has the answer alone.
async fn dry_run(config: &Config) -> Result<(), DemoError> {
    let ask = ManualRequest { dry_run: true, ..ManualRequest::default() };
    let mut answer = Answer::new(Format::Text, std::io::stderr(), true, Progress::new(false));
    let silent = Emitter::to(std::io::sink());
    let plan = firn_pass::manual(config, &ask, &silent, &mut answer).await.map_err(DemoError::of("a dry run"))?;
    answer.pass_ended(&plan, &[], None);
    Ok(())
}

fn step(text: &str) {
    eprintln!("{text}");
}

/// How a host that is left running is reached.
fn show(host: &RunningHost, places: &Places) {
    step(&format!("left running until Ctrl-C: {}, configuration {}", host.url(), places.config().display()));
    for function in host.functions() {
        let url = host.function_url(&function.name).unwrap_or_default();
        step(&format!("  {} ({}) {url}", function.name, function.trigger));
    }
    step(&format!("  run one now: firn invoke plan --url {} --key {}", host.url(), host.master_key()));
}

/// The work is done; everything still runs.
struct Finished {
    report: DemoReport,
    host: RunningHost,
    azurite: Azurite,
    catalog: DemoCatalog,
    places: Places,
    /// Removed when it is dropped.
    folder: TempDir,
}

async fn demo(kind: DemoCatalogKind) -> Result<Finished, DemoError> {
    let app = App::find().map_err(DemoError::of("the app"))?;
    step("starting Azurite (the first time it is installed with npm, which takes a minute)");
    let azurite = tokio::task::spawn_blocking(Azurite::try_start).await.map_err(DemoError::of("Azurite"))?;
    let azurite = azurite.map_err(DemoError::of("Azurite"))?;
    let folder = tempfile::Builder::new().prefix("firn-demo-").tempdir().map_err(DemoError::of("a folder"))?;
    let places = Places::new(folder.path(), azurite.connection_string());

    let catalog = DemoCatalog::start(kind, folder.path(), &azurite, &places.warehouse).await?;
    write_config(&places, &catalog)?;
    let config = Config::from_file(&places.config()).map_err(DemoError::of("firn.yaml"))?;

    let lake = Lake::create(&config, &catalog, &places.warehouse, &places.connection).await?;
    let mut demo = Demo { lake, tables: Vec::new() };
    for table in DemoTable::ALL {
        step(&format!("writing {NAMESPACE}.{} in {} small appends", table.name(), table.appends()));
        demo.fill(table).await?;
    }
    let services = firn_pass::open_host(Arc::new(config.clone()), Emitter::to(std::io::sink()), None).await;
    let services = services.map_err(DemoError::of("the state"))?;

    step("what a run by hand would do (firn compact --dry-run):");
    dry_run(&config).await?;

    step("starting the local Functions host with the handler; its timer plans, its queue is drained");
    let host = start_host(&app, &places).await?;
    let begun = Instant::now();
    drain(&host, &services).await?;
    step(&format!("drained after {:.1} s; checking", begun.elapsed().as_secs_f64()));

    let mut report = demo.checked().await?;
    report.checks.extend(aftermath(&config, &services, &host).await?);
    if let Some(logs) = demo.tables.iter().find(|filled| filled.table == DemoTable::Logs) {
        search::check(&config, &logs.expected.rows(), &mut report).await?;
    }
    Ok(Finished { report, host, azurite, catalog, places, folder })
}

/// The answer on standard output. Nobody reading is no failure.
fn say(context: &Context, report: &DemoReport) {
    let mut out = Stdout;
    if context.format == Format::Text && !report.tables.is_empty() {
        let _ = out.write_all(report.text().as_bytes());
    }
    let _ = writeln!(out, "{}", report.json());
    let _ = out.flush();
}

struct Demo {
    lake: Lake,
    tables: Vec<Filled>,
}

/// A table as its writer left it.
struct Filled {
    table: DemoTable,
    expected: Expected,
    files: Vec<(String, u64)>,
}

impl Demo {
    async fn fill(&mut self, table: DemoTable) -> Result<(), DemoError> {
        let schema = self.lake.arrow_schema(table).await?;
        let mut expected = Expected::default();
        for number in 0..table.appends() {
            let files = table.append(number, &schema).map_err(DemoError::of("rows"))?;
            for file in &files {
                expected.add(table, &file.rows)?;
            }
            self.lake.append(table, files).await?;
        }
        let files = live_files(&self.lake.load(table).await?).await?;
        self.tables.push(Filled { table, expected, files });
        Ok(())
    }

    /// Reads every table back and compares.
    async fn checked(&self) -> Result<DemoReport, DemoError> {
        let mut report = DemoReport::default();
        for filled in &self.tables {
            let name = format!("{NAMESPACE}.{}", filled.table.name());
            let now = self.lake.load(filled.table).await?;
            let (files, rows, expected) = (live_files(&now).await?, live_rows(&now).await?, filled.expected.rows());
            let bytes = |files: &[(String, u64)]| files.iter().map(|(_, size)| size).sum();
            let table = TableReport {
                files_before: filled.files.len() as u64,
                files_after: files.len() as u64,
                bytes_before: bytes(&filled.files),
                bytes_after: bytes(&files),
                rows_before: filled.expected.written,
                rows_after: rows.len() as u64,
                duplicates_dropped: filled.expected.written.saturating_sub(rows.len() as u64),
                table: name.clone(),
            };
            let what = match filled.table.key_columns() {
                Some(_) => "the newest row of each key, and nothing else",
                None => "every row that was written, and nothing else",
            };
            let same = rows == expected;
            let counts = || format!("{} rows were read, {} expected", rows.len(), expected.len());
            report.check(format!("{name} has {what}"), (!same).then(counts));
            let fewer = table.files_after < table.files_before;
            report
                .check(format!("{name} has fewer files"), (!fewer).then(|| format!("{} are left", table.files_after)));
            report.tables.push(table);
        }
        Ok(report)
    }
}

async fn start_host(app: &App, places: &Places) -> Result<RunningHost, DemoError> {
    let root = places.folder.join("app");
    std::fs::create_dir(&root).map_err(DemoError::of("a folder"))?;
    app.stage(&root).map_err(DemoError::of("the app"))?;
    let mut options = HostOptions::new(&root);
    options.timing = Timing::development();
    options.settings.extend([
        ("FUNCTIONS_WORKER_RUNTIME".into(), "custom".into()),
        ("AzureWebJobsStorage".into(), places.connection.clone()),
        ("FIRN_TIMER".into(), TIMER.into()),
        ("FIRN_CONFIG".into(), places.config().display().to_string()),
        ("TMPDIR".into(), places.folder.display().to_string()),
    ]);
    let host = Host::start(options).await.map_err(DemoError::of("the local host"))?;
    host.ready().await.map_err(DemoError::of("the handler"))?;
    Ok(host)
}

/// Waits until the timer has planned and the queue and the records are empty.
async fn drain(host: &RunningHost, services: &HostServices) -> Result<(), DemoError> {
    let begun = Instant::now();
    let tick = services.state.root().tick(COMPACT_TICKS);
    loop {
        let planned = services.state.read(&tick).await.map_err(DemoError::of("the state"))?.is_some();
        if planned {
            host.wait_idle(LIMIT).await.map_err(DemoError::of("the queue was not drained"))?;
            let records = services.state.list_inflight(None).await.map_err(DemoError::of("the state"))?;
            if records.is_empty() {
                return Ok(());
            }
        }
        if begun.elapsed() > LIMIT {
            return Err(DemoError::new("the timer's work did not come to its end in 15 minutes"));
        }
        tokio::select! {
            why = host.stopped() => return Err(DemoError::new(format!("the local host stopped: {why}"))),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// What must hold beside the rows.
async fn aftermath(config: &Config, services: &HostServices, host: &RunningHost) -> Result<Vec<Check>, DemoError> {
    let mut report = DemoReport::default();
    let mut verified = |check: &VerifyCheck| {
        report.check(format!("{} ({})", check.check, check.message), (!check.ok).then(|| check.message.clone()));
    };
    firn_pass::verify(config, None, &mut verified).await.map_err(DemoError::of("verify"))?;
    let parked = services.state.list_parked().await.map_err(DemoError::of("the state"))?.len();
    report.check("no message was given up", (parked > 0).then(|| format!("{parked} are parked")));
    let again = ManualRequest { dry_run: true, ..ManualRequest::default() };
    let silent = Emitter::to(std::io::sink());
    let second =
        firn_pass::manual(config, &again, &silent, &mut NoReport).await.map_err(DemoError::of("a second plan"))?;
    let selected = second.selected;
    report.check("a second plan selects nothing", (selected > 0).then(|| format!("it selects {selected} partitions")));
    let problems = host.problems();
    report.check("the handler kept to the host's protocol", (!problems.is_empty()).then(|| problems.join("; ")));
    Ok(report.checks)
}
