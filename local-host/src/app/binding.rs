//! What stands in `bindings` of a `function.json`.

use std::time::Duration;

use super::error::AppError;
use super::json::Reader;
use super::settings::Settings;
use crate::timer::TimerSchedule;

/// The setting with the storage account where a binding names none.
const DEFAULT_CONNECTION: &str = "AzureWebJobsStorage";

/// Who may call an HTTP function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthLevel {
    /// Everybody.
    Anonymous,
    /// Who has the function key (or the master key).
    Function,
    /// Who has the master key.
    Admin,
}

/// What makes a function run.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// A message in a queue.
    Queue {
        /// Name of the binding: key in `Data`.
        binding: String,
        /// The queue, lower case.
        queue: String,
        /// The connection string.
        connection: Connection,
        /// `dataType` is `binary`: `Data` holds Base64 of the bytes and the fields of JSON are not copied.
        binary: bool,
    },
    /// Time.
    Timer {
        /// Name of the binding.
        binding: String,
        /// When.
        schedule: TimerSchedule,
        /// Run once at start.
        run_on_startup: bool,
        /// Whether runs are remembered, so that a missed one is made up.
        use_monitor: bool,
    },
    /// An HTTP request.
    Http {
        /// Name of the binding.
        binding: String,
        /// Who may call it.
        auth_level: AuthLevel,
        /// Methods in upper case; empty: all.
        methods: Vec<String>,
        /// Path below the prefix, without slashes at its ends; `{name}` takes one segment.
        route: String,
    },
}

/// A connection string, which is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection(pub(crate) String);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection(***)")
    }
}

/// Where a result of the handler goes.
#[derive(Debug, Clone)]
pub struct Output {
    /// Name of the binding; `$return` takes `ReturnValue`.
    pub name: String,
    /// What it is.
    pub kind: OutputKind,
}

/// Kinds of outputs.
#[derive(Debug, Clone)]
pub enum OutputKind {
    /// Messages into a queue.
    Queue {
        /// The queue, lower case.
        queue: String,
        /// The connection string.
        connection: Connection,
        /// `dataType` is `binary`: a text is never decoded as Base64.
        binary: bool,
    },
    /// The answer of an HTTP function.
    Http,
}

/// Reads one binding of function `function`.
pub(super) enum Binding {
    Trigger(Trigger),
    Output(Output),
}

impl Binding {
    pub(super) fn read(reader: Reader<'_>, function: &str, settings: &Settings) -> Result<Binding, AppError> {
        let kind = reader.text("type")?.ok_or_else(|| reader.wrong("bindings.type", "is missing"))?;
        let name = reader.text("name")?.ok_or_else(|| reader.wrong("bindings.name", "is missing"))?;
        if !is_binding_name(name) {
            return Err(reader.wrong(
                "bindings.name",
                format!("\"{name}\" is not a letter with letters and digits after it, nor $return"),
            ));
        }
        let direction = reader.text("direction")?.unwrap_or("in").to_ascii_lowercase();
        let binary = reader.text("dataType")?.is_some_and(|kind| kind.eq_ignore_ascii_case("binary"));
        let binding = name.to_owned();
        let trigger = match (kind.to_ascii_lowercase().as_str(), direction.as_str()) {
            ("queuetrigger", "in") => {
                let (queue, connection) = queue_of(reader, function, settings)?;
                Trigger::Queue { binding, queue, connection, binary }
            }
            ("timertrigger", "in") => timer(reader, binding, settings)?,
            ("httptrigger", "in") => http(reader, binding, function)?,
            ("queue", "out") => {
                let (queue, connection) = queue_of(reader, function, settings)?;
                let kind = OutputKind::Queue { queue, connection, binary };
                return Ok(Binding::Output(Output { name: binding, kind }));
            }
            ("http", "out") => return Ok(Binding::Output(Output { name: binding, kind: OutputKind::Http })),
            _ => {
                let known = "queueTrigger, timerTrigger and httpTrigger in, queue and http out";
                return Err(
                    reader.wrong("bindings.type", format!("\"{kind}\" {direction}: the local host knows {known}"))
                );
            }
        };
        Ok(Binding::Trigger(trigger))
    }
}

fn queue_of(reader: Reader<'_>, function: &str, settings: &Settings) -> Result<(String, Connection), AppError> {
    let queue = required(reader, "queueName", settings)?.to_lowercase();
    let setting = reader.text("connection")?.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_CONNECTION);
    let connection = settings.connection(setting, &format!("function {function}, queue {queue}"))?;
    Ok((queue, Connection(connection.to_owned())))
}

fn timer(reader: Reader<'_>, binding: String, settings: &Settings) -> Result<Trigger, AppError> {
    let text = required(reader, "schedule", settings)?;
    let schedule =
        TimerSchedule::parse(&text).map_err(|why| reader.wrong("bindings.schedule", format!("\"{text}\" {why}")))?;
    // A schedule of more than once a minute is never remembered.
    let often = schedule.fires_within(Duration::from_secs(60));
    Ok(Trigger::Timer {
        binding,
        run_on_startup: reader.boolean("runOnStartup", false)?,
        use_monitor: reader.boolean("useMonitor", true)? && !often,
        schedule,
    })
}

fn http(reader: Reader<'_>, binding: String, function: &str) -> Result<Trigger, AppError> {
    let auth_level = match reader.text("authLevel")?.unwrap_or("function").to_ascii_lowercase().as_str() {
        "anonymous" => AuthLevel::Anonymous,
        "function" => AuthLevel::Function,
        "admin" => AuthLevel::Admin,
        other => {
            let message = format!("\"{other}\" is not anonymous, function or admin");
            return Err(reader.wrong("bindings.authLevel", message));
        }
    };
    let methods = match reader.value("methods").map(|value| value.as_array().map(Vec::as_slice)) {
        None => Vec::new(),
        Some(Some(methods)) => {
            methods.iter().filter_map(|method| method.as_str()).map(str::to_ascii_uppercase).collect()
        }
        Some(None) => return Err(reader.wrong("bindings.methods", "is not a list")),
    };
    let route = reader.text("route")?.unwrap_or(function).trim_matches('/').to_owned();
    Ok(Trigger::Http { binding, auth_level, methods, route })
}

fn required(reader: Reader<'_>, key: &str, settings: &Settings) -> Result<String, AppError> {
    let path = format!("bindings.{key}");
    let text = reader.text(key)?.filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| reader.wrong(&path, "is missing"))?;
    settings.expand(text).map_err(|name| reader.wrong(&path, format!("\"{text}\": app setting \"{name}\" is missing")))
}

fn is_binding_name(name: &str) -> bool {
    name == "$return"
        || (name.len() <= 128
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric()))
}
