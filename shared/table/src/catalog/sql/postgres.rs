//! The catalog's table in PostgreSQL.
//!
//! Few connections, none of them kept for long without work: instances of the app come and go, and the server's connections are
//! counted for all of them. Where the password is a token, each new connection asks for one that is good now.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firn_config::SslMode;
use firn_storage::TokenSource;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;

use super::database::{
    Database, PointerRow, SELECT_CATALOGS, SELECT_NAMES, SELECT_NAMESPACES, SELECT_ROW, SWAP, Swap, SwapFailure,
};
use super::said;
use super::{absent, check_name, denied, unavailable};
use crate::error::TableError;
use crate::ident::TableIdent;

/// Connections of one process. A worker needs one at a time, timers and the function `status` another.
const CONNECTIONS: u32 = 4;
/// How long a connection is waited for, be it a free one or a new one.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Shorter than the four minutes after which Azure's load balancers forget a silent connection.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// What the server is told of waiting: for another writer's lock, and for a statement as a whole. Both end as "not applied".
const SERVER_LIMITS: ServerLimits = ServerLimits { lock: "10s", statement: "30s" };
/// How long an answer is waited for: the server's own limits end every statement before.
const ANSWER_LIMIT: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Copy)]
struct ServerLimits {
    lock: &'static str,
    statement: &'static str,
}

/// A server with the catalog's table.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    pool: PgPool,
    options: PgConnectOptions,
    tokens: Option<Arc<TokenSource>>,
}

impl PostgresServer {
    /// Logs in once and looks for tables of the catalog `name`, or of none. `identity` is asked for tokens where the configuration
    /// says so.
    pub(crate) async fn open(
        server: &firn_config::Postgres,
        name: &str,
        identity: Option<&Arc<TokenSource>>,
    ) -> Result<Self, TableError> {
        Self::open_with(server, name, identity, SERVER_LIMITS).await
    }

    async fn open_with(
        server: &firn_config::Postgres,
        name: &str,
        identity: Option<&Arc<TokenSource>>,
        limits: ServerLimits,
    ) -> Result<Self, TableError> {
        let tokens = match (&server.token_scope, identity) {
            (None, _) => None,
            (Some(scope), Some(identity)) => Some(Arc::new(identity.for_scope(scope))),
            (Some(_), None) => return Err(absent(name, "auth: entra needs an identity in the storage section".into())),
        };
        let options = connect_options(server, limits);
        let place = server.shown();
        let first = with_token(&options, tokens.as_deref()).await.map_err(|error| unavailable(name, error))?;
        let known = limited(CONNECT_LIMIT, async {
            let mut connection = first.connect().await?;
            let known: Vec<String> = sqlx::query_scalar(SELECT_CATALOGS).fetch_all(&mut connection).await?;
            connection.close().await?;
            Ok(known)
        });
        let known = known.await.map_err(|error| not_opened(server, name, error))?;
        check_name(name, &place, &known)?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_LIMIT)
            .idle_timeout(IDLE_LIMIT)
            .max_lifetime(LIFETIME)
            .connect_lazy_with(options.clone());
        Ok(Self { pool, options, tokens })
    }

    async fn connection(&self) -> sqlx::Result<PoolConnection<sqlx::Postgres>> {
        if self.tokens.is_some() {
            // Only connections that are opened from now on are asked for their password.
            self.pool.set_connect_options(with_token(&self.options, self.tokens.as_deref()).await?);
        }
        self.pool.acquire().await
    }
}

/// The options with a password that is good now.
async fn with_token(options: &PgConnectOptions, tokens: Option<&TokenSource>) -> sqlx::Result<PgConnectOptions> {
    let Some(tokens) = tokens else { return Ok(options.clone()) };
    let token = tokens.token().await.map_err(|error| sqlx::Error::Configuration(error.into()))?;
    Ok(options.clone().password(token.secret()))
}

fn connect_options(server: &firn_config::Postgres, limits: ServerLimits) -> PgConnectOptions {
    let mut options = PgConnectOptions::new_without_pgpass()
        .port(server.port)
        .username(&server.user)
        .database(&server.database)
        .application_name("firn")
        .options([("lock_timeout", limits.lock), ("statement_timeout", limits.statement)])
        .ssl_mode(match server.ssl_mode {
            SslMode::Disable => PgSslMode::Disable,
            SslMode::Prefer => PgSslMode::Prefer,
            SslMode::Require => PgSslMode::Require,
            SslMode::VerifyCa => PgSslMode::VerifyCa,
            SslMode::VerifyFull => PgSslMode::VerifyFull,
        });
    options = match server.host.starts_with('/') {
        true => options.socket(&server.host),
        false => options.host(&server.host),
    };
    if let Some(password) = &server.password {
        options = options.password(password.expose());
    }
    if let Some(certificate) = &server.root_certificate {
        options = options.ssl_root_cert(certificate);
    }
    // Statements hold paths of the lake and no secrets, but they are no news either.
    options.disable_statement_logging()
}

