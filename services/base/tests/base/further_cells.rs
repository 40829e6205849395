//! Several cell parts of an entity, one after the other (rule C17).

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{FormerCell, Place};
use annals_ids::{Address, CallNumber, EntityId, HistoryNumber, MemberId, OwnerId, Part, SpaceId};
use annals_node::{Context, Request};

use crate::{
    cell::Cell,
    game::{Game, create_cell, text},
    host::{CELL, Host, map},
    lifecycle::{avatar, trail},
    player::log_in,
};

/// The index of the avatars' only cell property.
fn hp(host: &Host, entity: EntityId) -> MemberId {
    let entity_type = host.schema.entity_type(host.image(entity).type_id).unwrap();
    entity_type.property_named("hp").unwrap().index
}

/// Runs until neither the base nor the cell waits for the other.
fn settle(host: &mut Host, cell: &mut Cell) {
    host.settle();
    for _ in 0..5 {
        cell.work(host);
        for repeated in cell.repeat() {
            host.receive(repeated);
        }
        host.settle();
    }
    cell.work(host);
    assert!(cell.is_settled());
}

/// Notes what behaviour reads of the next cell part.
fn note_cell_data(context: &mut Context<'_>) {
    for (property, denied) in [("motto", "NotOfCell"), ("luck", "Unknown")] {
        let read = context.cell_data(property).map(drop).unwrap_err();
        assert!(format!("{read:?}").starts_with(denied), "{read}");
    }
    let noted = match context.cell_data("hp").unwrap() {
        Some(Value::Int(hp)) => hp.to_string(),
        None => "none".to_owned(),
        other => panic!("{other:?}"),
    };
    context.set("motto", Value::Unicode(noted)).unwrap();
}

/// What behaviour reads of the next cell part.
fn cell_data(host: &mut Host, entity: EntityId) -> String {
    let entity_type = host.schema.entity_type(host.image(entity).type_id).unwrap();
    let method = entity_type.base_method_named("run_errand").unwrap().index;
    let motto = entity_type.property_named("motto").unwrap().index;
    let caller = Address::Base(EntityId(1));
    let taken = host.image(entity).links.taken.get(&caller).copied();
    host.call_numbered(entity, method, taken.unwrap_or_default().next());
    host.settle();
    host.sent.retain(|(to, _)| *to == CELL);
    text(&host.image(entity).properties[&motto])
}

#[test]
fn the_next_cell_part_continues_the_former_one() {
    let game = Game {
        errand: Some(note_cell_data),
        ..Game::default()
    };
    let (mut host, mut cell) = (Host::of(game), Cell::new(CELL));
    host.role(BaseInput::Map(map()));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    let hp = hp(&host, avatar);
    assert_eq!(cell.continued, [None], "the first one continues none");
    for round in 1..=3_i64 {
        let history = HistoryNumber(39 + u64::try_from(round).unwrap());
        cell.properties.entry(avatar).or_default().insert(hp, Value::Int(round));
        player.call(&mut host, Part::Base, "shed", &[]);
        settle(&mut host, &mut cell);
        assert!(cell.parts.is_empty());
        let base = host.image(avatar).base().unwrap().clone();
        assert_eq!((base.cell, base.cell_history), (None, Some(history)));
        assert_eq!(
            base.cell_properties[&hp],
            Value::Int(round),
            "its properties have returned"
        );
        assert_eq!(cell_data(&mut host, avatar), round.to_string());

        // What has returned outlives the process.
        host.crash();
        player.connect(&mut host, 1 + u64::try_from(round).unwrap());
        player.listen(&mut host);
        player.call(&mut host, Part::Base, "grow", &[]);
        settle(&mut host, &mut cell);
        assert!(cell.parts.contains_key(&avatar));
        assert_eq!(
            cell.properties[&avatar][&hp],
            Value::Int(round),
            "the next one begins with them"
        );
        let Some(Some(FormerCell {
            history: continued,
            links,
        })) = cell.continued.last()
        else {
            panic!("{:?}", cell.continued)
        };
        assert_eq!(*continued, history);
        let base = Address::Base(avatar);
        let reports = CallNumber(2 * u64::try_from(round).unwrap());
        assert_eq!(
            links.sent[&base].last, reports,
            "a report at the beginning and the end of each"
        );
        assert!(links.taken[&base] >= CallNumber(u64::try_from(round).unwrap()));
        let base = host.image(avatar).base().unwrap();
        assert_eq!(
            (base.cell, &base.cell_links),
            (Some(CELL), &None),
            "the new part has the links"
        );
        assert_eq!(cell_data(&mut host, avatar), "none", "and the properties");
    }
    assert_eq!(cell.made, 4);
    assert!(trail(&host, avatar).ends_with("lrg"), "{}", trail(&host, avatar));
}

