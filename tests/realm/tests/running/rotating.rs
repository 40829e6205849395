//! The secrets of a deployed realm are replaced while people play, as `docs/deploying.md` says: certificates, a password,
//! and the authority that signs certificates.

use std::{fs, path::Path, sync::Arc, time::Duration};

use annals_host::{
    nats::{Address, Bus},
    world::compile,
};
use annals_realm::Folder;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::Command,
};
use tokio_rustls::TlsConnector;

use crate::{
    deployed::{Deployed, Servers, TIMEOUT},
    played::{are_built, permit, repository, run, within},
    playing::Playing,
    prometheus::Prometheus,
};

/// Bots that play.
const BOTS: usize = 4;

/// Events that they are shown between two steps.
const SHOWN: u64 = 60;

/// The alert about certificates that end.
const ALERT: &str = "AnnalsCertificateEnds";

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The script that makes the secrets, for those of the realm.
fn secrets_command(realm: &Deployed, task: &str, hosts: &[&str]) -> Command {
    let mut command = Command::new(repository().join("ops/nats/secrets.sh"));
    command.arg(task).arg(realm.servers.file("")).args(hosts);
    command
}

async fn secrets(realm: &Deployed, task: &str, hosts: &[&str]) {
    let (status, said) = run(&mut secrets_command(realm, task, hosts)).await;
    assert!(status.success(), "{task}: {said}");
}

/// The certificate that the nats-server shows.
async fn shown(servers: &Servers) -> CertificateDer<'static> {
    let address = servers.url().replace("tls://", "");
    let mut plain = BufReader::new(TcpStream::connect(&address).await.expect("it listens"));
    // It says what it is before it speaks TLS.
    let mut said = String::new();
    plain.read_line(&mut said).await.expect("a line");
    assert!(said.starts_with("INFO "), "{said}");
    let mut trusted = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(servers.file("services/ca.pem")).expect("a file") {
        trusted.add(authority.expect("a certificate")).expect("an authority");
    }
    let own = CertificateDer::pem_file_iter(servers.file("services/operator.pem")).expect("a file");
    let own = own.map(|certificate| certificate.expect("a certificate")).collect();
    let key = PrivateKeyDer::from_pem_file(servers.file("services/operator.key")).expect("a key");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_root_certificates(trusted)
        .with_client_auth_cert(own, key)
        .expect("key and certificate fit");
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, plain.into_inner());
    let connection = connecting.await.expect("its certificate is trusted");
    let (_, session) = connection.get_ref();
    let chain = session.peer_certificates().expect("it shows one");
    chain[0].clone().into_owned()
}

/// The server's certificate as it is in the file.
fn on_disk(servers: &Servers) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(servers.file("nats/tls/server.pem")).expect("a certificate")
}

