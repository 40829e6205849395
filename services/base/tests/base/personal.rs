//! Personal members: set in plain text, sealed in the log, and readable as long as there is a key.

use annals_def::Value;
use annals_event::Body;
use annals_ids::{DatabaseId, EntityId, Part};

use crate::{
    game::text,
    host::{self, Host, open},
    player::{Player, log_in},
};

const EMAIL: &str = "merlin-of-nowhere@example.org";

fn unicode(text: &str) -> Value {
    Value::Unicode(text.into())
}

/// The trail that an entity has written.
fn trail(host: &Host, entity: EntityId) -> String {
    let entity_type = host.schema.type_named("Account").unwrap();
    let property = entity_type.property_named("trail").unwrap();
    text(&host.image(entity).properties[&property.index])
}

fn logged(host: &Host) -> Vec<u8> {
    let mut logged = Vec::new();
    for event in host.batches().flat_map(|batch| batch.events) {
        event.write(&mut logged);
    }
    logged
}

fn ask(host: &mut Host, player: &mut Player, method: &str, args: &[Value]) {
    player.call(host, Part::Base, method, args);
    host.settle();
    player.listen(host);
}

#[test]
fn personal_values_are_logged_sealed_and_read_back() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    ask(&mut host, &mut player, "recall", &[unicode(EMAIL)]);
    assert!(trail(&host, entity).ends_with('0'), "it was never set");
    ask(&mut host, &mut player, "confide", &[unicode(EMAIL)]);
    ask(&mut host, &mut player, "recall", &[unicode(EMAIL)]);
    assert!(trail(&host, entity).ends_with("p="), "{}", trail(&host, entity));

    let changes = |host: &Host| {
        let email = host
            .schema
            .type_named("Account")
            .unwrap()
            .property_named("email")
            .unwrap();
        let events = host.batches().flat_map(|batch| batch.events);
        let changed =
            events.filter(|event| matches!(&event.body, Body::Changed { member, .. } if *member == email.index));
        changed.count()
    };
    assert_eq!(changes(&host), 1);
    ask(&mut host, &mut player, "confide", &[unicode(EMAIL)]);
    assert_eq!(changes(&host), 1, "it has that already");
    let bytes = logged(&host);
    assert!(
        !bytes.windows(EMAIL.len()).any(|window| window == EMAIL.as_bytes()),
        "it is in the log"
    );

    host.crash();
    player.connect(&mut host, 2);
    player.listen(&mut host);
    ask(&mut host, &mut player, "recall", &[unicode(EMAIL)]);
    assert!(trail(&host, entity).ends_with('='), "the successor has the key");
    ask(&mut host, &mut player, "recall", &[unicode("otherwise")]);
    assert!(trail(&host, entity).ends_with('#'));
    ask(&mut host, &mut player, "pry", &[]);
    assert!(
        trail(&host, entity).ends_with("xxx"),
        "it is read and set by no other way"
    );
}

#[test]
fn personal_values_require_a_key() {
    let mut host = Host::new();
    let ticket = host.secret();
    let mut wanted = open(&host, 1, 5, 5, &ticket);
    wanted.account.key = None;
    // As it was sealed in an earlier activation.
    let email = host
        .schema
        .type_named("Account")
        .unwrap()
        .property_named("email")
        .unwrap()
        .index;
    let sealed = annals_personal::seal(&host::key(DatabaseId(5)), DatabaseId(5), 1, b"whatever");
    wanted.account.properties.push((email, Value::Bytes(sealed)));
    host.role(annals_base::BaseInput::OpenSession(wanted));
    host.settle();
    let mut player = Player::new(&host.schema, host.opened[0].1.clone().unwrap(), ticket);
    player.connect(&mut host, 1);
    player.listen(&mut host);
    let entity = player.entity.unwrap().0;
    ask(&mut host, &mut player, "confide", &[unicode(EMAIL)]);
    assert!(trail(&host, entity).ends_with('n'), "{}", trail(&host, entity));
    ask(&mut host, &mut player, "recall", &[unicode(EMAIL)]);
    assert!(trail(&host, entity).ends_with('!'), "{}", trail(&host, entity));
}
