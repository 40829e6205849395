//! Reports of nats-servers about connections that they have closed (rule E8), from the system account. A user who may
//! do nothing but subscribe to [`SUBJECT`] suffices.

use std::path::{Path, PathBuf};

use async_nats::{Client, Event, Subscriber};
use futures::StreamExt;
use serde::Deserialize;

use super::access::Access;
use super::client::{addresses, pause_before};
use crate::nats::ConnectError;

/// The subject of the reports, of all accounts.
pub const SUBJECT: &str = "$SYS.ACCOUNT.*.DISCONNECT";

/// Why there are no reports.
#[derive(Debug, thiserror::Error)]
pub enum ReportsError {
    /// The file with the addresses could not be read.
    #[error("the file {path} of nats_system cannot be read")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The address has no user.
    #[error("the file {path} of nats_system names no user; write nats://USER:PASSWORD@HOST:PORT")]
    NoCredentials {
        /// The file.
        path: PathBuf,
    },
    /// What it holds is not an address, or cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The subscription failed.
    #[error("cannot subscribe to {SUBJECT}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

/// The name of a connection: the id of its nats-server, which changes with each start, and its number there.
pub(super) fn connection_name(server: &str, number: u64) -> String {
    format!("{server}:{number}")
}

/// A connection to the system account.
pub struct Reports {
    reports: Subscriber,
    /// Keeps the connection open.
    _client: Client,
}

impl Reports {
    /// Connects with the addresses and credentials in a file: `nats://USER:PASSWORD@HOST:PORT`, several separated by
    /// commas, and with the certificates of `access`. Does not wait for a server: it is tried until one answers.
    ///
    /// # Errors
    /// When the file cannot be read or holds no address.
    pub async fn listen(file: &Path, access: &Access) -> Result<Self, ReportsError> {
        let text = std::fs::read_to_string(file).map_err(|source| ReportsError::File {
            path: file.to_owned(),
            source,
        })?;
        let servers = addresses(text.trim())?;
        // All servers of a cluster have the same users.
        let credentials = servers
            .first()
            .and_then(|first| Some((first.username()?, first.password()?)));
        let (user, password) = credentials.ok_or_else(|| ReportsError::NoCredentials { path: file.to_owned() })?;
        let options = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
        let options = access
            .secured(options)
            .name("annals-director-reports")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(pause_before)
            .event_callback(|event| {
                if let Event::ServerError(_) | Event::ClientError(_) = event {
                    tracing::warn!(
                        %event,
                        "the nats-server's reports of closed connections are not available: processes that die are \
                         noticed by their silence; check the file of nats_system"
                    );
                }
                std::future::ready(())
            });
        let client = options
            .connect(&servers[..])
            .await
            .map_err(|source| ConnectError::Refused {
                url: file.display().to_string(),
                source,
            })?;
        Ok(Self {
            reports: client.subscribe(SUBJECT).await?,
            _client: client,
        })
    }

    /// The name of the next connection that was closed. Cancel-safe. Reports that cannot be read are skipped.
    pub async fn closed(&mut self) -> String {
        while let Some(message) = self.reports.next().await {
            match serde_json::from_slice::<Report>(&message.payload) {
                Ok(report) => return connection_name(&report.server.id, report.client.id),
                Err(error) => tracing::warn!(%error, "ignored a malformed report of a closed connection"),
            }
        }
        // The connection has ended for good.
        std::future::pending().await
    }
}

/// The used part of a report.
#[derive(Deserialize)]
struct Report {
    server: ReportedServer,
    client: ReportedClient,
}

#[derive(Deserialize)]
struct ReportedServer {
    id: String,
}

#[derive(Deserialize)]
struct ReportedClient {
    id: u64,
}
