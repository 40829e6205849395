//! The front of a service, where clients connect: its settings, and the edge that is started from them.

use std::{io, net::SocketAddr, path::PathBuf};

use annals_ids::Hash;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::{
    config::{CertificateFiles, Config},
    edge::{Edge, EdgeError, EdgeEvent, Identity, IdentityError, Serves, WebOrigins, bind, bind_with_web},
    violations::Violations,
};

/// Where and how clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Address to listen on; with port 0 the system chooses.
    pub listen: SocketAddr,
    /// Address that clients are given to connect to, `HOST:PORT`, if it is not the listen address; port 0 is the port
    /// that we listen on.
    pub advertise: Option<String>,
    /// A certificate signed by an authority. Without it, a development certificate is shown.
    pub certificate: Option<CertificateFiles>,
    /// The web pages that may connect; without it, neither WebTransport nor WebSockets are accepted.
    pub web_origins: Option<WebOrigins>,
    /// Where the service keeps files, a development certificate among them.
    pub directory: PathBuf,
}

/// Why clients cannot be served.
#[derive(Debug, Error)]
pub enum FrontError {
    /// There is no certificate.
    #[error("there is no certificate to show to clients")]
    Identity(#[from] IdentityError),
    /// The advertised host has no address.
    #[error("advertise is {advertised}, which has no address; name a host that clients can look up, or an address")]
    NoAddress {
        /// The advertised address.
        advertised: String,
        /// The error of the look-up.
        #[source]
        source: Option<io::Error>,
    },
    /// The address that clients would be sent is unspecified.
    #[error(
        "listen is {0}, every address of this machine, which clients cannot connect to; set advertise to the one that they are to use"
    )]
    Unadvertised(SocketAddr),
    /// The edge cannot start.
    #[error(transparent)]
    Edge(#[from] EdgeError),
}

/// A front whose certificate and addresses were checked, and that does not serve clients yet.
#[derive(Debug)]
pub struct Door {
    listen: SocketAddr,
    web_origins: Option<WebOrigins>,
    advertised: Option<SocketAddr>,
    identity: Identity,
    serves: Serves,
}

impl Front {
    /// The front as configured.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            listen: config.listen,
            advertise: config.advertise.clone(),
            certificate: config.certificate.clone(),
            web_origins: config.web_origins.clone(),
            directory: config.data.clone(),
        }
    }

    /// Resolves everything that serving clients needs.
    ///
    /// # Errors
    /// When a certificate cannot be read, or there is no address that clients could be sent.
    pub async fn open(&self, serves: Serves) -> Result<Door, FrontError> {
        let identity = match &self.certificate {
            Some(files) => Identity::signed(&files.chain, &files.key)?,
            None => Identity::development(&self.directory)?,
        };
        let advertised = match &self.advertise {
            Some(name) => Some(look_up(name).await?),
            // Clients know the login address; the address for play is sent to them.
            None if serves == Serves::Play && self.listen.ip().is_unspecified() => {
                return Err(FrontError::Unadvertised(self.listen));
            }
            None => None,
        };
        Ok(Door {
            listen: self.listen,
            web_origins: self.web_origins.clone(),
            advertised,
            identity,
            serves,
        })
    }
}

impl Door {
    /// Starts to serve clients, and counts what they violate. Returns the edge, and its description for other processes: its address, and the
    /// fingerprint of a certificate that no authority signed.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the key does not belong to the certificate.
    pub fn serve(self, events: mpsc::Sender<EdgeEvent>, violations: Violations) -> Result<(Edge, String), FrontError> {
        let sockets = match self.web_origins {
            Some(origins) => bind_with_web(self.listen, origins)?,
            None => bind(self.listen)?,
        };
        let edge = Edge::start(sockets, &self.identity, (self.serves, violations), events)?;
        let address = match self.advertised {
            Some(advertised) if advertised.port() == 0 => SocketAddr::new(advertised.ip(), edge.address().port()),
            Some(advertised) => advertised,
            None => edge.address(),
        };
        Ok((edge, describe(address, self.identity.pinned())))
    }
}

/// `ADDRESS FINGERPRINT`, or `ADDRESS` alone.
fn describe(address: SocketAddr, fingerprint: Option<Hash>) -> String {
    match fingerprint {
        Some(fingerprint) => format!("{address} {fingerprint}"),
        None => address.to_string(),
    }
}

/// The present address of a host.
async fn look_up(name: &str) -> Result<SocketAddr, FrontError> {
    let without = |source| FrontError::NoAddress {
        advertised: name.to_owned(),
        source,
    };
    let mut found = tokio::net::lookup_host(name)
        .await
        .map_err(|error| without(Some(error)))?;
    found.next().ok_or_else(|| without(None))
}
