//! Tokens and registrations.

use annals_login::{GUESSES, Host, Input, MAX_PER_NAME, Output, REGISTRATION_EVERY, REGISTRATIONS, Verdict, Wrong};
use annals_node::ConnectionId;
use annals_wire::client::{Credentials, LoginRefusal, LoginRequest, Password, Token, protocol_hash};

use crate::{Bench, HERE, HOST, ask_of, checkout, good, hash_of, placed, refused, ticket};

fn register_from(host: Host, connection: u64, name: &str) -> Input {
    let credentials = Credentials::Registration {
        name: name.to_owned(),
        password: Password("secret".to_owned()),
    };
    request_from(host, connection, credentials)
}

fn request_from(host: Host, connection: u64, credentials: Credentials) -> Input {
    let name = credentials.name().map(hash_of);
    Input::Request {
        connection: ConnectionId(connection),
        host,
        name,
        request: LoginRequest::LogIn {
            protocol: protocol_hash(),
            credentials,
        },
        ticket: ticket(connection),
    }
}

#[test]
fn a_token_names_the_account() {
    let mut bench = Bench::new();
    let token = Credentials::Token(Token("a.b.c".to_owned()));
    // Clients with tokens are not taken for attempts at one name.
    for connection in 2..2 + MAX_PER_NAME as u64 {
        bench.give(request_from(HOST, connection, token.clone()));
    }
    let verify = bench.one(request_from(HOST, 1, token.clone()));
    let ask = ask_of(&verify);
    let expected = Output::Verify {
        ask,
        credentials: token,
    };
    assert_eq!(verify, expected);
    let ask = ask_of(&bench.one(Input::Verified(ask, Ok(good()))));
    let ask = ask_of(&bench.one(Input::Placed(ask, placed(HERE, 3))));
    let open = bench.one(Input::CheckedOut(ask, Ok(checkout(HERE, 77))));
    let Output::Open { wanted, .. } = open else {
        panic!("{open:?}")
    };
    assert_eq!(wanted.name, "adam");
}

#[test]
fn wrong_credentials_have_their_own_refusals() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.one(request_from(HOST, 1, Credentials::Token(Token("a.b.c".to_owned())))));
    let answer = bench.one(Input::Verified(ask, Ok(Verdict::Wrong(Wrong::Token))));
    assert_eq!(answer, refused(1, LoginRefusal::WrongToken));
    // A name that is taken is tried as often as a password may be guessed.
    for guess in 0..u64::from(GUESSES) {
        let ask = ask_of(&bench.one(register_from(HOST, guess, "adam")));
        let answer = bench.one(Input::Verified(ask, Ok(Verdict::Wrong(Wrong::Taken))));
        assert_eq!(answer, refused(guess, LoginRefusal::NameTaken));
    }
    assert_eq!(
        bench.one(register_from(HOST, 9, "adam")),
        refused(9, LoginRefusal::Throttled)
    );
}

#[test]
fn an_address_registers_few_accounts() {
    let mut bench = Bench::new();
    for number in 0..u64::from(REGISTRATIONS) {
        let ask = ask_of(&bench.one(register_from(HOST, number, &number.to_string())));
        bench.one(Input::Verified(ask, Ok(good())));
        bench.give(Input::Closed(ConnectionId(number)));
    }
    assert_eq!(bench.login.counters().registered, u64::from(REGISTRATIONS));
    let refusal = bench.one(register_from(HOST, 99, "another"));
    assert_eq!(refusal, refused(99, LoginRefusal::Throttled));
    let other = bench.one(register_from(Host::Four([10, 0, 0, 2]), 98, "another"));
    assert!(matches!(other, Output::Verify { .. }), "{other:?}");
    let logs_in = bench.asks(97, "known");
    assert!(matches!(logs_in, Output::Verify { .. }), "{logs_in:?}");
    bench.now = bench.now.after(REGISTRATION_EVERY);
    bench.give(Input::Time);
    let later = bench.one(register_from(HOST, 96, "another"));
    assert!(matches!(later, Output::Verify { .. }), "{later:?}");
}
