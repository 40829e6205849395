//! Callbacks for property changes, on frames written by hand.

use std::sync::Arc;

use annals_client::{
    Attempt, Callbacks, Changed, ClientCore, Credentials, Event, Input, Millis, NoSuchProperty, Output, What,
};
use annals_def::{
    Change, DataType, Distribution, EntityType, Field, FixedDict, Located, Path, Property, Replaced, Schema, Sequence,
    Step, Value, apply,
};
use annals_event::{SpaceEntry, SpaceVersion, TimeOfDay, space_data::LIFE};
use annals_ids::{EntityId, Epoch, HistoryNumber, OwnerId, Part, SessionId, SpaceId, Tick, TypeId, WorldTime};
use annals_wire::client::{
    ClientMember, HelloAnswer, Known, Located as At, LoginAnswer, Movements, Secret, ShownWriter, Ticket, ToClient,
    ToServer, ViewFrame, ViewItem, Welcome,
};

const SEAT: EntityId = EntityId(7);

fn schema() -> Arc<Schema> {
    let numbers = DataType::Array(Arc::new(Sequence::of(DataType::Int32)));
    let bag = FixedDict::of(vec![Field::of("a", numbers.clone()), Field::of("b", DataType::String)]);
    let bags = DataType::Array(Arc::new(Sequence::of(DataType::FixedDict(Arc::new(bag)))));
    let mut seat = EntityType::new("Seat");
    seat.properties = vec![
        Property::new("seatType", DataType::Int32, Distribution::AllClients),
        Property::new("bags", bags, Distribution::AllClients),
        Property::new("marks", numbers, Distribution::AllClients),
        Property::new("hidden", DataType::Int32, Distribution::CellPublic),
    ];
    Arc::new(Schema::new(vec![seat], Vec::new(), Vec::new()))
}

/// A client that sees one entity, and the actual state of that entity.
struct Table {
    schema: Arc<Schema>,
    core: ClientCore,
    attempt: Attempt,
    held: Vec<Value>,
    upto: HistoryNumber,
    sequence: u64,
}

impl Table {
    fn new() -> Self {
        let schema = schema();
        let credentials = Credentials::password("Ann", "secret");
        let mut core = ClientCore::new(Arc::clone(&schema), credentials, 1);
        core.start(Millis(0));
        let seat = &schema.types()[0];
        let seen = seat.client_properties().iter();
        let held = seen
            .map(|index| seat.property(*index).unwrap().default.clone())
            .collect();
        let mut table = Self {
            core,
            attempt: Attempt(0),
            held,
            upto: HistoryNumber(1),
            sequence: 0,
            schema,
        };
        table.play();
        let (type_id, place) = (TypeId(0), Some(Default::default()));
        let enter = ViewItem::Enter {
            entity: SEAT,
            type_id,
            place,
        };
        let refresh = table.refresh();
        table.show(vec![enter, refresh]);
        table.events();
        table
    }

    fn play(&mut self) {
        self.listen();
        let (session, attempt) = (SessionId(5), self.attempt);
        let base = At {
            owner: OwnerId(3),
            epoch: Epoch(5),
            address: ([127, 0, 0, 1], 1_000).into(),
            certificate: None,
        };
        let secret = Secret([9; 32]);
        let answer = Some(LoginAnswer::Ticket(Ticket { session, secret, base }));
        self.core.handle(Millis(0), Input::LoginAnswered { attempt, answer });
        self.listen();
        let attempt = self.attempt;
        self.core.handle(Millis(0), Input::Connected { attempt });
        let welcome = HelloAnswer::Welcome(Welcome {
            session,
            epoch: Epoch(5),
            entity: SEAT,
            type_id: TypeId(0),
            token: Secret([1; 32]),
            movements: Movements::Plain,
        });
        let mut body = Vec::new();
        welcome.write(&mut body);
        self.core.handle(Millis(0), Input::Frame { attempt, body });
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(output) = self.core.poll_output() {
            if let Output::Login { attempt, .. } | Output::Connect { attempt, .. } = output {
                self.attempt = attempt;
            }
        }
    }

    fn show(&mut self, items: Vec<ViewItem>) {
        self.sequence += 1;
        let frame = ViewFrame {
            source: Part::Cell,
            view: 1,
            sequence: self.sequence,
            tick: Tick(self.sequence),
            items,
        };
        let mut body = Vec::new();
        ToClient::View(frame).write(&mut body);
        let attempt = self.attempt;
        self.core.handle(Millis(10), Input::Frame { attempt, body });
    }

