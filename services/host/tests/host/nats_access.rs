//! Files by which a process is admitted to nats-servers: what is wrong with each is found at the start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use annals_host::child::{self, Child};
use annals_host::config::CertificateFiles;
use annals_host::nats::{Access, Address, Bus, ConnectError, find_binary};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A certificate that is valid in these years, with its key.
    fn certificate(&self, name: &str, (from, until): (i32, i32)) -> CertificateFiles {
        let mut parameters = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
        parameters.not_before = date_time_ymd(from, 1, 1);
        parameters.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        CertificateFiles {
            chain: self.write(&format!("{name}.pem"), &certificate.pem(), 0o644),
            key: self.write(&format!("{name}.key"), &key.serialize_pem(), 0o600),
        }
    }
}

fn problems(access: &Access) -> String {
    access.check().unwrap_err().to_string()
}

fn with_credentials(path: &Path) -> Access {
    Access {
        credentials: Some(path.to_owned()),
        ..Access::default()
    }
}

#[test]
fn good_files_are_accepted() {
    let files = Files(tempfile::tempdir().unwrap());
    let certificate = files.certificate("good", (2020, 2100));
    let access = Access {
        credentials: Some(files.write("credentials", "cell:a password: with a colon\n", 0o640)),
        authority: Some(certificate.chain.clone()),
        certificate: Some(certificate),
    };
    access.check().unwrap();
    Access::default().check().expect("no file is needed");
}

#[test]
fn credentials_must_be_secret_and_well_formed() {
    let files = Files(tempfile::tempdir().unwrap());
    let open = problems(&with_credentials(&files.write("open", "cell:secret", 0o604)));
    assert!(open.contains("(mode 604)") && open.contains("chmod 600"), "{open}");
    for (number, text) in ["", "cell", "cell:", ":secret", "a.b:secret", "*:secret"]
        .iter()
        .enumerate()
    {
        let said = problems(&with_credentials(&files.write(&number.to_string(), text, 0o600)));
        assert!(said.contains("USER:PASSWORD"), "{text}: {said}");
        assert!(!said.contains("secret"), "the file's content is not shown: {said}");
    }
    let missing = problems(&with_credentials(Path::new("/nowhere/credentials")));
    assert!(
        missing.contains("nats_credentials: /nowhere/credentials cannot be read"),
        "{missing}"
    );
}

#[test]
fn certificates_must_be_valid_now_and_have_their_own_key() {
    let files = Files(tempfile::tempdir().unwrap());
    let of = |certificate: CertificateFiles| {
        problems(&Access {
            certificate: Some(certificate),
            ..Access::default()
        })
    };
    let expired = of(files.certificate("expired", (2000, 2001)));
    assert!(
        expired.contains("nats_certificate: the certificate in") && expired.contains("expired on"),
        "{expired}"
    );
    let early = of(files.certificate("early", (2100, 2101)));
    assert!(early.contains("check the clock of this machine"), "{early}");

    let (one, other) = (
        files.certificate("one", (2020, 2100)),
        files.certificate("other", (2020, 2100)),
    );
    let mixed = of(CertificateFiles {
        chain: one.chain.clone(),
        key: other.key,
    });
    assert!(mixed.contains("is not the key of the certificate in"), "{mixed}");
    let swapped = of(CertificateFiles {
        chain: one.key.clone(),
        key: one.key,
    });
    assert!(swapped.contains("holds no certificate in PEM form"), "{swapped}");
}

#[test]
fn an_authority_may_have_a_successor_beside_it() {
    let files = Files(tempfile::tempdir().unwrap());
    let read = |certificate: CertificateFiles| fs::read_to_string(certificate.chain).unwrap();
    let former = read(files.certificate("former", (2000, 2001)));
    let next = read(files.certificate("next", (2020, 2100)));
    let authority = |text: &str| Access {
        authority: Some(files.write("ca.pem", text, 0o644)),
        ..Access::default()
    };
    authority(&(former.clone() + &next)).check().unwrap();
    let said = problems(&authority(&former));
    assert!(said.contains("nats_ca") && said.contains("expired on"), "{said}");
}

#[tokio::test]
async fn all_problems_are_reported_before_a_connection_is_tried() {
    let files = Files(tempfile::tempdir().unwrap());
    let access = Access {
        credentials: Some(files.write("credentials", "cell:secret", 0o644)),
        authority: Some(files.0.path().join("ca.pem")),
        certificate: Some(files.certificate("expired", (2000, 2001))),
    };
    let url = "tls://127.0.0.1:1".to_owned();
    let error = Bus::connect(Address { url, access }, "test").await.unwrap_err();
    assert!(matches!(error, ConnectError::Access(_)), "{error}");
    let said = error.to_string();
    for setting in ["nats_credentials: ", "nats_ca: ", "nats_certificate: "] {
        assert!(said.contains(setting), "{said}");
    }
}

/// A nats-server that shows this certificate; it listens on a port that the system chooses.
async fn tls_server(files: &Files, certificate: &CertificateFiles) -> (Child, String) {
    let configuration = format!(
        "listen: \"127.0.0.1:-1\"\nports_file_dir: \"{}\"\nmax_payload: 8388608\njetstream {{ store_dir: \"{}\" }}\n\
         tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n",
        files.0.path().display(),
        files.0.path().join("store").display(),
        certificate.chain.display(),
        certificate.key.display()
    );
    let path = files.write("server.conf", &configuration, 0o600);
    let mut command = child::command(find_binary().expect("`make setup` has installed it"));
    command.arg("--config").arg(path).stderr(Stdio::null());
    let server = Child::spawn(command).expect("it starts");
    let is_ports = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "ports");
    let address = async {
        loop {
            let mut found = fs::read_dir(files.0.path()).unwrap().map(|entry| entry.unwrap().path());
            let text = found.find(is_ports).map(fs::read_to_string);
            let text = text.and_then(Result::ok).unwrap_or_default();
            let listed: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            let first = listed.and_then(|listed| Some(listed["nats"][0].as_str()?.to_owned()));
            match first {
                Some(url) => return url.replace("nats://", "tls://"),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let address = tokio::time::timeout(Duration::from_secs(60), address).await;
    (server, address.expect("it lists its ports"))
}

#[tokio::test]
async fn an_expired_certificate_of_the_server_is_named() {
    for (name, years, says) in [
        (
            "expired",
            (2000, 2001),
            Some("the server's certificate has expired: renew it there"),
        ),
        ("valid", (2020, 2100), None),
    ] {
        let files = Files(tempfile::tempdir().unwrap());
        let certificate = files.certificate(name, years);
        // Its own authority: another one that is valid stands beside it, so that the file passes the check.
        let authority = fs::read_to_string(&certificate.chain).unwrap()
            + &fs::read_to_string(files.certificate("other", (2020, 2100)).chain).unwrap();
        let access = Access {
            authority: Some(files.write("ca.pem", &authority, 0o644)),
            ..Access::default()
        };
        let (_server, url) = tls_server(&files, &certificate).await;
        match (Bus::connect(Address { url, access }, "test").await, says) {
            (Err(error), Some(says)) => {
                let said = error.to_string();
                assert!(said.contains(says) && said.contains("SIGHUP"), "{said}");
            }
            (Ok(_), None) => {}
            (connected, _) => panic!("{name}: {:?}", connected.map(drop)),
        }
    }
}
