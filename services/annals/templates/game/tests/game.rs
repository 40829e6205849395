//! The game in a realm in memory: no server is started, and time passes only by `pass` and `until`.

use std::path::Path;

use annals_game::{
    def::Value,
    ids::{EntityId, Part, Position},
    testing::{BASE, EAST, TestRealm, WEST},
};

fn realm() -> TestRealm {
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("defs");
    TestRealm::open(&world, "Account", new_game::game)
}

/// The first ripe bush that a player sees.
fn ripe_bush(realm: &TestRealm, player: usize) -> Option<EntityId> {
    let is_ripe = |bush: &EntityId| realm.read::<u8>(player, *bush, "ripe") == Some(1);
    realm.seen(player, "Bush").into_iter().find(is_ripe)
}

/// Walks to a ripe bush, and returns the bush once its berry is picked.
fn pick(realm: &mut TestRealm, player: usize) -> EntityId {
    realm.until("a ripe bush is seen", |realm| ripe_bush(realm, player).is_some());
    let bush = ripe_bush(realm, player).expect("it was seen just now");
    let position = realm.position(player, bush).expect("a bush has a place");
    realm.stand(player, position);
    realm.until("its berry is picked", |realm| {
        realm.read::<u8>(player, bush, "ripe") == Some(0)
    });
    bush
}

#[test]
fn everybody_near_knows_an_avatar_and_receives_what_it_says() {
    let mut realm = realm();
    let (speaker, listener) = (realm.join(), realm.join());
    let avatar = realm.entered(speaker, "Avatar");
    realm.entered(listener, "Avatar");
    realm.until("they see each other", |realm| {
        realm.seen(listener, "Avatar").contains(&avatar)
    });
    let name = Value::Unicode("Ann".to_owned());
    realm.call(speaker, avatar, Part::Cell, "introduce", &[name]);
    realm.until("they know the name", |realm| {
        realm.read::<String>(listener, avatar, "name").as_deref() == Some("Ann")
    });
    let hello = [Value::Unicode("hello".to_owned())];
    realm.call(speaker, avatar, Part::Cell, "say", &hello);
    realm.pass(500);
    for player in [speaker, listener] {
        assert_eq!(realm.received(player, avatar, "onSay").concat(), hello);
    }
}

#[test]
fn an_avatar_picks_the_berry_of_a_bush_that_it_comes_near() {
    let mut realm = realm();
    let player = realm.join();
    let avatar = realm.entered(player, "Avatar");
    // It may have entered near a bush.
    let before = realm.read::<u32>(player, avatar, "berries");
    let bush = pick(&mut realm, player);
    realm.until("the avatar has it", |realm| {
        realm.read::<u32>(player, avatar, "berries") > before
    });
    // Far away, so that nobody picks the next one.
    let far = Position {
        x: 100.0,
        y: 0.0,
        z: 0.0,
    };
    realm.stand(player, far);
    realm.until("another berry has grown", |realm| {
        realm.read::<u8>(player, bush, "ripe") == Some(1)
    });
}

#[test]
fn berries_are_still_there_after_every_process_was_killed() {
    let mut realm = realm();
    let player = realm.join();
    let avatar = realm.entered(player, "Avatar");
    pick(&mut realm, player);
    realm.pass(500);
    let before = realm.read::<u32>(player, avatar, "berries");
    assert!(before >= Some(1), "{before:?}");
    for owner in [WEST, EAST, BASE] {
        realm.crash(owner);
    }
    let avatar = realm.entered(player, "Avatar");
    realm.pass(500);
    let after = realm.read::<u32>(player, avatar, "berries");
    assert!(after >= before, "{before:?} before and {after:?} after");
}