    fn refresh(&self) -> ViewItem {
        let mut writer = ShownWriter::new(&self.schema.types()[0], HistoryNumber(0));
        for (member, value) in (0..).map(ClientMember).zip(&self.held) {
            writer.property(member, value).unwrap();
        }
        ViewItem::Refresh {
            entity: SEAT,
            upto: self.upto,
            level: 0,
            properties: writer.finish(),
        }
    }

    /// Changes a property, and shows it to the client.
    fn change(&mut self, name: &str, change: Change) {
        let schema = Arc::clone(&self.schema);
        let property = schema.types()[0].property_named(name).unwrap();
        let member = property.client_id.unwrap();
        let held = &mut self.held[usize::from(member)];
        let located = Located::new(change, held).unwrap();
        apply(&property.data_type, held, located.change()).unwrap();
        let mut writer = ShownWriter::new(&schema.types()[0], self.upto);
        let from = self.upto;
        self.upto = from.next();
        writer.change(self.upto, ClientMember(member), &located).unwrap();
        self.show(vec![ViewItem::Update {
            entity: SEAT,
            from,
            upto: self.upto,
            events: writer.finish(),
        }]);
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.core.poll_event()).collect()
    }

    /// The records of the callbacks about all that was shown.
    fn records(&mut self, callbacks: &mut Callbacks<Vec<String>>) -> Vec<String> {
        let mut records = Vec::new();
        for event in self.events() {
            callbacks.dispatch(&mut records, &self.core, &event);
        }
        records
    }
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Int).collect()
}

fn bag(a: &[i64], b: &str) -> Value {
    Value::Dict(vec![Value::Sequence(ints(a)), Value::string(b)])
}

fn path(steps: &[Step]) -> String {
    let steps = steps.iter().map(|step| match step {
        Step::Element(index) => index.to_string(),
        Step::Field(name) => format!("'{name}'"),
    });
    steps.collect::<Vec<_>>().join(", ")
}

fn list(values: &[Value]) -> String {
    Value::Sequence(values.to_vec()).to_string()
}

/// Callbacks of one property that record their arguments.
fn scribe(property: &'static str, set: bool, nested: bool, slice: bool) -> Callbacks<Vec<String>> {
    let (schema, mut callbacks, of) = (schema(), Callbacks::default(), ("Seat", property));
    if set {
        let write = move |records: &mut Vec<String>, _: Changed<'_>, old: Option<&Value>| {
            records.push(format!(
                "set({})",
                old.map_or_else(|| "no old value".to_owned(), Value::to_string)
            ));
        };
        callbacks.set(&schema, of, write).unwrap();
    }
    if nested {
        let write = |records: &mut Vec<String>, _: Changed<'_>, at: &[Step], old: &Value| {
            records.push(format!("nested([{}], {old})", path(at)));
        };
        callbacks.nested(&schema, of, write).unwrap();
    }
    if slice {
        let write =
            |records: &mut Vec<String>, _: Changed<'_>, at: &[Step], range: std::ops::Range<u32>, old: &[Value]| {
                let at: Vec<String> = [path(at)].into_iter().filter(|at| !at.is_empty()).collect();
                let at = [at, vec![format!("({}, {})", range.start, range.end)]].concat();
                records.push(format!("slice([{}], {})", at.join(", "), list(old)));
            };
        callbacks.slice(&schema, of, write).unwrap();
    }
    callbacks
}

/// The examples of the guide: an element deep inside, appends, deletes and slices, with the paths that it gives them.
fn guide(table: &mut Table) {
    let bags = Value::Sequence((0..4).map(|i| bag(&[0, 1, 2, 3, 4, 5 + i], "x")).collect());
    table.change("bags", Change::whole(bags));
    table.change("bags", Change::part(Path(vec![3, 0, 5]), Value::Int(80)));
    table.change("bags", Change::part(Path(vec![3, 1]), Value::string("y")));
    table.change("bags", Change::splice(Path(vec![3, 0]), 6, 0, ints(&[10])));
    table.change("bags", Change::splice(Path(vec![3, 0]), 6, 1, Vec::new()));
    table.change("bags", Change::splice(Path::WHOLE, 1, 2, vec![bag(&[], "z")]));
}

#[test]
fn each_depth_has_its_callback_with_path_and_old_value() {
    let mut table = Table::new();
    guide(&mut table);
    let expected = [
        "set([])",
        "nested([3, 'a', 5], 8)",
        "nested([3, 'b'], \"x\")",
        "slice([3, 'a', (6, 7)], [])",
        "slice([3, 'a', (6, 6)], [10])",
        "slice([(1, 2)], [{[0, 1, 2, 3, 4, 6], \"x\"}, {[0, 1, 2, 3, 4, 7], \"x\"}])",
    ];
    assert_eq!(table.records(&mut scribe("bags", true, true, true)), expected);
}

