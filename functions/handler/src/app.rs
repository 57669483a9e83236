//! The functions over the services that the configuration describes, which are opened at the first use and kept.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firn_compact::HostServices;
use firn_config::Config;
use firn_pass::open_host;
use firn_telemetry::Emitter;
use tokio::sync::OnceCell;

use crate::answer::Answer;
use crate::environment::HandlerEnvironment;
use crate::function::Function;
use crate::invocation::Invocation;
use crate::queue_names::check_queue_names;
use crate::server::Functions;
use crate::{compact, compact_poison, maintain, plan, status, time_limit};

/// The real functions.
#[derive(Debug)]
pub struct App {
    environment: HandlerEnvironment,
    emitter: Emitter,
    /// None of a try that failed is kept: the next invocation tries again.
    services: OnceCell<HostServices>,
}

impl App {
    /// Functions of the app that the host described. Nothing is opened yet.
    pub fn new(environment: HandlerEnvironment, emitter: Emitter) -> Self {
        Self { environment, emitter, services: OnceCell::new() }
    }

    /// Opens the services now, before the first invocation needs them. A failure is logged: each invocation says it again.
    pub async fn warm_up(self: Arc<Self>) {
        if let Err(reason) = self.services().await {
            tracing::error!("not ready for work: {reason}");
        }
    }

    async fn services(&self) -> Result<&HostServices, String> {
        self.services.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<HostServices, String> {
        let limit = time_limit::run_limit(&self.environment.app_root, time_limit::setting())?;
        let path = self.environment.config_path()?;
        let config = read_config(path).await?;
        check_queue_names(&config, &self.environment.app_root)?;
        let opened = open_host(Arc::new(config), self.emitter.clone(), limit).await;
        let services = opened.map_err(|error| error.to_string())?;
        tracing::info!(
            datasets = services.config.datasets.len(),
            queue = services.queue.name(),
            limit_seconds = limit.as_ref().map(Duration::as_secs),
            "ready for work"
        );
        Ok(services)
    }
}

async fn read_config(path: std::path::PathBuf) -> Result<Config, String> {
    let read = tokio::task::spawn_blocking(move || Config::from_file(&path)).await;
    let config = read.map_err(|error| format!("the configuration was not read: {error}"))?;
    let config = config.map_err(|errors| errors.to_string())?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

#[async_trait]
impl Functions for App {
    async fn run(&self, function: Function, invocation: Invocation) -> Answer {
        let services = match self.services().await {
            Ok(services) => services,
            // A person asks: an answer that can be read, not a failed function.
            Err(reason) if function == Function::Status => return status::unavailable(&reason),
            Err(reason) => return Answer::fault(format!("not ready for work: {reason}")),
        };
        match function {
            Function::Plan => plan::run(services, &invocation).await,
            Function::Compact => compact::run(services, &invocation).await,
            Function::CompactPoison => compact_poison::run(services, &invocation).await,
            Function::ExpireSnapshots => maintain::expire(services, &invocation).await,
            Function::CleanOrphans => maintain::orphans(services, &invocation).await,
            Function::Status => status::run(services).await,
        }
    }
}
