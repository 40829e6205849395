//! How players are authenticated and how accounts come into being, by real processes: login processes with other settings
//! than that of the realm.

use std::{fs, path::Path};

use annals_client::{Client, Config, Credentials, EndReason, Event, Password, Token, Trust, client_endpoint};
use annals_host::nats::ServerCount;
use annals_login::GUESSES;
use annals_realm::Folder;
use annals_wire::client::{LOGIN_ALPN, LoginAnswer, LoginRefusal, LoginRequest, protocol_hash};
use base64ct::{Base64UrlUnpadded, Encoding};
use futures::StreamExt;
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    operators::Operator,
    played::{Played, are_built, until_event},
    strangers::{Stranger, framed},
    visits::{LoginAddress, OtherLogin},
};

const SUBJECT: &str = "accounts.check";
const REASON: [&str; 4] = ["--by", "Grace Hopper", "--reason", "case 12: a tester"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_are_authenticated_as_the_realm_says() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let folder = Folder::create();
    by_a_service(&realm).await;
    by_tokens(&realm, folder.path()).await;
    by_registration(&realm).await;
    by_operators_only(&realm, folder.path()).await;
    guesses_are_counted_together(&realm).await;
    realm.assert_playing("log-ins of all kinds").await;
    realm.stop_and_verify().await;
}

/// What becomes of a log-in.
async fn log_in(
    realm: &Played,
    (login, certificate): LoginAddress,
    credentials: Credentials,
) -> Result<Client, EndReason> {
    let config = Config {
        login,
        trust: Trust::Pinned(certificate),
        credentials,
        schema: realm.schema.clone(),
        seed: 7,
        reads: annals_client::Reads::Predicted,
    };
    let mut client = Client::start(client_endpoint(login).expect("a socket"), config);
    let is_known = |event: &Event| matches!(event, Event::Connected { .. } | Event::Ended(_));
    match until_event(&mut client, "a log-in or its refusal", is_known).await {
        Event::Ended(reason) => Err(reason),
        _ => Ok(client),
    }
}

/// Whether there is an account of this name.
async fn is_stored(realm: &Played, name: &str) -> bool {
    let (_, _, store) = realm.bus();
    let account = annals_db::accounts::named(&store, name).await;
    account.expect("the store answers").is_some()
}

async fn plays(realm: &Played, door: LoginAddress, credentials: Credentials) {
    let client = log_in(realm, door, credentials).await;
    let mut client = client.unwrap_or_else(|reason| panic!("it is refused: {reason}"));
    client.leave();
    while client.next().await.is_some() {}
}

async fn is_refused(realm: &Played, door: LoginAddress, credentials: Credentials, refusal: LoginRefusal) {
    let reason = log_in(realm, door, credentials).await.err();
    assert_eq!(reason, Some(EndReason::LoginRefused(refusal)));
}

/// Answers login's questions: first that it is unavailable, then something that is no answer, then the truth.
async fn service(realm: &Played) -> JoinHandle<()> {
    let (bus, ..) = realm.bus();
    let mut questions = bus.client().subscribe(SUBJECT).await.expect("it subscribes");
    tokio::spawn(async move {
        let client = bus.client();
        let mut asked = 0;
        while let Some(question) = questions.next().await {
            let known: Value = serde_json::from_slice(&question.payload).expect("a question");
            assert_eq!(known["version"], 1);
            asked += 1;
            let answer = match asked {
                1 => json!({ "outcome": "unavailable" }),
                2 => json!("perhaps"),
                3 => json!({ "outcome": "accepted", "account": "a".repeat(5_000) }),
                _ if known["password"] != "the password" => json!({ "outcome": "refused" }),
                _ if known["name"] == "mallory" => json!({ "outcome": "banned", "reason": "case 9" }),
                _ => {
                    let name = known["name"].as_str().expect("a name");
                    json!({ "outcome": "accepted", "account": format!("platform/{name}") })
                }
            };
            let reply = question.reply.expect("it is to be answered");
            let answer = answer.to_string().into();
            client.publish(reply, answer).await.expect("it is connected");
        }
    })
}

async fn by_a_service(realm: &Played) {
    let service = service(realm).await;
    let other = OtherLogin::start(realm, &["--authentication", &format!("service:{SUBJECT}")]).await;
    // The client tries again until there is an answer.
    plays(realm, other.address, Credentials::password("ann", "the password")).await;
    assert!(is_stored(realm, "platform/ann").await && !is_stored(realm, "ann").await);
    let wrong = Credentials::password("ann", "a guess");
    is_refused(realm, other.address, wrong, LoginRefusal::WrongPassword).await;
    let banned = log_in(realm, other.address, Credentials::password("mallory", "the password")).await;
    assert_eq!(banned.err(), Some(EndReason::Banned));
    let token = Credentials::Token(Token("a.b.c".to_owned()));
    is_refused(realm, other.address, token, LoginRefusal::OtherCredentials).await;
    // The realm's own login does not know a password of that account.
    let own = Credentials::password("platform/ann", "the password");
    is_refused(realm, realm.realm.login, own, LoginRefusal::WrongPassword).await;
    service.abort();
}

/// A token for this name.
fn token(key: &Ed25519KeyPair, name: &str) -> Credentials {
    let encoded = |bytes: &[u8]| Base64UrlUnpadded::encode_string(bytes);
    let header = json!({ "alg": "EdDSA", "kid": "1" });
    let claims = json!({ "iss": "https://id.example.org/", "aud": "played", "sub": name, "exp": 4_102_444_800_u64 });
    let message = [header, claims]
        .map(|part| encoded(part.to_string().as_bytes()))
        .join(".");
    let signature = encoded(key.sign(message.as_bytes()).as_ref());
    Credentials::Token(Token(format!("{message}.{signature}")))
}