#[test]
fn a_depth_without_a_callback_falls_back_to_set_without_an_old_value() {
    let cases = [
        (
            (true, false, false),
            ["set([])", "set(no old value)", "set(no old value)"],
        ),
        ((true, true, false), ["set([])", "nested([1], 2)", "set(no old value)"]),
        (
            (true, false, true),
            ["set([])", "set(no old value)", "slice([(2, 3)], [3, 4])"],
        ),
    ];
    for ((set, nested, slice), expected) in cases {
        let mut table = Table::new();
        table.change("marks", Change::whole(Value::Sequence(ints(&[1, 2, 3, 4]))));
        table.change("marks", Change::part(Path(vec![1]), Value::Int(7)));
        table.change("marks", Change::splice(Path::WHOLE, 2, 2, ints(&[8])));
        table.change("seatType", Change::whole(Value::Int(1)));
        assert_eq!(table.records(&mut scribe("marks", set, nested, slice)), expected);
    }
    let mut table = Table::new();
    guide(&mut table);
    let records = table.records(&mut scribe("bags", false, true, false));
    assert_eq!(
        records,
        ["nested([3, 'a', 5], 8)", "nested([3, 'b'], \"x\")"],
        "and nothing where there is none"
    );
}

#[test]
fn the_view_holds_the_new_value_when_a_callback_is_called() {
    let (mut table, schema) = (Table::new(), schema());
    let id = ClientMember(schema.types()[0].property_named("marks").unwrap().client_id.unwrap());
    let mut callbacks: Callbacks<Vec<Value>> = Callbacks::default();
    let write = move |records: &mut Vec<Value>, changed: Changed<'_>, _: Option<&Value>| {
        assert_eq!((changed.entity, changed.part), (SEAT, Part::Cell));
        records.push(changed.seen.property(id).unwrap().clone());
    };
    callbacks.set(&schema, ("Seat", "marks"), write).unwrap();
    let mut records = Vec::new();
    for (count, mark) in [5, 6].into_iter().enumerate() {
        let end = u32::try_from(count).unwrap();
        table.change("marks", Change::splice(Path::WHOLE, end, 0, ints(&[mark])));
        for event in table.events() {
            callbacks.dispatch(&mut records, &table.core, &event);
        }
    }
    assert_eq!(records, [Value::Sequence(ints(&[5])), Value::Sequence(ints(&[5, 6]))]);
}

#[test]
fn a_refresh_sets_the_differences() {
    let mut table = Table::new();
    table.change("seatType", Change::whole(Value::Int(4)));
    table.events();
    // Events in between are not sent one by one.
    table.held[0] = Value::Int(5);
    table.upto = HistoryNumber(90);
    let refresh = table.refresh();
    table.show(vec![refresh]);
    assert_eq!(table.records(&mut scribe("seatType", true, false, false)), ["set(4)"]);
    assert_eq!(table.core.property(SEAT, "seatType"), Some(&Value::Int(5)));
}

#[test]
fn an_event_has_the_path_and_the_old_and_new_values() {
    let mut table = Table::new();
    table.change("marks", Change::splice(Path::WHOLE, 0, 0, ints(&[1, 2])));
    table.events();
    let change = Change::splice(Path::WHOLE, 1, 1, ints(&[8, 9]));
    table.change("marks", change.clone());
    let [Event::Shown(showing)] = &table.events()[..] else {
        panic!("one event");
    };
    let replaced = Replaced::Slice {
        path: Path::WHOLE,
        range: 1..3,
        old: ints(&[2]),
    };
    let property = schema().types()[0].property_named("marks").unwrap().index;
    let expected = What::Changed {
        property,
        change,
        replaced,
    };
    assert_eq!(showing.what, expected);
}

#[test]
fn a_callback_that_can_never_be_called_is_refused() {
    let (schema, mut callbacks) = (schema(), Callbacks::<()>::default());
    let mut refused = |entity_type, property| {
        let set = callbacks.set(&schema, (entity_type, property), |(), _, _| {});
        set.expect_err("there is nothing to notify").to_string()
    };
    assert_eq!(
        refused("Chair", "seatType"),
        "the definitions have no entity type Chair"
    );
    assert_eq!(refused("Seat", "colour"), "Seat has no property colour");
    assert_eq!(
        refused("Seat", "hidden"),
        "Seat.hidden (CELL_PUBLIC) is not sent to clients"
    );
    let nested = callbacks.nested(&schema, ("Seat", "seatType"), |(), _, _, _| {});
    assert!(matches!(nested, Err(NoSuchProperty::NoParts { .. })), "{nested:?}");
    let slice = callbacks.slice(&schema, ("Seat", "seatType"), |(), _, _, _, _| {});
    let slice = slice.expect_err("it has no parts").to_string();
    assert_eq!(
        slice,
        "Seat.seatType is INT32, whose parts and slices never change separately; register set"
    );
}

