//! `host.json`: the parts that the local host acts on; the rest is ignored, as far as it cannot change what an app does.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::error::AppError;
use super::json::{self, Reader};
use super::settings::Settings;

/// Prefix of settings that stand for keys of `host.json`.
const SETTING_PREFIX: &str = "AzureFunctionsJobHost__";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const BUNDLE: &str = "Microsoft.Azure.Functions.ExtensionBundle";
pub(super) const NO_BUNDLE: &str = "is missing, and a function uses a queue; write {\"id\": \
     \"Microsoft.Azure.Functions.ExtensionBundle\", \"version\": \"[4.*, 5.0.0)\"}";

/// How the text of a message stands for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEncoding {
    /// Base64 of the bytes.
    Base64,
    /// The bytes as they are.
    None,
}

/// `extensions.queues`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// Messages of one receive, 1 to 32.
    pub batch_size: usize,
    /// The next receive happens when not more than this many messages of the function are being worked on.
    pub new_batch_threshold: usize,
    /// Attempts before a message is poison.
    pub max_dequeue_count: u32,
    /// The longest wait between two looks into an empty queue.
    pub max_polling_interval: Duration,
    /// How long a failed message stays hidden.
    pub visibility_timeout: Duration,
    /// For triggers and outputs.
    pub message_encoding: MessageEncoding,
}

/// `host.json`, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostJson {
    /// `customHandler.description.defaultExecutablePath` as it stands.
    pub executable: String,
    /// `customHandler.description.arguments` as they stand.
    pub arguments: Vec<String>,
    /// `customHandler.description.workingDirectory`, below the app root.
    pub working_directory: Option<String>,
    /// `customHandler.initializationTimeout`.
    pub initialization_timeout: Option<Duration>,
    /// `functionTimeout`; None: no limit.
    pub function_timeout: Option<Duration>,
    /// `extensions.http.routePrefix`, without slashes.
    pub route_prefix: String,
    /// `extensions.queues`.
    pub queues: QueueSettings,
    /// Whether the bundle with the queue bindings is named.
    pub(super) has_extension_bundle: bool,
}

impl HostJson {
    pub(super) fn load(root: &Path, settings: &Settings) -> Result<HostJson, AppError> {
        let file = root.join("host.json");
        let mut object = json::read(&file)?;
        for (name, value) in settings.iter() {
            if let Some((prefix, path)) = name.split_at_checked(SETTING_PREFIX.len())
                && prefix.eq_ignore_ascii_case(SETTING_PREFIX)
            {
                json::put(&mut object, &path.split("__").collect::<Vec<_>>(), value);
            }
        }
        Self::read(Reader { file: &file, object: &object }, settings)
    }

    fn read(reader: Reader<'_>, settings: &Settings) -> Result<HostJson, AppError> {
        if reader.text("version")? != Some("2.0") {
            return Err(reader.wrong("version", "must be \"2.0\""));
        }
        match settings.get("FUNCTIONS_WORKER_RUNTIME") {
            None | Some("custom") => {}
            Some(other) => {
                return Err(reader.wrong(
                    "customHandler",
                    format!("app setting FUNCTIONS_WORKER_RUNTIME is \"{other}\"; set it to custom"),
                ));
            }
        }
        refuse_what_is_not_done(reader)?;
        let path = "customHandler.description.defaultExecutablePath";
        let executable = reader.text(path)?.filter(|text| !text.trim().is_empty());
        let executable = executable.ok_or_else(|| reader.wrong(path, "is missing; write the handler's file name"))?;
        let path = "customHandler.description.arguments";
        let arguments = match reader.value(path) {
            None => Vec::new(),
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(other) => return Err(reader.wrong(path, format!("{other} is not a list of texts"))),
        };
        Ok(HostJson {
            executable: executable.to_owned(),
            arguments,
            working_directory: reader.text("customHandler.description.workingDirectory")?.map(str::to_owned),
            initialization_timeout: reader.duration("customHandler.initializationTimeout")?,
            function_timeout: function_timeout(reader)?,
            route_prefix: reader.text("extensions.http.routePrefix")?.unwrap_or("api").trim_matches('/').to_owned(),
            queues: queues(reader)?,
            has_extension_bundle: reader.text("extensionBundle.id")? == Some(BUNDLE),
        })
    }
}

fn refuse_what_is_not_done(reader: Reader<'_>) -> Result<(), AppError> {
    for switch in ["customHandler.enableForwardingHttpRequest", "customHandler.enableProxyingHttpRequest"] {
        if reader.boolean(switch, false)? {
            return Err(reader.wrong(switch, "the local host does not forward requests; set it to false"));
        }
    }
    for (key, remedy) in [
        ("retry", "multiplies the attempts of queue messages, and the local host does not do it; remove it"),
        ("customHandler.http", "excludes every function.json; remove it"),
        ("httpWorker", "is the old name of customHandler; rename it"),
    ] {
        if reader.value(key).is_some() {
            return Err(reader.wrong(key, remedy));
        }
    }
    Ok(())
}

fn function_timeout(reader: Reader<'_>) -> Result<Option<Duration>, AppError> {
    let key = "functionTimeout";
    match reader.value(key) {
        None => Ok(Some(DEFAULT_TIMEOUT)),
        Some(Value::String(text)) if text == "-1" => Ok(None),
        Some(_) => match reader.duration(key)? {
            Some(limit) if limit < Duration::from_secs(1) => {
                Err(reader.wrong(key, "is below 1 s; write at least 00:00:01"))
            }
            limit => Ok(limit),
        },
    }
}

