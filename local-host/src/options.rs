//! What a host is started with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::log::{LogSink, TracingLog};
use crate::storage::{AzureHostStorage, HostStorage};
use crate::timing::Timing;

/// What a host is started with. [`HostOptions::new`] gives the real host's behaviour over Azure Storage.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Folder with `host.json` and a folder with a `function.json` for each function.
    pub app_root: PathBuf,
    /// App settings; they win over the environment of this process, which wins over `local.settings.json`.
    pub settings: BTreeMap<String, String>,
    /// Reports at once what the real host would only show as a hang: an answer that is empty or null, a handler that cannot
    /// be started or ends with 0. See [`RunningHost::problems`](crate::RunningHost::problems).
    pub strict: bool,
    /// Port on 127.0.0.1 for HTTP functions and the admin endpoint; 0: a free one.
    pub port: u16,
    /// Folder that keeps the keys of HTTP functions (`keys.json`); made when missing. None: new keys for each start.
    pub state_folder: Option<PathBuf>,
    /// Intervals and limits.
    pub timing: Timing,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Queues and blobs.
    pub storage: Arc<dyn HostStorage>,
    /// Where the log goes.
    pub log: Arc<dyn LogSink>,
}

impl HostOptions {
    /// The real host over the app in `app_root`, strict, on a free port.
    pub fn new(app_root: impl Into<PathBuf>) -> Self {
        Self {
            app_root: app_root.into(),
            settings: BTreeMap::new(),
            strict: true,
            port: 0,
            state_folder: None,
            timing: Timing::default(),
            clock: Arc::new(SystemClock),
            storage: Arc::new(AzureHostStorage),
            log: Arc::new(TracingLog),
        }
    }
}