fn since(stamp: u64) -> SpaceVersion {
    let (life, by) = (0, OwnerId(3));
    SpaceVersion { life, stamp, by }
}

fn entry(key: u16, stamp: u64, value: &[u8]) -> ViewItem {
    ViewItem::SpaceData {
        entity: SEAT,
        entry: SpaceEntry {
            key,
            version: since(stamp),
            value: value.to_vec(),
        },
    }
}

/// The state that the client names when it restarts its cell's view.
fn known(table: &mut Table) -> Option<Known> {
    let mut body = Vec::new();
    ToClient::StampsWanted { source: Part::Cell }.write(&mut body);
    let attempt = table.attempt;
    table.core.handle(Millis(10), Input::Frame { attempt, body });
    let frames = std::iter::from_fn(|| table.core.poll_output()).filter_map(|output| match output {
        Output::Frame(body) => Some(ToServer::read(&body).unwrap()),
        _ => None,
    });
    frames
        .filter_map(|frame| match frame {
            ToServer::Stamps(stamps) if stamps.source == Part::Cell => Some(stamps.known),
            _ => None,
        })
        .last()
}

#[test]
fn space_data_is_kept_and_never_replaced_by_older_data() {
    let mut table = Table::new();
    let mut callbacks = Callbacks::default();
    callbacks
        .space_data(|records: &mut Vec<String>, space, key, value| records.push(format!("{space} {key} {value:?}")));
    let space = |space| ViewItem::Space {
        entity: SEAT,
        space: SpaceId(space),
    };
    table.show(vec![space(4), entry(300, 10, b"a"), entry(301, 20, b"b")]);
    table.show(vec![entry(300, 9, b"older"), entry(300, 10, b"again")]);
    assert_eq!(
        table.records(&mut callbacks),
        ["4 300 Some([97])", "4 301 Some([98])"],
        "an older entry has no effect"
    );
    table.show(vec![entry(300, 30, b"")]);
    assert_eq!(table.records(&mut callbacks), ["4 300 None"]);
    // Since the space was destroyed and opened again, all data before that is void, however late it was written.
    let in_life = |life, entry| match entry {
        ViewItem::SpaceData { entity, mut entry } => {
            entry.version.life = life;
            ViewItem::SpaceData { entity, entry }
        }
        other => other,
    };
    table.show(vec![in_life(2, entry(300, 25, b"new")), entry(301, 90, b"late")]);
    assert_eq!(
        table.records(&mut callbacks),
        ["4 1 None", "4 300 Some([110, 101, 119])", "4 301 None"]
    );
    let later = |stamp| SpaceVersion {
        life: 2,
        ..since(stamp)
    };
    let life = SpaceEntry::of_life(2, OwnerId(0)).version;
    let has = [(LIFE, life), (300, later(25))].into_iter().collect();
    assert_eq!(known(&mut table).unwrap().space, Some((SpaceId(4), has)));
    assert!(table.core.space_data().unwrap().get(301).is_none());
}

#[test]
fn each_space_has_its_data_and_time_advances_between_frames() {
    let mut table = Table::new();
    let space = |space| ViewItem::Space {
        entity: SEAT,
        space: SpaceId(space),
    };
    let day = TimeOfDay {
        initial: 3_600.0,
        rate: 60.0,
        set: WorldTime(0),
    };
    assert_eq!(table.core.time_of_day(Millis(10)), None);
    table.show(vec![space(4), entry(0, 10, &day.to_value()), entry(301, 20, b"b")]);
    // The frame was the second one, so of the second tick: 200 ms of game time, and arrived at 10.
    let at = |table: &Table, now| table.core.time_of_day(Millis(now)).unwrap();
    assert!((at(&table, 10) - (3_600.0 + 12.0)).abs() < 1e-9);
    assert!((at(&table, 1_010) - (3_600.0 + 72.0)).abs() < 1e-9);
    table.show(vec![space(5)]);
    assert_eq!(table.core.time_of_day(Millis(10)), None);
    assert!(table.core.space_data().unwrap().is_empty());
    table.show(vec![entry(301, 7, b"c")]);
    assert_eq!(table.core.space_data().unwrap().get(301), Some(&b"c"[..]));
}
