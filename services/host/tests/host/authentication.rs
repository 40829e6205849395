//! Tokens of an identity provider: which are accepted, and by which keys.

use std::{fs, path::Path};

use annals_host::{
    authentication::{AuthenticationError, Authenticator, Tokens},
    config::Authentication,
};
use annals_wire::client::Token;
use base64ct::{Base64UrlUnpadded, Encoding};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A moment in the year 2100, and one in 2001, in seconds.
const LATER: u64 = 4_102_444_800;
const BEFORE: u64 = 1_000_000_000;

/// A provider's key of one kind.
enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    fn p256() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random);
        Self::P256(key.unwrap())
    }

    fn ed25519() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": encoded(x), "y": encoded(y) })
            }
            Self::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(key.public_key().as_ref()) })
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> Token {
        let message = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::P256(key) => key
                .sign(&SystemRandom::new(), message.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed25519(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
        };
        Token(format!("{message}.{}", encoded(&signature)))
    }
}

fn encoded(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

fn part(value: &Value) -> String {
    encoded(value.to_string().as_bytes())
}

fn claims() -> Value {
    json!({ "iss": "https://id.example.org/", "aud": "aldmoor", "sub": "ann", "exp": LATER })
}

/// The claims with one changed; without it if it is null.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

/// Replaces the file of keys, as a program that fetches them does.
fn put_keys(folder: &Path, keys: &Value) {
    fs::write(folder.join("next"), json!({ "keys": keys }).to_string()).unwrap();
    fs::rename(folder.join("next"), folder.join("keys.json")).unwrap();
}

fn rules(folder: &Path, algorithms: &str) -> Authentication {
    let text = format!(
        "keys = {:?}\nissuer = \"https://id.example.org/\"\naudience = \"aldmoor\"\nalgorithms = {algorithms}\n",
        folder.join("keys.json")
    );
    let path = folder.join("tokens.toml");
    fs::write(&path, text).unwrap();
    Authentication::Tokens(path)
}

/// Tokens of these algorithms, by these keys.
fn tokens(algorithms: &str, keys: &Value) -> (TempDir, Tokens) {
    let folder = tempfile::tempdir().unwrap();
    put_keys(folder.path(), keys);
    match Authenticator::open(&rules(folder.path(), algorithms)) {
        Ok(Authenticator::Tokens(tokens)) => (folder, tokens),
        Ok(_) => panic!("the setting names tokens"),
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
}

#[test]
fn a_valid_token_names_its_account() {
    let (one, other) = (Signer::p256(), Signer::ed25519());
    let (_folder, tokens) = tokens("[\"ES256\", \"EdDSA\"]", &json!([one.jwk("1"), other.jwk("2")]));
    let header = json!({ "alg": "ES256", "kid": "1" });
    assert_eq!(tokens.verify(&one.sign(&header, &claims())).unwrap(), "ann");
    let several = with("aud", json!(["elsewhere", "aldmoor"]));
    assert_eq!(tokens.verify(&one.sign(&header, &several)).unwrap(), "ann");
    let header = json!({ "alg": "EdDSA", "kid": "2" });
    assert_eq!(tokens.verify(&other.sign(&header, &claims())).unwrap(), "ann");
    // Without an id, the only key of the kind is meant.
    assert_eq!(
        tokens
            .verify(&other.sign(&json!({ "alg": "EdDSA" }), &claims()))
            .unwrap(),
        "ann"
    );
}

#[test]
fn signatures_by_rsa_are_checked() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data/tokens");
    let keys: Value = serde_json::from_slice(&fs::read(data.join("rsa.json")).unwrap()).unwrap();
    let text = fs::read_to_string(data.join("rsa.txt")).unwrap();
    let mut checked = 0;
    for line in text.lines() {
        let (algorithm, token) = line.split_once(' ').unwrap();
        let (_folder, tokens) = tokens(&format!("[{algorithm:?}]"), &keys["keys"]);
        assert_eq!(tokens.verify(&Token(token.to_owned())).unwrap(), "ann", "{algorithm}");
        let others = text.lines().filter(|other| *other != line);
        for other in others {
            let (_, token) = other.split_once(' ').unwrap();
            assert!(
                tokens.verify(&Token(token.to_owned())).is_err(),
                "only {algorithm} is allowed"
            );
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn invalid_tokens_are_refused() {
    let (signer, stranger) = (Signer::p256(), Signer::p256());
    let (_folder, tokens) = tokens("[\"ES256\"]", &json!([signer.jwk("1")]));
    let header = json!({ "alg": "ES256", "kid": "1" });
    for (what, claims) in [
        ("expired", with("exp", json!(BEFORE))),
        ("without an end", with("exp", Value::Null)),
        ("not valid yet", with("nbf", json!(LATER))),
        ("of another issuer", with("iss", json!("https://id.example.com/"))),
        ("without an issuer", with("iss", Value::Null)),
        ("for another audience", with("aud", json!("elsewhere"))),
        ("without an audience", with("aud", Value::Null)),
        ("without a name", with("sub", Value::Null)),
        ("with an empty name", with("sub", json!(""))),
        ("with a number as its name", with("sub", json!(7))),
        ("with a name that is too long", with("sub", json!("a".repeat(256)))),
    ] {
        assert!(tokens.verify(&signer.sign(&header, &claims)).is_err(), "{what}");
    }
    let good = signer.sign(&header, &claims());
    let (message, signature) = good.0.rsplit_once('.').unwrap();
    let other = format!("{}.{}.{signature}", part(&header), part(&with("sub", json!("eve"))));
    let unsigned = format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims()));
    for (what, token) in [
        ("nothing", String::new()),
        ("three dots", "...".to_owned()),
        ("without its signature", message.to_owned()),
        ("with other claims", other),
        ("unsigned", unsigned),
        ("by another key", stranger.sign(&header, &claims()).0),
        (
            "by an unknown key",
            signer.sign(&json!({ "alg": "ES256", "kid": "9" }), &claims()).0,
        ),
        (
            "by another algorithm",
            signer.sign(&json!({ "alg": "ES384", "kid": "1" }), &claims()).0,
        ),
        (
            "with a public key as a secret",
            signer.sign(&json!({ "alg": "HS256", "kid": "1" }), &claims()).0,
        ),
    ] {
        assert!(tokens.verify(&Token(token)).is_err(), "{what}");
    }
    assert_eq!(tokens.verify(&good).unwrap(), "ann");
}

#[test]
fn a_token_without_an_id_needs_one_possible_key() {
    let (one, other) = (Signer::p256(), Signer::p256());
    let (_folder, tokens) = tokens("[\"ES256\"]", &json!([one.jwk("1"), other.jwk("2")]));
    assert!(tokens.verify(&one.sign(&json!({ "alg": "ES256" }), &claims())).is_err());
}

#[test]
fn changed_keys_are_read_and_damaged_ones_ignored() {
    let (before, after) = (Signer::p256(), Signer::p256());
    let (folder, tokens) = tokens("[\"ES256\"]", &json!([before.jwk("1")]));
    let header = |id: &str| json!({ "alg": "ES256", "kid": id });
    let (old, new) = (
        before.sign(&header("1"), &claims()),
        after.sign(&header("2"), &claims()),
    );
    assert!(tokens.verify(&new).is_err());
    put_keys(folder.path(), &json!([before.jwk("1"), after.jwk("2")]));
    assert!(tokens.verify(&new).is_ok() && tokens.verify(&old).is_ok());
    fs::write(folder.path().join("keys.json"), "{ \"keys\": [").unwrap();
    assert!(tokens.verify(&new).is_ok(), "the former keys stay in use");
    put_keys(folder.path(), &json!([after.jwk("2")]));
    assert!(tokens.verify(&new).is_ok() && tokens.verify(&old).is_err());
    fs::remove_file(folder.path().join("keys.json")).unwrap();
    assert!(tokens.verify(&new).is_ok());
}

#[test]
fn keys_that_cannot_be_used_are_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let open = |algorithms: &str| match Authenticator::open(&rules(folder.path(), algorithms)) {
        Ok(_) => panic!("{algorithms}: it starts"),
        Err(AuthenticationError::Keys(error)) => error.to_string(),
        Err(other) => other.to_string(),
    };
    assert!(open("[\"ES256\"]").contains("cannot be read"));
    put_keys(folder.path(), &json!([Signer::ed25519().jwk("1")]));
    assert!(open("[\"ES256\"]").contains("no key for the algorithms"));
    let secret = json!([{ "kty": "oct", "kid": "1", "k": encoded(b"a secret that both sides know") }]);
    put_keys(folder.path(), &secret);
    assert!(open("[\"ES256\"]").contains("no key for the algorithms"));
    fs::write(folder.path().join("keys.json"), "[]").unwrap();
    assert!(open("[\"ES256\"]").contains("is not a JWK set"));
    assert!(open("[\"HS256\"]").contains("HS256 has no public key"));
}