async fn by_tokens(realm: &Played, folder: &Path) {
    let key = || {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("a key")
    };
    let (former, next) = (key(), key());
    let keys = folder.join("keys.json");
    let put_keys = |key: &Ed25519KeyPair| {
        let x = Base64UrlUnpadded::encode_string(key.public_key().as_ref());
        let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "1", "x": x }] });
        fs::write(folder.join("next"), set.to_string()).expect("it is written");
        fs::rename(folder.join("next"), &keys).expect("it is replaced");
    };
    put_keys(&former);
    let rules = folder.join("tokens.toml");
    let text = format!(
        "keys = {keys:?}\nissuer = \"https://id.example.org/\"\naudience = \"played\"\nalgorithms = [\"EdDSA\"]\n"
    );
    fs::write(&rules, text).expect("it is written");
    let other = OtherLogin::start(realm, &["--authentication", &format!("tokens:{}", rules.display())]).await;
    plays(realm, other.address, token(&former, "tom")).await;
    assert!(is_stored(realm, "tom").await);
    is_refused(realm, other.address, token(&next, "tom"), LoginRefusal::WrongToken).await;
    put_keys(&next);
    plays(realm, other.address, token(&next, "tom")).await;
    is_refused(realm, other.address, token(&former, "tom"), LoginRefusal::WrongToken).await;
    let password = Credentials::password("tom", "the password");
    is_refused(realm, other.address, password, LoginRefusal::OtherCredentials).await;
}

/// The answer to a log-in with a wrong password.
async fn guess(at: &OtherLogin) -> LoginAnswer {
    let request = LoginRequest::LogIn {
        protocol: protocol_hash(),
        credentials: Credentials::password("gus", "a guess"),
    };
    let mut body = Vec::new();
    request.write(&mut body);
    let mut stranger = Stranger::sending(at.address.0, at.folder.path(), LOGIN_ALPN, &framed(&body)).await;
    LoginAnswer::read(&stranger.next().await).expect("an answer")
}

/// Guesses until no more are admitted. Returns how many were.
async fn guess_until_throttled(at: &OtherLogin) -> u32 {
    for guesses in 0.. {
        match guess(at).await {
            LoginAnswer::Refused(LoginRefusal::WrongPassword) => {}
            LoginAnswer::Refused(LoginRefusal::Throttled) => return guesses,
            other => panic!("{other:?}"),
        }
    }
    unreachable!("guesses are limited")
}

/// What is guessed at one login process counts at the others, and at one that starts later.
async fn guesses_are_counted_together(realm: &Played) {
    plays(realm, realm.realm.login, Credentials::password("gus", "the password")).await;
    let (one, other) = (OtherLogin::start(realm, &[]).await, OtherLogin::start(realm, &[]).await);
    let all = guess_until_throttled(&one).await;
    assert!(all >= GUESSES, "{all}");
    let left = guess_until_throttled(&other).await;
    assert!(left < GUESSES, "{left} more were admitted elsewhere");
    let new = OtherLogin::start(realm, &[]).await;
    let left = guess_until_throttled(&new).await;
    assert!(
        left < GUESSES,
        "{left} more were admitted by a process that has just started"
    );
}

fn registration(name: &str, password: &str) -> Credentials {
    Credentials::Registration {
        name: name.to_owned(),
        password: Password(password.to_owned()),
    }
}

async fn by_registration(realm: &Played) {
    let other = OtherLogin::start(realm, &["--account-creation", "registration"]).await;
    let door = other.address;
    let known = Credentials::password("rose", "the password");
    is_refused(realm, door, known.clone(), LoginRefusal::WrongPassword).await;
    assert!(!is_stored(realm, "rose").await);
    plays(realm, door, registration("rose", "the password")).await;
    plays(realm, door, known).await;
    // Repeated by the same player it is a log-in; by another one, the name is taken.
    plays(realm, door, registration("rose", "the password")).await;
    is_refused(realm, door, registration("rose", "another"), LoginRefusal::NameTaken).await;
    is_refused(
        realm,
        door,
        registration("stored:7", "the password"),
        LoginRefusal::UnfitName,
    )
    .await;
}

async fn by_operators_only(realm: &Played, folder: &Path) {
    let other = OtherLogin::start(realm, &["--account-creation", "closed"]).await;
    let door = other.address;
    let credentials = Credentials::password("olaf", "his password");
    is_refused(realm, door, credentials.clone(), LoginRefusal::WrongPassword).await;
    let registers = registration("olaf", "his password");
    is_refused(realm, door, registers, LoginRefusal::NoRegistration).await;
    let operator = Operator {
        folder,
        nats: realm.realm.nats(),
    };
    fs::write(folder.join("password"), "his password\n").expect("it is written");
    let create = ["realm", "account", "create", "olaf", "--password-file", "password"];
    let create = [&create[..], &REASON].concat();
    let created = operator.object(0, &create).await;
    plays(realm, door, credentials).await;
    let again = operator.run_expecting(2, &create).await;
    assert!(again.contains("there is an account of this name already"), "{again}");
    let listed = operator.object(0, &["realm", "bans", "olaf", "--all"]).await;
    let record = &listed["bans"][0];
    assert_eq!(
        (&record["decision"], &record["stored"], &record["by"]),
        (&json!("created"), &created["stored"], &json!("Grace Hopper"))
    );
}