#[test]
fn no_cell_part_is_created_before_the_former_one_has_returned() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    cell.withholds = true;
    player.call(&mut host, Part::Base, "shed", &[]);
    settle(&mut host, &mut cell);
    assert_eq!(host.image(avatar).base().unwrap().cell, None);
    assert_eq!(trail(&host, avatar), "bAg", "behaviour does not know of the end");
    player.call(&mut host, Part::Base, "grow", &[]);
    settle(&mut host, &mut cell);
    assert_eq!((trail(&host, avatar).as_str(), cell.made), ("bAgE", 1));
    let returned = cell.say_returned(avatar);
    host.receive(returned);
    settle(&mut host, &mut cell);
    player.call(&mut host, Part::Base, "grow", &[]);
    settle(&mut host, &mut cell);
    assert_eq!((trail(&host, avatar).as_str(), cell.made), ("bAgElg", 2));
}

#[test]
fn an_entity_ends_before_its_cell_part_has_returned() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    cell.withholds = true;
    player.call(&mut host, Part::Base, "shed", &[]);
    settle(&mut host, &mut cell);
    player.call(&mut host, Part::Base, "leave", &[]);
    settle(&mut host, &mut cell);
    assert_eq!(trail(&host, avatar), "bAgld", "the end of the cell part comes first");
    let returned = cell.say_returned(avatar);
    host.receive(returned);
    settle(&mut host, &mut cell);
    assert!(!host.owner.state().entities.contains_key(&avatar), "and it is ignored");
}

#[test]
fn the_state_of_a_cell_part_never_replaces_that_of_another_one() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (_, avatar) = avatar(&mut host, &mut cell);
    let mut other = Cell::new(OwnerId(21));
    let returned = other.say_returned(avatar);
    host.receive(returned);
    host.settle();
    assert_eq!(host.image(avatar).base().unwrap().cell, Some(CELL));
    assert_eq!(host.owner.troubles(), 1, "the process log names it");

    // If the log was cut, the report of the end may be void, and the state of the part arrives alone.
    let returned = cell.say_returned(avatar);
    host.receive(returned);
    host.settle();
    let base = host.image(avatar).base().unwrap();
    assert_eq!((base.cell, base.cell_history), (None, Some(HistoryNumber(40))));
    assert_eq!(trail(&host, avatar), "bAgl");
}

/// The cell part ends by itself while the base part asks it to end: that is not for the next one. Nor is a change of its
/// client that the former one has not taken.
#[test]
fn calls_that_the_former_cell_part_has_not_taken_are_not_for_the_next_one() {
    for loses_client in [false, true] {
        let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
        let (mut player, avatar) = avatar(&mut host, &mut cell);
        cell.parts.remove(&avatar);
        cell.withholds = true;
        if loses_client {
            host.role(BaseInput::Closed {
                connection: player.connection,
            });
            host.pass(31_000);
        } else {
            player.call(&mut host, Part::Base, "shed", &[]);
        }
        host.settle();
        let open = host.image(avatar).links.sent[&Address::Cell(avatar)].unconfirmed.len();
        assert!(open > 0, "the base part has called it");
        host.sent.clear();
        for report in [cell.say_placed(avatar, None), cell.say_returned(avatar)] {
            host.receive(report);
            host.settle();
        }
        let sent = &host.image(avatar).links.sent[&Address::Cell(avatar)];
        assert!(sent.unconfirmed.is_empty(), "{:?}", sent.unconfirmed);
        assert!(trail(&host, avatar).ends_with('l'));
        let entity_type = host.schema.entity_type(host.image(avatar).type_id).unwrap();
        let grow = entity_type.base_method_named("grow").unwrap().index;
        host.sent.clear();
        host.call(avatar, grow);
        host.settle();
        host.sent.retain(|(to, _)| *to == CELL);
        settle(&mut host, &mut cell);
        assert!(cell.parts.contains_key(&avatar), "the next one goes on");
        let Some(Some(former)) = cell.continued.last() else {
            panic!("{:?}", cell.continued)
        };
        let sent = host.image(avatar).links.sent[&Address::Cell(avatar)].last;
        assert_eq!(
            former.links.taken[&Address::Base(avatar)],
            sent,
            "late copies are old for it"
        );
        assert!(trail(&host, avatar).ends_with("lg"), "{}", trail(&host, avatar));
    }
}

#[test]
fn a_cell_part_that_nobody_can_hold_is_denied() {
    let game = Game {
        errand: Some(|context| {
            let Request::CreateCell { entity, place, .. } = create_cell(context.entity()) else {
                unreachable!()
            };
            let nowhere = Place {
                space: SpaceId(77),
                ..place
            };
            let properties = Vec::new();
            let create = Request::CreateCell {
                entity,
                place: nowhere,
                properties,
            };
            context.request(create).unwrap();
        }),
        ..Game::default()
    };
    let mut host = Host::of(game);
    host.role(BaseInput::Map(map()));
    let player = log_in(&mut host, 5, 1);
    let (account, type_id) = player.entity.unwrap();
    let entity_type = host.schema.entity_type(type_id).unwrap();
    let method = entity_type.base_method_named("run_errand").unwrap().index;
    host.call(account, method);
    host.settle();
    assert_eq!(trail(&host, account), "bAP", "an account has no cell part");
}
