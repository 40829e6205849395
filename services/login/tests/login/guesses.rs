//! Wrong credentials: how many are admitted by name and by host, and that login processes count together.

use annals_login::{
    GUESS_EVERY, GUESSES, HOST_GUESS_EVERY, HOST_GUESSES, Host, Input, Output, Refused, Verdict, Wrong,
};
use annals_wire::client::LoginRefusal;

use crate::{Bench, HOST, ask_of, good, hash_of, log_in_from, refused};

#[test]
fn password_guesses_are_throttled_by_name() {
    let mut bench = Bench::new();
    (0..GUESSES).for_each(|_| bench.guesses(HOST, "adam"));
    assert_eq!(bench.asks(1, "adam"), refused(1, LoginRefusal::Throttled));
    assert!(matches!(bench.asks(1, "eve"), Output::Verify { .. }), "others are not");
    bench.now = bench.now.after(GUESS_EVERY);
    let ask = ask_of(&bench.asks(2, "adam"));
    bench.one(Input::Verified(ask, Ok(good())));
    let ask = ask_of(&bench.asks(3, "adam"));
    bench.one(Input::Verified(ask, Ok(Verdict::Wrong(Wrong::Password))));
    assert!(
        matches!(bench.asks(3, "adam"), Output::Verify { .. }),
        "its owner was there"
    );
}

#[test]
fn password_guesses_are_throttled_by_host() {
    let mut bench = Bench::new();
    for guess in 0..HOST_GUESSES {
        bench.guesses(HOST, &format!("name {guess}"));
    }
    assert_eq!(bench.asks(1, "another"), refused(1, LoginRefusal::Throttled));
    let other = bench.one(log_in_from(Host::Four([10, 0, 0, 2]), 2, "another"));
    assert!(matches!(other, Output::Verify { .. }), "{other:?}");
    bench.now = bench.now.after(HOST_GUESS_EVERY);
    assert!(matches!(bench.asks(3, "another"), Output::Verify { .. }));
}

#[test]
fn refusals_are_summarised_by_reason() {
    let mut bench = Bench::new();
    let before = bench.login.counters();
    assert_eq!(Refused::between(&before, &before), None);
    (0..GUESSES).for_each(|_| bench.guesses(HOST, "adam"));
    assert_eq!(bench.asks(1, "adam"), refused(1, LoginRefusal::Throttled));
    let now = bench.login.counters();
    let expected = Refused {
        wrong: u64::from(GUESSES),
        throttled: 1,
        banned: 0,
        crowded: 0,
        other: 0,
    };
    assert_eq!(Refused::between(&before, &now), Some(expected));
    assert_eq!(Refused::between(&now, &bench.login.counters()), None);
}

#[test]
fn login_processes_count_together() {
    let (mut one, mut other) = (Bench::new(), Bench::new());
    for _ in 0..GUESSES {
        one.guesses(HOST, "adam");
    }
    for input in std::mem::take(&mut one.shared) {
        assert_eq!(other.give(input), []);
    }
    assert_eq!(other.shared, [], "what it received is not shared again");
    assert_eq!(other.asks(1, "adam"), refused(1, LoginRefusal::Throttled));
    // One that starts later learns it.
    let mut new = Bench::new();
    let counts = one.login.counts(one.now);
    assert_eq!(new.give(Input::Learned(counts)), []);
    assert_eq!(new.asks(1, "adam"), refused(1, LoginRefusal::Throttled));

    for bench in [&mut one, &mut other, &mut new] {
        bench.now = bench.now.after(GUESS_EVERY);
    }
    let ask = ask_of(&other.asks(2, "adam"));
    other.one(Input::Verified(ask, Ok(good())));
    let shared = std::mem::take(&mut other.shared);
    assert_eq!(shared, [Input::Forgiven(hash_of("adam"))]);
    for bench in [&mut one, &mut new] {
        bench.give(shared[0].clone());
        (0..GUESSES).for_each(|_| bench.guesses(HOST, "adam"));
        assert_eq!(bench.asks(1, "adam"), refused(1, LoginRefusal::Throttled));
    }
    // A good log-in of which nothing was counted is no news.
    let ask = ask_of(&other.asks(3, "eve"));
    other.one(Input::Verified(ask, Ok(good())));
    assert_eq!(other.shared, []);
}