/// Has the nats-server read its files again, and waits until it shows the certificate that is there.
async fn reload(realm: &Deployed) {
    realm.reload_server().await;
    within(TIMEOUT, "the server's certificate", async {
        while shown(&realm.servers).await != on_disk(&realm.servers) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Waits until as many cells are processes of the realm.
async fn wait_for_cells(realm: &Deployed, count: usize) {
    within(TIMEOUT, "a cell that joins", async {
        loop {
            let mut command = Command::new("annals");
            command.args(["realm", "processes"]).envs(realm.operator());
            let (_, said) = run(&mut command).await;
            if said.lines().filter(|line| line.contains(" cell ")).count() == count {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Waits until a connection is refused.
async fn until_refused(address: Address, what: &str) {
    within(TIMEOUT, &format!("{what} to be refused"), async {
        while Bus::connect(address.clone(), "test").await.is_ok() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Certificates that end soon, about which an alert fires.
async fn alerted(realm: &Deployed, folder: &Path) -> Option<Prometheus> {
    let targets = ["base-1", "cell-1", "cell-2"].map(|name| realm.http(name));
    let prometheus = Prometheus::start(&targets, folder).await?;
    let mut renewal = secrets_command(realm, "--renew", &["127.0.0.1"]);
    let (status, said) = run(renewal.env("CERTIFICATE_DAYS", "10")).await;
    assert!(status.success(), "{said}");
    prometheus.wait_for_alert(ALERT).await;
    Some(prometheus)
}

/// New certificates of the same authority: the server shows its own after a reload, and another process joins with one.
async fn renew(realm: &mut Deployed) {
    let former = shown(&realm.servers).await;
    secrets(realm, "--renew", &["127.0.0.1"]).await;
    assert_eq!(shown(&realm.servers).await, former, "the server has not read it yet");
    reload(realm).await;
    assert_ne!(shown(&realm.servers).await, former);
    realm.launch("cell-3");
    wait_for_cells(realm, 3).await;
}

/// Another password for cells: the server closes the connections of their processes, which read it and connect again.
async fn change_password(realm: &Deployed) {
    let credentials = realm.servers.file("services/cell.credentials");
    let former = realm.servers.file("former.credentials");
    fs::copy(&credentials, &former).expect("it is copied");
    let text = fs::read_to_string(&credentials).expect("it was made");
    let (_, password) = text.trim().split_once(':').expect("a user and a password");
    let next = "0123456789abcdef".repeat(4);
    let passwords = realm.servers.file("nats/passwords.conf");
    for file in [credentials, passwords] {
        let text = fs::read_to_string(&file).expect("it was made");
        assert!(text.contains(password), "{}", file.display());
        fs::write(&file, text.replace(password, &next)).expect("it is written");
    }
    realm.reload_server().await;
    let mut late = realm.servers.address("cell");
    late.access.credentials = Some(former);
    until_refused(late, "the former password").await;
    wait_for_cells(realm, 3).await;
}

/// The next authority: both are trusted, then it signs all certificates, then the former is trusted no more.
async fn change_authority(realm: &mut Deployed) {
    for kind in ["pem", "key"] {
        let of = |name: &str| realm.servers.file(&format!("{name}.{kind}"));
        fs::copy(of("services/operator"), of("former")).expect("it is copied");
    }
    let mut former = realm.servers.address("operator");
    if let Some(certificate) = &mut former.access.certificate {
        certificate.chain = realm.servers.file("former.pem");
        certificate.key = realm.servers.file("former.key");
    }
    secrets(realm, "--next-authority", &[]).await;
    reload(realm).await;
    let (status, said) = run(&mut secrets_command(realm, "--only-authority", &[])).await;
    assert!(!status.success() && said.contains("--renew first"), "{said}");
    secrets(realm, "--renew", &["127.0.0.1"]).await;
    reload(realm).await;
    // All processes connect again, with certificates of the next authority.
    realm.restart_server();
    wait_for_cells(realm, 3).await;
    let connected = Bus::connect(former.clone(), "test").await;
    assert!(
        connected.is_ok(),
        "the former authority is trusted still: {:?}",
        connected.err()
    );
    secrets(realm, "--only-authority", &[]).await;
    realm.reload_server().await;
    until_refused(former, "a certificate of the former authority").await;
    realm.restart_server();
    realm.launch("cell-4");
    wait_for_cells(realm, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_replaced_while_people_play() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let mut realm = Deployed::start().await;
    let schema = compile(&repository().join("defs")).expect("the sample compiles");
    let mut playing = Playing::start(realm.login, &schema, BOTS, &realm.scratch());
    let mut play_on = async |realm: &Deployed, what: &str| {
        let is_shown = playing.wait_until_shown(SHOWN, TIMEOUT).await;
        assert!(is_shown, "after {what}: {}", realm.log_of("base-1"));
    };
    play_on(&realm, "the start").await;
    let folder = Folder::create();
    let prometheus = alerted(&realm, folder.path()).await;
    renew(&mut realm).await;
    if let Some(prometheus) = prometheus {
        prometheus.wait_for_the_end_of(ALERT).await;
    }
    play_on(&realm, "the renewal of certificates").await;
    change_password(&realm).await;
    play_on(&realm, "the change of a password").await;
    change_authority(&mut realm).await;
    play_on(&realm, "the change of the authority").await;
    let report = playing.end().await;
    for bot in &report.bots {
        assert!(bot.resumed == 0 && bot.disconnected.is_empty(), "{bot:?}");
    }
}
