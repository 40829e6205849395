//! Requests of behaviour to the base: performed, or denied with an error, at once or as soon as the reason is known.

use annals_event::Place;
use annals_ids::{EntityId, Mailbox, MemberId, Part, Position, SpaceId};
use annals_node::{Context, Denied, Request};
use annals_wire::client::CloseReason;

use crate::{
    cell::Cell,
    game::{Game, PLACE, create_cell},
    host::{CELL, Host, map},
    lifecycle::trail,
    player::{Player, log_in},
};

/// An entity that is not here.
const STRANGER: EntityId = EntityId(77);

/// A player whose account runs this when it is asked to.
fn player_with(errand: fn(&mut Context<'_>)) -> (Host, Cell, Player) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(annals_base::BaseInput::Map(map()));
    let player = log_in(&mut host, 5, 1);
    (host, Cell::new(CELL), player)
}

fn run_errand(host: &mut Host, cell: &mut Cell, entity: EntityId) {
    let schema = &host.schema;
    let account = schema.type_named("Account").expect("the game has accounts");
    let method: MemberId = account
        .base_method_named("run_errand")
        .expect("the method exists")
        .index;
    host.call(entity, method);
    host.settle();
    // Drop the acknowledgement to the caller.
    host.sent.retain(|(to, _)| *to == CELL);
    cell.work(host);
    host.settle();
}

fn beside(context: &mut Context<'_>) -> Result<(), Denied> {
    let mailbox = Mailbox {
        entity: STRANGER,
        ..context.mailbox(Part::Cell)
    };
    context.teleport_near(mailbox, Position::default())
}

fn account(player: &Player) -> EntityId {
    player.entity.expect("a notification arrived").0
}

/// Requests of an entity that name one that is not here.
fn about_strangers(own: Mailbox) -> Vec<Request> {
    let (entity, place) = (own.entity, PLACE);
    let stranger = Mailbox {
        entity: STRANGER,
        ..own
    };
    vec![
        create_cell(STRANGER),
        Request::DestroyCell { entity: STRANGER },
        Request::Destroy { entity: STRANGER },
        Request::GiveClient {
            from: STRANGER,
            to: own,
        },
        Request::GiveClient {
            from: entity,
            to: stranger,
        },
        Request::CloseClient {
            entity: STRANGER,
            reason: CloseReason::Ended,
        },
        Request::OpenSpace {
            entity: STRANGER,
            place,
        },
    ]
}

#[test]
fn invalid_requests_of_a_base_part_are_denied_at_once() {
    let (mut host, mut cell, player) = player_with(|context| {
        let entity = context.entity();
        let place = PLACE;
        let own = context.mailbox(Part::Base);
        for request in about_strangers(own) {
            let denied = context.request(request.clone());
            let expected = matches!(denied, Err(Denied::Elsewhere { entity: STRANGER, .. }));
            assert!(expected, "{request:?}: {denied:?}");
        }
        let itself = Request::GiveClient { from: entity, to: own };
        assert!(matches!(context.request(itself), Err(Denied::ClientKept { .. })));
        let nowhere = Place {
            position: Position {
                y: f32::INFINITY,
                ..PLACE.position
            },
            ..PLACE
        };
        let made = Request::CreateCell {
            entity,
            place: nowhere,
            properties: Vec::new(),
        };
        assert_eq!(context.request(made), Err(Denied::Place));
        assert_eq!(context.open_space(nowhere), Err(Denied::Place));
        for denied in [
            context.teleport(place),
            context.move_to(place),
            context.set_aoi_radius(1.0, 1.0),
            context.add_to_manual_aoi(STRANGER),
            context.set_space_data(300, vec![1]),
            context.destroy_space(),
            context.request(Request::Store { entity }),
            beside(context),
        ] {
            assert!(matches!(denied, Err(Denied::CellOnly { .. })), "{denied:?}");
        }
    });
    let entity = account(&player);
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(
        trail(&host, entity),
        "bA",
        "none of it was done, and no more notifications arrive"
    );
    assert_eq!(host.owner.role().counters().denied, 0);
    assert!(host.image(entity).client.is_some());
}

#[test]
fn a_failed_client_transfer_is_reported_to_its_requester() {
    let (mut host, mut cell, player) = player_with(|context| {
        let own = context.entity();
        let avatar = context.create_base("Avatar", Vec::new()).unwrap().entity;
        // It has no client: its account has not had its turn yet.
        let give = |from, to| Request::GiveClient { from, to };
        context.request(give(avatar, context.mailbox(Part::Base))).unwrap();
        let ended = context.create_base("Avatar", Vec::new()).unwrap();
        let entity = ended.entity;
        context.request(Request::Destroy { entity }).unwrap();
        context.request(give(own, ended)).unwrap();
    });
    let entity = account(&player);
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(trail(&host, entity), "bAKK");
    assert_eq!(host.owner.role().counters().denied, 2);
    assert!(host.image(entity).client.is_some(), "it is where it was");
}

#[test]
fn a_client_is_not_given_to_an_entity_that_is_about_to_end() {
    let (mut host, mut cell, player) = player_with(|context| {
        let own = context.entity();
        let avatar = context.create_base("Avatar", Vec::new()).unwrap();
        let entity = avatar.entity;
        context.request(create_cell(entity)).unwrap();
        context.request(Request::Destroy { entity }).unwrap();
        context.request(Request::GiveClient { from: own, to: avatar }).unwrap();
    });
    let entity = account(&player);
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(trail(&host, entity), "bAK");
    assert!(host.image(entity).client.is_some(), "it is where it was");
}

#[test]
fn a_client_that_left_before_its_transfer_is_reported() {
    let (mut host, mut cell, player) = player_with(|context| {
        let entity = context.entity();
        let avatar = context.create_base("Avatar", Vec::new()).unwrap();
        let reason = CloseReason::Ended;
        context.request(Request::CloseClient { entity, reason }).unwrap();
        context
            .request(Request::GiveClient {
                from: entity,
                to: avatar,
            })
            .unwrap();
    });
    let entity = account(&player);
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(trail(&host, entity), "bALK");
}

#[test]
fn a_second_cell_part_and_an_unmapped_space_are_reported() {
    let (mut host, mut cell, player) = player_with(|context| {
        let avatar = context.create_base("Avatar", Vec::new()).unwrap().entity;
        context.request(create_cell(avatar)).unwrap();
        context.request(create_cell(avatar)).unwrap();
        let space = SpaceId(99);
        context.open_space(Place { space, ..PLACE }).unwrap();
        // Destroying a cell part that does not exist is no error.
        let own = context.entity();
        context.request(Request::DestroyCell { entity: own }).unwrap();
    });
    let entity = account(&player);
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(trail(&host, entity), "bACN");
    assert_eq!(cell.made, 1);
}

/// A request made before there is a map waits for one, and its denial then goes to the entity that made it.
#[test]
fn requests_before_the_first_map_are_answered_after_it() {
    let mut host = Host::of(Game {
        errand: Some(|context| {
            let place = Place {
                space: SpaceId(99),
                ..PLACE
            };
            context.open_space(place).unwrap();
        }),
        ..Game::default()
    });
    let player = log_in(&mut host, 5, 1);
    let (entity, mut cell) = (account(&player), Cell::new(CELL));
    run_errand(&mut host, &mut cell, entity);
    assert_eq!(trail(&host, entity), "bA");
    host.role(annals_base::BaseInput::Map(map()));
    host.settle();
    assert_eq!(trail(&host, entity), "bAN");
}
