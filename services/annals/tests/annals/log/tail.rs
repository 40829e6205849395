//! The output of `annals log tail`: the newest events, in the definitions' words, filtered by owner and entity.

use annals::tail::{Tail, TailError, TailPlan};
use annals_event::{Audience, Body};
use annals_host::log_source::Source;
use annals_ids::OwnerId;
use annals_store::MemoryStore;

use super::world::World;
use annals_def::{Change, Located, Path, Value};

async fn lines(world: &World, plan: TailPlan) -> Vec<String> {
    let source = Source::archive(world.store.clone());
    Tail::read(&source, plan).await.unwrap().lines()
}

#[tokio::test]
async fn events_are_printed_with_names_position_cause_and_value() {
    let mut world = World::new(MemoryStore::new().store()).await;
    world.create(0);
    world.create(1);
    let [here, there] = [0, 1].map(|log| *world.logs[log].state.entities.keys().next().unwrap());
    let avatar = world.schema.type_named("Avatar").unwrap().clone();
    let worn = avatar.property_named("appearance").unwrap().default.clone();
    let hair = Body::Changed {
        member: avatar.property_named("appearance").unwrap().index,
        change: Located::new(Change::part(Path(vec![0]), Value::UInt(55)), &worn).unwrap(),
    };
    let said = Body::Invoked {
        method: avatar.client_method_named("onSay").unwrap().index,
        args: vec![Value::Unicode("hello".into())],
        audience: Audience::All,
    };
    let first = world.next_history(0, here);
    let events = [
        world.event(here, Some(first), 0, hair),
        world.event(here, Some(first.next()), 0, said),
    ];
    world.append(0, &[], &events);
    world.call(0, here, 1, there);
    world.hand_over(0, here, 2);
    world.archive().await;
    let printed = lines(
        &world,
        TailPlan {
            events: 20,
            ..TailPlan::default()
        },
    )
    .await;
    println!("{}", printed.join("\n"));
    let field = match &avatar.property_named("appearance").unwrap().data_type {
        annals_def::DataType::FixedDict(dict) => dict.fields[0].name.clone(),
        other => panic!("{other}"),
    };
    let method = &avatar.cell_methods[0].name;
    let expected = [
        format!("1@2 #1  00:00:00.150  Avatar {here} cell: created at (0.0, 0.0, 0.0) in space 0"),
        format!("2@2 #1  00:00:00.200  Avatar {there} cell: created at (0.0, 0.0, 0.0) in space 0"),
        format!("1@3 #2  00:00:00.250  Avatar {here} cell: appearance.{field} = 55 (history 1)"),
        format!("1@3 #3  00:00:00.250  Avatar {here} cell: onSay(\"hello\") on all clients (history 2)"),
        format!("1@4 #4  00:00:00.300  Avatar {here} cell: calls Avatar {there} cell (1): {method}()"),
        format!("2@3 #2  00:00:00.350  Avatar {there} cell: level = 1 (history 1) by call 1 of Avatar {here} cell"),
        format!("1@5 #5  00:00:00.400  Avatar {here} cell: Avatar {there} cell took calls up to 1"),
        format!("1@6 #6  00:00:00.450  Avatar {here} cell: handed over to owner 3 in call 1 (history 3)"),
        format!("1@6 #7  00:00:00.450  owner: calls owner 3 (1): take over Avatar {here} cell"),
        format!("3@2 #1  00:00:00.500  Avatar {here} cell: taken over from owner 1 in call 1 by call 1 of owner 1"),
    ];
    assert_eq!(printed[..expected.len()], expected);
}

#[tokio::test]
async fn the_requested_number_of_newest_events_is_printed() {
    for seed in 0..5 {
        let mut world = World::generate(MemoryStore::new().store(), seed, 30).await;
        let entity = world.change_somebody(0);
        // Far more than one page.
        for _ in 0..300 {
            world.append(0, &[], &[]);
            world.change_somebody(1);
        }
        world.archive().await;
        let all = lines(
            &world,
            TailPlan {
                events: 1_000_000,
                ..TailPlan::default()
            },
        )
        .await;
        let events: u64 = world.logs.iter().map(|log| log.state.tail.event.0).sum();
        assert_eq!(all.len() as u64, events, "seed {seed}");
        assert!(
            all.iter().all(|line| !line.contains("entity ")),
            "seed {seed}: all types are known"
        );
        let some = TailPlan {
            events: 7,
            ..TailPlan::default()
        };
        assert_eq!(lines(&world, some).await, all[all.len() - 7..], "seed {seed}");
        let of_owner = TailPlan {
            events: 3,
            owners: vec![OwnerId(1)],
            entity: None,
        };
        let wanted: Vec<_> = all.iter().filter(|line| line.starts_with("1@")).cloned().collect();
        assert_eq!(lines(&world, of_owner).await, wanted[wanted.len() - 3..], "seed {seed}");
        let of_entity = TailPlan {
            events: 1,
            owners: Vec::new(),
            entity: Some(entity),
        };
        let wanted = all
            .iter()
            .rfind(|line| line.contains(&format!("Avatar {entity} cell: ")))
            .unwrap();
        assert_eq!(&lines(&world, of_entity).await[0], wanted, "seed {seed}");
    }
}

#[tokio::test]
async fn the_type_of_an_ended_entity_is_found_in_the_earlier_log() {
    let mut world = World::new(MemoryStore::new().store()).await;
    world.create(0);
    let entity = *world.logs[0].state.entities.keys().next().unwrap();
    for _ in 0..200 {
        world.change(0, entity, 5);
    }
    let end = world.event(entity, None, 0, Body::Destroyed);
    world.append(0, &[], &[end]);
    world.archive().await;
    let printed = lines(
        &world,
        TailPlan {
            events: 1,
            ..TailPlan::default()
        },
    )
    .await;
    assert!(
        printed[0].ends_with(&format!("Avatar {entity} cell: destroyed")),
        "{printed:?}"
    );
}

#[tokio::test]
async fn an_unknown_owner_is_refused() {
    let world = World::generate(MemoryStore::new().store(), 1, 3).await;
    let plan = TailPlan {
        events: 1,
        owners: vec![OwnerId(9)],
        entity: None,
    };
    let refused = Tail::read(&Source::archive(world.store.clone()), plan).await.err();
    assert!(matches!(refused, Some(TailError::UnknownOwner(OwnerId(9)))));
}
