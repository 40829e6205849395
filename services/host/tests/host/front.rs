//! The front's addresses and certificates.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use annals_host::{
    config::CertificateFiles,
    edge::{Edge, Serves, WebOrigins},
    front::{Front, FrontError},
    telemetry::Chain,
    violations::Violations,
};
use annals_wire::client::PLAY_ALPN;
use quinn::crypto::rustls::QuicClientConfig;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, pki_types::CertificateDer};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// The name in the certificate.
const NAME: &str = "play.example.org";

fn front(directory: &Path) -> Front {
    Front {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        advertise: None,
        web_origins: None,
        certificate: None,
        directory: directory.to_owned(),
    }
}

/// Starts to serve players, and returns the description for other processes.
async fn serve(front: &Front) -> Result<(Edge, String), FrontError> {
    let (events, _) = mpsc::channel(16);
    front.open(Serves::Play).await?.serve(events, Violations::default())
}

/// The error message when clients cannot be served.
async fn complaint(front: &Front) -> String {
    Chain(&serve(front).await.unwrap_err()).to_string()
}

/// An authority, and files with a certificate that it signed.
fn signed(directory: &Path) -> (CertificateDer<'static>, CertificateFiles) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let files = CertificateFiles {
        chain: directory.join("play.pem"),
        key: directory.join("play.key"),
    };
    fs::write(&files.chain, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    (authority.der().clone(), files)
}

/// Connects as clients do that check certificates as usual.
async fn connect(to: SocketAddr, authority: CertificateDer<'static>, name: &str, alpn: &[u8]) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let connected = endpoint.connect_with(config, to, name).unwrap().await;
    connected.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_certificate_signed_by_an_authority_is_used() {
    let directory = TempDir::new().unwrap();
    let (authority, files) = signed(directory.path());
    let front = Front {
        certificate: Some(files),
        ..front(directory.path())
    };
    let (edge, announced) = serve(&front).await.unwrap();
    assert_eq!(announced, edge.address().to_string(), "no fingerprint is needed");
    assert_eq!(
        connect(edge.address(), authority.clone(), NAME, PLAY_ALPN).await,
        Ok(())
    );
    let refused = connect(edge.address(), authority.clone(), "other.example.org", PLAY_ALPN).await;
    assert!(refused.is_err(), "it is for one name");
    let refused = connect(edge.address(), authority.clone(), NAME, b"h3").await;
    assert!(refused.is_err(), "no page may connect");

    let front = Front {
        web_origins: Some(WebOrigins::Any),
        ..front
    };
    let (edge, _) = serve(&front).await.unwrap();
    for alpn in [PLAY_ALPN, b"h3"] {
        assert_eq!(connect(edge.address(), authority.clone(), NAME, alpn).await, Ok(()));
    }
    let files = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files, 2, "none is made beside it");
}

#[tokio::test]
async fn an_unusable_certificate_is_reported_with_advice() {
    let directory = TempDir::new().unwrap();
    let (_, files) = signed(directory.path());
    let with = |chain: &str, key: &str| Front {
        certificate: Some(CertificateFiles {
            chain: directory.path().join(chain),
            key: directory.path().join(key),
        }),
        ..front(directory.path())
    };
    let text = complaint(&with("missing.pem", "play.key")).await;
    assert!(text.contains("missing.pem cannot be read"), "{text}");
    let text = complaint(&with("play.key", "play.key")).await;
    assert!(text.contains("play.key holds no certificate in PEM form"), "{text}");
    let text = complaint(&with("play.pem", "play.pem")).await;
    assert!(text.contains("play.pem holds no private key in PEM form"), "{text}");
    fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let text = complaint(&with("play.pem", "play.key")).await;
    assert!(text.contains("check that the key belongs to it"), "{text}");
}

#[tokio::test]
async fn the_advertised_host_must_resolve() {
    let directory = TempDir::new().unwrap();
    let plain = front(directory.path());
    let (edge, announced) = serve(&plain).await.unwrap();
    let (address, fingerprint) = announced.split_once(' ').unwrap();
    assert_eq!((address, fingerprint.len()), (&*edge.address().to_string(), 64));

    let advertises = |name: &str| Front {
        advertise: Some(name.to_owned()),
        ..plain.clone()
    };
    let (_edge, announced) = serve(&advertises("192.0.2.7:7700")).await.unwrap();
    assert!(announced.starts_with("192.0.2.7:7700 "), "{announced}");
    let (edge, announced) = serve(&advertises("192.0.2.7:0")).await.unwrap();
    let port = edge.address().port();
    assert!(announced.starts_with(&format!("192.0.2.7:{port} ")), "{announced}");
    let text = complaint(&advertises("no..host:7700")).await;
    assert!(
        text.starts_with("advertise is no..host:7700, which has no address"),
        "{text}"
    );
}

#[tokio::test]
async fn a_base_that_listens_on_all_addresses_needs_an_advertised_one() {
    let directory = TempDir::new().unwrap();
    let everywhere = Front {
        listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
        ..front(directory.path())
    };
    let text = complaint(&everywhere).await;
    assert!(
        text.contains("listen is 0.0.0.0:0") && text.contains("set advertise"),
        "{text}"
    );
    // Clients know the login address.
    assert!(everywhere.open(Serves::Login).await.is_ok());
}