/// What a server that could not be asked is to a person.
fn not_opened(server: &firn_config::Postgres, name: &str, error: sqlx::Error) -> TableError {
    let place = server.shown();
    let code = said::code_of(&error);
    match (&error, code.as_deref()) {
        (_, Some("28P01" | "28000")) => {
            let remedy = match server.token_scope {
                Some(_) => {
                    "create the identity as a user of the server (pgaadauth_create_principal) and write its name in catalog.uri"
                }
                None => "correct user and password in catalog.uri, or set PGPASSWORD",
            };
            denied(name, format!("PostgreSQL at {place}, user `{}`: {error}: {remedy}", server.user))
        }
        (_, Some("3D000")) => absent(name, format!("PostgreSQL at {place}: {error}: correct catalog.uri")),
        (_, Some("42P01")) => absent(
            name,
            format!(
                "PostgreSQL at {place} is not an Iceberg SQL catalog: {error}: the writer of the tables creates it"
            ),
        ),
        (_, Some("42501")) => {
            let remedy = format!("GRANT SELECT, UPDATE ON iceberg_tables TO \"{}\"", server.user);
            denied(name, format!("PostgreSQL at {place}: {error}: {remedy}"))
        }
        (sqlx::Error::Tls(_), _) => absent(
            name,
            format!(
                "PostgreSQL at {place}: {error}: trust its certificate with sslrootcert=/path/of/ca.pem in catalog.uri, or choose another \
                 sslmode than {}",
                server.ssl_mode.as_str()
            ),
        ),
        _ => TableError::CatalogUnavailable {
            catalog: name.to_owned(),
            source: format!("PostgreSQL at {place}: {error}").into(),
        },
    }
}

async fn limited<T>(limit: Duration, work: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(late(limit)))
}

fn late(limit: Duration) -> sqlx::Error {
    let detail = format!("no answer in {} s", limit.as_secs());
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, detail))
}

#[async_trait]
impl Database for PostgresServer {
    async fn row(&self, catalog: &str, ident: &TableIdent) -> sqlx::Result<Option<PointerRow>> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(SELECT_ROW).bind(catalog).bind(ident.namespace()).bind(ident.name());
        let row = match timeout(ANSWER_LIMIT, query.fetch_optional(&mut *connection)).await {
            Ok(row) => row?,
            Err(_) => return Err(given_up(connection)),
        };
        row.as_ref().map(PointerRow::of).transpose()
    }

    async fn namespaces(&self, catalog: &str) -> sqlx::Result<Vec<String>> {
        let mut connection = self.connection().await?;
        let query = sqlx::query_scalar(SELECT_NAMESPACES).bind(catalog);
        match timeout(ANSWER_LIMIT, query.fetch_all(&mut *connection)).await {
            Ok(names) => names,
            Err(_) => Err(given_up(connection)),
        }
    }

    async fn rows(&self, catalog: &str, namespace: &str) -> sqlx::Result<Vec<PointerRow>> {
        let mut connection = self.connection().await?;
        let query = sqlx::query(SELECT_NAMES).bind(catalog).bind(namespace);
        let rows = match timeout(ANSWER_LIMIT, query.fetch_all(&mut *connection)).await {
            Ok(rows) => rows?,
            Err(_) => return Err(given_up(connection)),
        };
        rows.iter().map(PointerRow::of).collect()
    }

    async fn swap(&self, catalog: &str, swap: &Swap<'_>) -> Result<u64, SwapFailure> {
        let mut connection = self.connection().await.map_err(SwapFailure::NotSent)?;
        let query = sqlx::query(SWAP).bind(swap.new).bind(swap.old);
        let query = query.bind(catalog).bind(swap.ident.namespace()).bind(swap.ident.name());
        match timeout(ANSWER_LIMIT, query.execute(&mut *connection)).await {
            Ok(Ok(done)) => Ok(done.rows_affected()),
            Ok(Err(error)) => Err(SwapFailure::Sent(said::postgres(&error), error)),
            Err(_) => Err(SwapFailure::Sent(said::Said::Unknown, given_up(connection))),
        }
    }
}

/// A connection that owes an answer is closed, never handed out again.
fn given_up(connection: PoolConnection<sqlx::Postgres>) -> sqlx::Error {
    drop(connection.detach());
    late(ANSWER_LIMIT)
}

#[cfg(test)]
mod tests;