fn queues(reader: Reader<'_>) -> Result<QueueSettings, AppError> {
    let path = |key: &str| format!("extensions.queues.{key}");
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let batch_size = count(reader.number(&path("batchSize"), 16, 1, 32)?);
    // The real host takes the machine's processors on every plan but Consumption.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threshold = (batch_size / 2 * processors) as u64;
    let polling = path("maxPollingInterval");
    let max_polling_interval = reader.duration(&polling)?.unwrap_or(Duration::from_secs(60));
    if max_polling_interval < Duration::from_millis(100) {
        return Err(reader.wrong(&polling, "is below 100 ms; write at least 00:00:00.1"));
    }
    let encoding = path("messageEncoding");
    Ok(QueueSettings {
        batch_size,
        new_batch_threshold: count(reader.number(&path("newBatchThreshold"), threshold, 0, u64::MAX)?),
        max_dequeue_count: u32::try_from(reader.number(&path("maxDequeueCount"), 5, 1, u64::from(u32::MAX))?)
            .unwrap_or(u32::MAX),
        max_polling_interval,
        visibility_timeout: reader.duration(&path("visibilityTimeout"))?.unwrap_or_default(),
        message_encoding: match reader.text(&encoding)? {
            None => MessageEncoding::Base64,
            Some(text) if text.eq_ignore_ascii_case("base64") => MessageEncoding::Base64,
            Some(text) if text.eq_ignore_ascii_case("none") => MessageEncoding::None,
            Some(text) => return Err(reader.wrong(&encoding, format!("\"{text}\" is neither base64 nor none"))),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn load(value: Value, settings: &[(&str, &str)]) -> Result<HostJson, AppError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("host.json"), value.to_string()).unwrap();
        let extra: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings::load(folder.path(), &extra, []).unwrap();
        HostJson::load(folder.path(), &settings)
    }

    fn handler(extra: Value) -> Value {
        let mut value =
            json!({"version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "handler"}}});
        let (Value::Object(into), Value::Object(from)) = (&mut value, extra) else { unreachable!() };
        into.extend(from);
        value
    }

    #[test]
    fn defaults_are_those_of_the_real_host() {
        let host = load(handler(json!({})), &[]).unwrap();
        assert_eq!(host.function_timeout, Some(Duration::from_secs(1800)));
        assert_eq!(host.route_prefix, "api");
        assert_eq!(host.initialization_timeout, None);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let queues = QueueSettings {
            batch_size: 16,
            new_batch_threshold: 8 * processors,
            max_dequeue_count: 5,
            max_polling_interval: Duration::from_secs(60),
            visibility_timeout: Duration::ZERO,
            message_encoding: MessageEncoding::Base64,
        };
        assert_eq!(host.queues, queues);
    }

    #[test]
    fn what_an_app_sets() {
        let file = handler(json!({
            "functionTimeout": "-1",
            "extensions": {"queues": {"batchSize": 1, "visibilityTimeout": "00:02:00", "messageEncoding": "none",
                "maxPollingInterval": "00:00:30", "maxDequeueCount": "7"}},
        }));
        let over = [
            ("AzureFunctionsJobHost__customHandler__description__defaultExecutablePath", "/bin/other"),
            ("AzureFunctionsJobHost__functionTimeout", "00:00:05"),
        ];
        let host = load(file.clone(), &over).unwrap();
        assert_eq!((host.executable.as_str(), host.function_timeout), ("/bin/other", Some(Duration::from_secs(5))));
        let queues = QueueSettings {
            batch_size: 1,
            new_batch_threshold: 0,
            max_dequeue_count: 7,
            max_polling_interval: Duration::from_secs(30),
            visibility_timeout: Duration::from_secs(120),
            message_encoding: MessageEncoding::None,
        };
        assert_eq!(host.queues, queues);
        assert_eq!(load(file, &[]).unwrap().function_timeout, None);
    }

    #[test]
    fn what_is_refused() {
        let queues = |settings: Value| handler(json!({"extensions": {"queues": settings}}));
        for (file, part) in [
            (json!({"version": "2.0"}), "defaultExecutablePath: is missing"),
            (json!({}), "version: must be \"2.0\""),
            (handler(json!({"retry": {}})), "retry: multiplies"),
            (handler(json!({"functionTimeout": "00:00:00.5"})), "functionTimeout: is below 1 s"),
            (handler(json!({"functionTimeout": "soon"})), "functionTimeout: \"soon\" is not a time span"),
            (queues(json!({"batchSize": 33})), "batchSize: 33 is not a whole number from 1 to 32"),
            (queues(json!({"maxDequeueCount": 0})), "maxDequeueCount: 0 is not a whole number from 1"),
            (queues(json!({"maxPollingInterval": "00:00:00.05"})), "maxPollingInterval: is below 100 ms"),
            (queues(json!({"messageEncoding": "utf8"})), "\"utf8\" is neither base64 nor none"),
            (
                json!({"version": "2.0", "customHandler": {"enableForwardingHttpRequest": true}}),
                "enableForwardingHttpRequest: the local host does not forward",
            ),
        ] {
            let error = load(file.clone(), &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{file}: {error}");
        }
        let error = load(handler(json!({})), &[("FUNCTIONS_WORKER_RUNTIME", "node")]).unwrap_err().to_string();
        assert!(error.contains("is \"node\"; set it to custom"), "{error}");
    }
}
