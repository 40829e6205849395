//! Zones of many and of large entities, which a space loads in several calls.
#![expect(
    clippy::disallowed_types,
    reason = "behaviour is shared, and this one records its calls"
)]

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use annals_def::{Schema, Tree, Value, compile};
use annals_event::Place;
use annals_game::testing::{BASE, EAST, TestRealm, WEST};
use annals_ids::{MemberId, Part, SpaceId, TimerId, TypeId};
use annals_node::{Answer, Behaviour, Bootstrap, Caller, Context, Denied, Request};

const SPACE: TypeId = TypeId(0);
const WHERE: SpaceId = SpaceId(1);

/// Small entities with a base part, and without one; and large ones.
const BASED: usize = 2_500;
const CELL_ONLY: usize = 40;
const LARGE: usize = 500;

/// Bytes of a large one, and the same in base-64.
const BYTES: usize = 6_000;

fn entity(out: &mut String, number: usize, has_base: bool, more: &str) {
    let x = number % 200;
    writeln!(
        out,
        "<entity> <type> Rock </type> <hasBase> {has_base} </hasBase> <position> {x} 0 {number} </position> \
         <properties> <number> {number} </number> {more} </properties> </entity>"
    )
    .unwrap();
}

fn schema() -> Arc<Schema> {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Space/> <Rock/> </root>");
    tree.insert(
        "entity_defs/Space.def",
        "<root> <CellMethods> <tend> </tend> </CellMethods> </root>",
    );
    let cell = "<Flags> CELL_PRIVATE </Flags>";
    tree.insert(
        "entity_defs/Rock.def",
        format!(
            "<root> <Properties> <number> <Type> UINT32 </Type> {cell} </number> <grain> <Type> BLOB </Type> {cell} </grain> \
             <owner> <Type> UINT32 </Type> <Flags> BASE </Flags> </owner> </Properties> </root>"
        ),
    );
    let mut field = "<root>".to_owned();
    for number in 0..BASED + CELL_ONLY {
        let has_base = number >= CELL_ONLY;
        let owner = if has_base { "<owner> 7 </owner>" } else { "" };
        entity(&mut field, number, has_base, owner);
    }
    tree.insert("zones/field.xml", field + "</root>");
    let mut quarry = "<root>".to_owned();
    let grain = format!("<grain> {} </grain>", "AAAA".repeat(BYTES / 3));
    for number in 0..LARGE {
        entity(&mut quarry, BASED + CELL_ONLY + number, true, &grain);
    }
    tree.insert("zones/quarry.xml", quarry + "</root>");
    let compiled = compile(&tree);
    assert_eq!(compiled.diagnostics, []);
    Arc::new(compiled.schema.unwrap())
}

/// The space loads its zones, and continues by timers whose tag is the position, in the quarry from a high number on.
#[derive(Default)]
struct Loader {
    /// The positions at which it continued.
    continued: Mutex<BTreeSet<(Part, u32)>>,
    denied: Mutex<Vec<Denied>>,
}

const QUARRY: u32 = 1 << 16;

impl Loader {
    fn load(&self, context: &mut Context<'_>, tag: u32) {
        let (zone, first) = if tag < QUARRY { ("field", 0) } else { ("quarry", QUARRY) };
        let from = usize::try_from(tag - first).unwrap();
        if let Some(next) = context.load_zone(zone, WHERE, from).unwrap() {
            let tag = first + u32::try_from(next).unwrap();
            self.continued.lock().unwrap().insert((context.part(), tag));
            context.set_timer(50, 0, tag);
        } else if zone == "field" {
            context.set_timer(50, 0, QUARRY);
        }
    }
}

impl Behaviour for Loader {
    fn bootstrap(&self) -> Option<Bootstrap> {
        Some(Bootstrap {
            type_id: SPACE,
            properties: Vec::new(),
        })
    }

    fn created(&self, context: &mut Context<'_>) {
        if context.entity_type().id != SPACE {
            return;
        }
        if context.part() == Part::Base {
            let place = Place {
                space: WHERE,
                ..Place::default()
            };
            let create = Request::CreateCell {
                entity: context.entity(),
                place,
                properties: Vec::new(),
            };
            context.request(create).unwrap();
        }
        let nowhere = context.load_zone("nowhere", WHERE, 0).unwrap_err();
        self.denied.lock().unwrap().push(nowhere);
        self.load(context, 0);
    }

    fn request_denied(&self, _context: &mut Context<'_>, _request: &Request, denied: &Denied) {
        self.denied.lock().unwrap().push(denied.clone());
    }

    fn timer(&self, context: &mut Context<'_>, _timer: TimerId, tag: u32) {
        self.load(context, tag);
    }

    fn call(&self, _context: &mut Context<'_>, _method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        Answer::DONE
    }
}

#[test]
fn each_entity_of_a_large_zone_begins_once_with_both_parts() {
    const CELLS: [annals_ids::OwnerId; 2] = [WEST, EAST];
    let loader = Arc::new(Loader::default());
    let mut realm = TestRealm::new(schema(), Arc::clone(&loader) as Arc<dyn Behaviour>, SPACE);
    let all = BASED + CELL_ONLY + LARGE;
    realm.until("all have begun", |realm| realm.count(&CELLS, "Rock") == all);
    realm.pass(2_000);
    assert_eq!(realm.count(&[BASE], "Rock"), BASED + LARGE);
    let mut numbers = BTreeSet::new();
    for image in CELLS.iter().flat_map(|cell| realm.state(*cell).entities.values()) {
        let cell = image.cell().unwrap();
        if image.type_id != SPACE {
            let number = cell.place.position.z;
            assert!(numbers.insert(number.to_bits()), "{number} begins twice");
        }
    }
    assert_eq!(numbers.len(), all);
    let owners = realm
        .state(BASE)
        .entities
        .values()
        .filter(|image| image.type_id != SPACE);
    let owned = owners.filter(|image| image.properties.values().any(|value| *value == Value::UInt(7)));
    assert_eq!(owned.count(), BASED, "base properties are those of the zone");

    let continued = loader.continued.lock().unwrap();
    let calls = |part, quarry| {
        let of_part = continued
            .iter()
            .filter(|(of, tag)| *of == part && (*tag >= QUARRY) == quarry);
        of_part.count()
    };
    assert_eq!(calls(Part::Base, false), 2, "a thousand at once");
    assert!(calls(Part::Base, true) >= 2, "they do not fit into one input");
    assert_eq!(calls(Part::Cell, false) + calls(Part::Cell, true), 0);
    let denied = loader.denied.lock().unwrap();
    assert_eq!(denied.len(), 2, "{denied:?}");
    assert!(denied.iter().all(|denied| matches!(denied, Denied::NoZone { .. })));
}
