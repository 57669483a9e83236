//! `firn local`: the Functions host on this machine, over the app of the source tree, until it is told to stop.

use std::io::Write;
use std::path::{Path, PathBuf};

use firn_config::Config;
use firn_local_host::{Announcement, Host, HostOptions, RunningHost, StartError, Timing};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::args::{Format, WithConfig};
use crate::as_handler::App;
use crate::commands::{Context, complain, config_path, load_config, refuse, told_to_stop};
use crate::exit::Exit;
use crate::output::stdout::Stdout;
use crate::output::table::{Side, Table};

/// Core Tools' port; a free one where another program has it.
const PORT: u16 = 7071;
/// The function that looks for due work.
const PLANNER: &str = "plan";
/// The setting that stands for the key of host.json.
const WORKING_DIRECTORY: &str = "AzureFunctionsJobHost__customHandler__description__workingDirectory";
/// Variable with the folder that says where a host runs.
const FOLDER: &str = "FIRN_LOCAL_DIR";

pub(crate) async fn run(args: WithConfig, context: &Context) -> Exit {
    let config = match load_config(&args, None) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let path = match config_path(&args, std::env::var("FIRN_CONFIG").ok()).and_then(|path| absolute(&path)) {
        Ok(path) => path,
        Err(message) => return refuse(message),
    };
    let root = match tempfile::Builder::new().prefix("firn-local-").tempdir() {
        Ok(root) => root,
        Err(error) => {
            complain(format!("cannot make a folder for the app: {error}"));
            return Exit::Failed;
        }
    };
    let options = match prepare(&config, &path, root.path()) {
        Ok(options) => options,
        Err(message) => return refuse(message),
    };
    let host = match start(options).await {
        Ok(host) => host,
        Err(error) => {
            complain(&error);
            return if matches!(error, StartError::App(_)) { Exit::Usage } else { Exit::Failed };
        }
    };
    let announcement = Announcement::write(&folder(), &host);
    if let Err(error) = &announcement {
        complain(format!("{}: {error}; firn invoke needs --url and --key", folder().display()));
    }
    show(&host, context.format);
    let exit = serve(&host).await;
    host.stop().await;
    drop(announcement);
    if context.format == Format::Json {
        say(&json!({"summary": true, "ok": exit == Exit::Done}).to_string());
    }
    exit
}

/// Until it is told to stop, or gives up. A host begins with a look for due work.
async fn serve(host: &RunningHost) -> Exit {
    let first_look = async {
        if host.ready().await.is_ok() {
            host.invoke(PLANNER, "").await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = told_to_stop() => Exit::Done,
        () = hung_up() => Exit::Done,
        reason = host.stopped() => {
            complain(reason);
            Exit::Failed
        }
        () = first_look => Exit::Done,
    }
}

/// Returns when the terminal is closed, unless this process was started to outlive it (`nohup`). The handler has a process
/// group of its own, so a host that just died would leave it behind.
pub(crate) async fn hung_up() {
    #[cfg(unix)]
    if !hangup_is_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
        && let Ok(mut hangup) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
    {
        hangup.recv().await;
        return;
    }
    std::future::pending().await
}

/// Reads the mask of ignored signals; SIGHUP is its first bit.
#[cfg(unix)]
fn hangup_is_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Stages the app and says how it is run.
fn prepare(config: &Config, path: &Path, root: &Path) -> Result<HostOptions, String> {
    let Some(storage) = &config.storage else {
        return Err(format!(
            "{}: section storage is missing; a host needs a queue: write for Azurite storage: {{connectionString: \
             UseDevelopmentStorage=true}}",
            path.display()
        ));
    };
    let Some(connection) = &storage.connection_string else {
        return Err(format!(
            "{}: storage.credential: {} is for Azure: this host asks queues by connection string; write connectionString: \
             UseDevelopmentStorage=true for Azurite",
            path.display(),
            storage.credential.as_str()
        ));
    };
    App::find()?.stage(root)?;
    let here = std::env::current_dir().map_err(|error| format!("the working directory is unknown: {error}"))?;
    let mut options = HostOptions::new(root);
    options.timing = Timing::development();
    options.port = PORT;
    options.state_folder = Some(folder());
    // What is relative in the configuration is meant from here, not from the staged app.
    options.settings.insert(WORKING_DIRECTORY.into(), here.display().to_string());
    let path = path.display().to_string();
    options.settings.insert("AzureFunctionsWebHost__hostid".into(), host_id(&path));
    options.settings.insert("FIRN_CONFIG".into(), path);
    // The queue that the handler sends to is the one that the host listens to.
    options.settings.insert("AzureWebJobsStorage".into(), connection.expose().to_owned());
    Ok(options)
}

/// The same configuration has the same timers, whatever folder the app is staged in.
fn host_id(path: &str) -> String {
    let digest = Sha256::digest(path.as_bytes());
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("firn-local-{hash}")
}

async fn start(options: HostOptions) -> Result<RunningHost, StartError> {
    match Host::start(options.clone()).await {
        Err(StartError::Port { .. }) => Host::start(HostOptions { port: 0, ..options }).await,
        other => other,
    }
}

/// The folder that keeps the keys and says where a host runs: one for each user.
pub(crate) fn folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(FOLDER)
        .or_else(|| set("XDG_RUNTIME_DIR").map(|folder| folder.join("firn")))
        .or_else(|| set("HOME").map(|folder| folder.join(".firn")))
        .unwrap_or_else(|| std::env::temp_dir().join("firn-local"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn show(host: &RunningHost, format: Format) {
    let functions = host.functions();
    let address = |name: &str| host.function_url(name).unwrap_or_default();
    match format {
        Format::Json => {
            for function in functions {
                let url = host.function_url(&function.name);
                say(&json!({"function": function.name, "trigger": function.trigger, "url": url}).to_string());
            }
            say(&json!({"host": host.url()}).to_string());
        }
        Format::Text => {
            let mut table = Table::new([("function", Side::Left), ("trigger", Side::Left), ("address", Side::Left)]);
            for function in functions {
                let url = address(&function.name);
                table.row([function.name, function.trigger, url]);
            }
            let mut out = Stdout;
            let _ = table.write(&mut out);
            let _ = writeln!(out, "\nhost on {}; Ctrl-C stops it", host.url());
            let _ = out.flush();
        }
    }
}

/// A line on stdout. Nobody reading is no failure.
fn say(line: &str) {
    let mut out = Stdout;
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_needs_a_queue() {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [{name: readings, table: a.b}]}";
        let config = Config::load(text, &std::collections::HashMap::new()).unwrap();
        let error = prepare(&config, Path::new("/etc/firn.yaml"), Path::new("/nowhere")).unwrap_err();
        assert!(error.starts_with("/etc/firn.yaml: section storage is missing"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_nohup_leaves() {
        assert!(hangup_is_ignored("Name:\tfirn\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"));
        assert!(!hangup_is_ignored("SigIgn:\t0000000000001000\n"));
        assert!(!hangup_is_ignored(""));
    }

    #[test]
    fn one_configuration_one_host() {
        assert_eq!(host_id("/a/firn.yaml"), host_id("/a/firn.yaml"));
        assert_ne!(host_id("/a/firn.yaml"), host_id("/b/firn.yaml"));
    }
}
