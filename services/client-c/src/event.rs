//! Events as a structure of C.

use std::{fmt::Display, ops::Range, ptr};

use annals_client::{AnswerError, ClientCore, DownloadId, Event, Showing, What};
use annals_def::{EntityType, Path, Replaced, Value};
use annals_ids::{CallNumber, EntityId, MemberId, Part, TypeId};

use crate::{
    inputs::{ANNALS_PART_BASE, AnnalsBytes, AnnalsDirection, AnnalsPart, AnnalsPosition, AnnalsText, part_number},
    reason::AnnalsReason,
    value::AnnalsValue,
};

/// What an event says, and which fields of it are used beside `kind`. Later versions may have more: ignore unknown ones.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnalsEventKind {
    /// There is no event.
    None = 0,
    /// A new session has started: `session`; `entity`, `type_id` and `type_name` of the entity that the client controls.
    Connected = 1,
    /// The session was resumed after ANNALS_EVENT_KIND_LOST: `number`, the epoch of the base.
    Resumed = 2,
    /// The connection was lost, and the client tries to resume by itself: `reason`, `text`.
    Lost = 3,
    /// The account is banned: `text`, the operator's reason; `number`, milliseconds since 1970 until which, or 0.
    /// ANNALS_EVENT_KIND_ENDED follows.
    Banned = 4,
    /// The client has ended; there are no more events: `reason`, `text`.
    Ended = 5,
    /// The client controls another entity, or the same one, whose cell part has ended: `entity`, `type_id`, `type_name`.
    Controls = 6,
    /// An entity entered a view: `part`, `entity`, `type_id`, `type_name`; `number`, the history number of its state. If
    /// that is 0, its properties have their defaults until ANNALS_EVENT_KIND_REFRESHED follows.
    Entered = 7,
    /// An entity left a view: `part`, `entity`.
    Left = 8,
    /// Properties of an entity were sent in full: `part`, `entity`, `type_id`, `type_name`; `number`, the history number of
    /// the values; `changes`, one for each property that was sent or is another now. `old` is NULL where the value is as
    /// before or none was known.
    Refreshed = 9,
    /// A property was changed: `part`, `entity`, `type_id`, `type_name`, `number`; `member`, its name; `changes`, one, in
    /// which what was replaced is.
    Changed = 10,
    /// A client method was called: `part`, `entity`, `type_id`, `type_name`, `number`; `member`, its name; `args`, a list.
    Called = 11,
    /// The server set the position of an entity: `entity`, `position`, `direction`.
    Placed = 12,
    /// The client's own entity is in this space: `entity`, `space`.
    SpaceEntered = 13,
    /// A key in the data of the client's own space has another value or none any more, see annals_client_space_data:
    /// `space`, `key`.
    SpaceDataChanged = 14,
    /// A call was delivered but not run: `part`, `entity`, `number`; `reason`, `text`.
    CallRefused = 15,
    /// Calls may not have been delivered, as the part was destroyed: `part`, `entity`; `numbers`.
    CallsLost = 16,
    /// The server warns that the client sends too much.
    RateWarned = 17,
    /// More of a download is here, or it begins: `entity`, `number`, which name it; `text`, its description; `received`,
    /// `size`, bytes.
    DownloadProgressed = 18,
    /// A download is here as a whole: `entity`, `number`; `text`, its description; `content`.
    Downloaded = 19,
    /// A download has ended without being whole: `entity`, `number`.
    DownloadEnded = 20,
    /// The realm is full, and the client waits in a queue: `number`, its position, 1 for the next; `size`, the length of the
    /// queue. It comes again.
    Queued = 21,
    /// A call of the client was answered: `part`, `entity`, `type_id`, `type_name`; `number`, that of the call; `member`, the
    /// method's name; `args`, the returned values as a list. If the call failed, `args` is NULL: `reason`; `text`, which of
    /// an error of the game is its name, a colon and its text. A second answer to a call is to be ignored.
    Answered = 22,
    /// The client moves this entity from now on, or does not move it any more, as the realm has chosen another driver:
    /// `entity`; `drives`. At first the client moves its own entity and no other. Another entity that leaves the view is no
    /// longer moved by the client.
    Drives = 23,
}

/// How much of a property was replaced.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnalsChangeKind {
    /// The whole value: `old`.
    Whole = 0,
    /// A part of it: `path`, `old`.
    Nested = 1,
    /// Elements of a list in it: `path`, that of the list; `from` and `to`, the range of the new elements; `old`, the list
    /// of the old ones.
    Slice = 2,
}

/// A change of a property. The view has the new value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsChange {
    pub kind: AnnalsChangeKind,
    /// The property's name.
    pub property: AnnalsText,
    /// What was there before; NULL if that is not known.
    pub old: *const AnnalsValue,
    /// Indices of elements and fields, from the outside in.
    pub path: *const u32,
    pub path_length: usize,
    pub from: u32,
    pub to: u32,
}

/// An event. What it points to is valid until the next call of annals_client_poll or annals_client_free of this client.
/// Fields that its kind does not name are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsEvent {
    pub kind: AnnalsEventKind,
    pub part: AnnalsPart,
    pub reason: AnnalsReason,
    /// The number of a space.
    pub space: u32,
    /// The number of a type among those of the schema.
    pub type_id: u16,
    /// A key in a space's data.
    pub key: u16,
    pub entity: u64,
    pub number: u64,
    pub session: u64,
    pub position: AnnalsPosition,
    pub direction: AnnalsDirection,
    pub type_name: AnnalsText,
    /// The name of a property or method.
    pub member: AnnalsText,
    pub text: AnnalsText,
    /// Arguments or returned values, as a list.
    pub args: *const AnnalsValue,
    pub changes: *const AnnalsChange,
    pub change_count: usize,
    pub numbers: *const u64,
    pub number_count: usize,
    pub received: u64,
    pub size: u64,
    pub content: AnnalsBytes,
    pub drives: bool,
}

impl AnnalsEvent {
    pub(crate) const NONE: Self = Self {
        kind: AnnalsEventKind::None,
        part: ANNALS_PART_BASE,
        reason: AnnalsReason::None,
        space: 0,
        type_id: 0,
        key: 0,
        entity: 0,
        number: 0,
        session: 0,
        position: AnnalsPosition { x: 0.0, y: 0.0, z: 0.0 },
        direction: AnnalsDirection {
            yaw: 0.0,
            pitch: 0.0,
            roll: 0.0,
        },
        type_name: AnnalsText::NONE,
        member: AnnalsText::NONE,
        text: AnnalsText::NONE,
        args: ptr::null(),
        changes: ptr::null(),
        change_count: 0,
        numbers: ptr::null(),
        number_count: 0,
        received: 0,
        size: 0,
        content: AnnalsBytes::NONE,
        drives: false,
    };

    fn of(kind: AnnalsEventKind) -> Self {
        Self { kind, ..Self::NONE }
    }

    fn of_driver(entity: EntityId, drives: bool) -> Self {
        Self {
            drives,
            ..of_part(AnnalsEventKind::Drives, Part::Cell, entity)
        }
    }
}

/// What the last event points to. Names are in the schema, which the client keeps.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    values: Vec<Value>,
    paths: Vec<Vec<u32>>,
    changes: Vec<AnnalsChange>,
    numbers: Vec<u64>,
    text: String,
    content: Vec<u8>,
}

// SAFETY: the pointers of `changes` are into the other fields, which move with it, and into the schema, which the client
// keeps and nothing changes.
unsafe impl Send for Shown {}

/// A property with what was replaced in it.
type Replacement = (MemberId, Option<Replaced>);

impl Shown {
    /// Forgets the last event.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The event as a structure that points into this, until the next event.
    pub(crate) fn take(&mut self, core: &ClientCore, event: Event) -> AnnalsEvent {
        self.clear();
        use AnnalsEventKind as Kind;
        match event {
            Event::Connected {
                session,
                entity,
                type_id,
            } => AnnalsEvent {
                session: session.0,
                ..of_type(core, Kind::Connected, entity, type_id)
            },
            Event::Resumed { epoch } => AnnalsEvent {
                number: epoch.0,
                ..AnnalsEvent::of(Kind::Resumed)
            },
            Event::Lost(reason) => self.because(AnnalsEvent::of(Kind::Lost), reason),
            Event::Banned(ban) => AnnalsEvent {
                number: ban.until.map_or(0, |until| until.0),
                reason: AnnalsReason::Banned,
                text: self.say(&ban.reason),
                ..AnnalsEvent::of(Kind::Banned)
            },
            Event::Ended(reason) => self.because(AnnalsEvent::of(Kind::Ended), reason),
            Event::Controls { entity, type_id } => of_type(core, Kind::Controls, entity, type_id),
            Event::Entered {
                part,
                entity,
                type_id,
                upto,
            } => AnnalsEvent {
                part: part_number(part),
                number: upto.0,
                ..of_type(core, Kind::Entered, entity, type_id)
            },
            Event::Left { part, entity } => of_part(Kind::Left, part, entity),
            Event::Placed {
                entity,
                position,
                direction,
            } => AnnalsEvent {
                position: position.into(),
                direction: direction.into(),
                ..of_part(Kind::Placed, Part::Cell, entity)
            },
            Event::Drives { entity, drives } => AnnalsEvent::of_driver(entity, drives),
            Event::SpaceEntered { entity, space } => AnnalsEvent {
                space: space.0,
                ..of_part(Kind::SpaceEntered, Part::Cell, entity)
            },
            Event::SpaceDataChanged { space, key, .. } => AnnalsEvent {
                space: space.0,
                key,
                ..AnnalsEvent::of(Kind::SpaceDataChanged)
            },
            Event::RateWarned => AnnalsEvent::of(Kind::RateWarned),
            Event::Queued { position, length } => AnnalsEvent {
                number: position,
                size: length,
                ..AnnalsEvent::of(Kind::Queued)
            },
            Event::CallRefused { .. } | Event::CallsLost { .. } => self.take_calls(event),
            Event::Refreshed { .. } | Event::Shown(_) => self.take_history(core, event),
            Event::DownloadProgressed { .. } | Event::Downloaded { .. } | Event::DownloadEnded(_) => {
                self.take_download(event)
            }
        }
    }

    /// The same, of downloads.
    fn take_download(&mut self, event: Event) -> AnnalsEvent {
        use AnnalsEventKind as Kind;
        let of = |kind, id: DownloadId| AnnalsEvent {
            number: id.number.0,
            ..of_part(kind, Part::Base, id.entity)
        };
        match event {
            Event::DownloadProgressed {
                id,
                description,
                received,
                size,
            } => AnnalsEvent {
                text: self.say(&description),
                received,
                size,
                ..of(Kind::DownloadProgressed, id)
            },
            Event::Downloaded {
                id,
                description,
                content,
            } => {
                self.content = content;
                AnnalsEvent {
                    text: self.say(&description),
                    content: AnnalsBytes::new(&self.content),
                    ..of(Kind::Downloaded, id)
                }
            }
            Event::DownloadEnded(id) => of(Kind::DownloadEnded, id),
            _ => AnnalsEvent::NONE,
        }
    }

    /// The same, of what is about the client's own calls.
    fn take_calls(&mut self, event: Event) -> AnnalsEvent {
        use AnnalsEventKind as Kind;
        match event {
            Event::CallRefused {
                entity,
                part,
                number,
                reason,
            } => AnnalsEvent {
                number: number.0,
                ..self.because(of_part(Kind::CallRefused, part, entity), reason)
            },
            Event::CallsLost { entity, part, numbers } => {
                self.numbers = numbers.into_iter().map(|number| number.0).collect();
                AnnalsEvent {
                    numbers: self.numbers.as_ptr(),
                    number_count: self.numbers.len(),
                    ..of_part(Kind::CallsLost, part, entity)
                }
            }
            _ => AnnalsEvent::NONE,
        }
    }

    /// The same, of what changes entities in view.
    fn take_history(&mut self, core: &ClientCore, event: Event) -> AnnalsEvent {
        use AnnalsEventKind as Kind;
        match event {
            Event::Refreshed {
                part,
                entity,
                upto,
                properties,
                replaced,
            } => {
                let is_same = |member: &MemberId| replaced.iter().all(|(changed, _)| changed != member);
                let same = properties.into_iter().map(|(member, _)| member).filter(is_same);
                let same: Vec<Replacement> = same.map(|member| (member, None)).collect();
                let changed = replaced
                    .into_iter()
                    .map(|(member, old)| (member, Some(Replaced::Whole { old })));
                let changes = changed.chain(same).collect();
                self.change(core, (Kind::Refreshed, part, entity, upto.0), changes)
            }
            Event::Shown(Showing {
                part,
                entity,
                number,
                what: What::Changed { property, replaced, .. },
                ..
            }) => {
                let event = self.change(
                    core,
                    (Kind::Changed, part, entity, number.0),
                    vec![(property, Some(replaced))],
                );
                let member = self.changes.first().map_or(AnnalsText::NONE, |change| change.property);
                AnnalsEvent { member, ..event }
            }
            Event::Shown(Showing {
                part,
                entity,
                number,
                what: What::Called { method, args },
                ..
            }) => {
                self.values.push(Value::Sequence(args));
                let entity_type = type_of(core, part, entity);
                let method = entity_type.and_then(|of| of.client_methods.get(usize::from(method.0)));
                AnnalsEvent {
                    number: number.0,
                    member: method.map_or(AnnalsText::NONE, |method| AnnalsText::new(&method.name)),
                    args: self.values.last().map_or(ptr::null(), AnnalsValue::lent),
                    ..named(entity_type, of_part(Kind::Called, part, entity))
                }
            }
            Event::Shown(Showing {
                entity,
                what:
                    What::Replied {
                        part,
                        call,
                        method,
                        outcome,
                    },
                ..
            }) => self.answered(core, (part, entity), (call, method), outcome),
            _ => AnnalsEvent::NONE,
        }
    }

    fn answered(
        &mut self,
        core: &ClientCore,
        (part, entity): (Part, EntityId),
        (call, method): (CallNumber, MemberId),
        outcome: Result<Vec<Value>, AnswerError>,
    ) -> AnnalsEvent {
        let entity_type = type_of(core, part, entity);
        let method = entity_type.and_then(|of| of.method_of(part, method));
        let answered = AnnalsEvent {
            number: call.0,
            member: method.map_or(AnnalsText::NONE, |method| AnnalsText::new(&method.name)),
            ..named(entity_type, of_part(AnnalsEventKind::Answered, part, entity))
        };
        match outcome {
            Ok(values) => {
                self.values.push(Value::Sequence(values));
                AnnalsEvent {
                    args: self.values.last().map_or(ptr::null(), AnnalsValue::lent),
                    ..answered
                }
            }
            Err(error) => AnnalsEvent {
                reason: AnnalsReason::from(&error),
                text: self.say(&error.to_string()),
                ..answered
            },
        }
    }

    fn change(
        &mut self,
        core: &ClientCore,
        (kind, part, entity, number): (AnnalsEventKind, Part, EntityId, u64),
        changes: Vec<Replacement>,
    ) -> AnnalsEvent {
        // Pointers are taken only once nothing is added any more.
        self.values.reserve_exact(changes.len());
        self.paths.reserve_exact(changes.len());
        let entity_type = type_of(core, part, entity);
        for (member, replaced) in changes {
            let property = entity_type.and_then(|of| of.property(member));
            let property = property.map_or(AnnalsText::NONE, |property| AnnalsText::new(&property.name));
            let change = self.replaced(replaced);
            self.changes.push(AnnalsChange { property, ..change });
        }
        AnnalsEvent {
            number,
            changes: self.changes.as_ptr(),
            change_count: self.changes.len(),
            ..named(entity_type, of_part(kind, part, entity))
        }
    }

    /// A change without the property's name. There is room for its value and its path.
    fn replaced(&mut self, replaced: Option<Replaced>) -> AnnalsChange {
        let whole = (AnnalsChangeKind::Whole, Path::WHOLE, 0..0);
        let (kind, path, range, old): (_, _, Range<u32>, _) = match replaced {
            None => (whole.0, whole.1, whole.2, None),
            Some(Replaced::Whole { old }) => (whole.0, whole.1, whole.2, Some(old)),
            Some(Replaced::Nested { path, old }) => (AnnalsChangeKind::Nested, path, 0..0, Some(old)),
            Some(Replaced::Slice { path, range, old }) => {
                (AnnalsChangeKind::Slice, path, range, Some(Value::Sequence(old)))
            }
        };
        let old = old.map_or(ptr::null(), |old| {
            self.values.push(old);
            self.values.last().map_or(ptr::null(), AnnalsValue::lent)
        });
        let path_length = path.0.len();
        self.paths.push(path.0);
        AnnalsChange {
            kind,
            property: AnnalsText::NONE,
            old,
            path: self.paths.last().map_or(ptr::null(), |path| path.as_ptr()),
            path_length,
            from: range.start,
            to: range.end,
        }
    }

    fn say(&mut self, text: &str) -> AnnalsText {
        text.clone_into(&mut self.text);
        AnnalsText::new(&self.text)
    }

    fn because(&mut self, event: AnnalsEvent, reason: impl Into<AnnalsReason> + Display) -> AnnalsEvent {
        let text = self.say(&reason.to_string());
        AnnalsEvent {
            reason: reason.into(),
            text,
            ..event
        }
    }
}

fn of_part(kind: AnnalsEventKind, part: Part, entity: EntityId) -> AnnalsEvent {
    AnnalsEvent {
        part: part_number(part),
        entity: entity.0,
        ..AnnalsEvent::of(kind)
    }
}

fn of_type(core: &ClientCore, kind: AnnalsEventKind, entity: EntityId, type_id: TypeId) -> AnnalsEvent {
    let event = AnnalsEvent {
        entity: entity.0,
        type_id: type_id.0,
        ..AnnalsEvent::of(kind)
    };
    named(core.schema().entity_type(type_id), event)
}

fn named(entity_type: Option<&EntityType>, event: AnnalsEvent) -> AnnalsEvent {
    match entity_type {
        Some(entity_type) => AnnalsEvent {
            type_id: entity_type.id.0,
            type_name: AnnalsText::new(&entity_type.name),
            ..event
        },
        None => event,
    }
}

/// The type of an entity in a view.
fn type_of(core: &ClientCore, part: Part, entity: EntityId) -> Option<&EntityType> {
    let seen = core.view(part).entities().get(&entity)?;
    core.schema().entity_type(seen.type_id)
}

#[cfg(test)]
mod tests {
    use std::{slice, sync::Arc};

    use annals_client::{Credentials, EndReason};
    use annals_def::{Change, DataType, Distribution, Property, Schema};
    use annals_ids::{CallNumber, Direction, Hash, HistoryNumber, Position, SpaceId, WallTime};
    use annals_wire::client::{Ban, CallRefusal, LoginRefusal};

    use super::*;

    const SEAT: EntityId = EntityId(7);

    fn core() -> ClientCore {
        let mut seat = EntityType::new("Seat");
        seat.properties = vec![Property::new("marks", DataType::Int32, Distribution::AllClients)];
        let schema = Schema::new(vec![seat], Vec::new(), Vec::new());
        ClientCore::new(Arc::new(schema), Credentials::password("ann", "secret"), 1)
    }

    fn said(text: AnnalsText) -> &'static str {
        // SAFETY: each test keeps what it reads from, and stops reading before it changes that.
        let bytes = unsafe { slice::from_raw_parts(text.bytes.cast::<u8>(), text.length) };
        str::from_utf8(bytes).unwrap()
    }

    fn value(value: *const AnnalsValue) -> &'static Value {
        // SAFETY: as in `said`.
        unsafe { crate::value::value_at(value, "value") }.unwrap()
    }

    fn changes(event: &AnnalsEvent) -> &'static [AnnalsChange] {
        // SAFETY: as in `said`.
        unsafe { slice::from_raw_parts(event.changes, event.change_count) }
    }

    #[test]
    fn reasons_have_a_code_and_a_text() {
        let (core, mut shown) = (core(), Shown::default());
        let refused = EndReason::LoginRefused(LoginRefusal::WrongPassword);
        let event = shown.take(&core, Event::Ended(refused));
        assert_eq!(event.kind, AnnalsEventKind::Ended);
        assert_eq!(event.reason, AnnalsReason::LoginWrongPassword);
        assert_eq!(said(event.text), refused.to_string());
        let until = Some(WallTime(5));
        let reason = "case 12".to_owned();
        let event = shown.take(&core, Event::Banned(Ban { until, reason }));
        assert_eq!((event.reason, event.number), (AnnalsReason::Banned, 5));
        assert_eq!(said(event.text), "case 12");
        let (entity, part, number) = (SEAT, Part::Base, CallNumber(9));
        let reason = CallRefusal::TooOften;
        let refused = Event::CallRefused {
            entity,
            part,
            number,
            reason,
        };
        let event = shown.take(&core, refused);
        assert_eq!((event.entity, event.part, event.number), (7, ANNALS_PART_BASE, 9));
        assert_eq!(event.reason, AnnalsReason::CallTooOften);
        assert_eq!(said(event.text), reason.to_string());
    }

    #[test]
    fn numbers_and_places_are_passed_on() {
        let (core, mut shown) = (core(), Shown::default());
        let (entity, part) = (SEAT, Part::Cell);
        let numbers = vec![CallNumber(3), CallNumber(4)];
        let event = shown.take(&core, Event::CallsLost { entity, part, numbers });
        // SAFETY: as in `said`.
        let numbers = unsafe { slice::from_raw_parts(event.numbers, event.number_count) };
        assert_eq!((event.kind, numbers), (AnnalsEventKind::CallsLost, &[3, 4][..]));
        let (position, direction) = (Position { x: 1.0, y: 2.0, z: 3.0 }, Direction::default());
        let placed = Event::Placed {
            entity,
            position,
            direction,
        };
        let event = shown.take(&core, placed);
        assert_eq!((event.kind, event.number_count), (AnnalsEventKind::Placed, 0));
        let (position, length) = (2, 7);
        let queued = shown.take(&core, Event::Queued { position, length });
        assert_eq!(
            (queued.kind, queued.number, queued.size),
            (AnnalsEventKind::Queued, 2, 7)
        );
        assert_eq!((event.position.x, event.position.y, event.position.z), (1.0, 2.0, 3.0));
        let event = shown.take(
            &core,
            Event::SpaceEntered {
                entity,
                space: SpaceId(5),
            },
        );
        assert_eq!((event.kind, event.space), (AnnalsEventKind::SpaceEntered, 5));
        let event = shown.take(&core, Event::RateWarned);
        assert_eq!((event.kind, event.space), (AnnalsEventKind::RateWarned, 0));
        let type_id = TypeId(0);
        let event = shown.take(&core, Event::Controls { entity, type_id });
        assert_eq!((event.kind, said(event.type_name)), (AnnalsEventKind::Controls, "Seat"));
    }

    fn changed(replaced: Replaced) -> Event {
        Event::Shown(Showing {
            part: Part::Cell,
            entity: SEAT,
            number: HistoryNumber(2),
            hash: Hash::ZERO,
            what: What::Changed {
                property: MemberId(0),
                change: Change::whole(Value::None),
                replaced,
            },
        })
    }

    #[test]
    fn downloads_have_their_progress_and_their_content() {
        let (core, mut shown) = (core(), Shown::default());
        let id = DownloadId {
            entity: SEAT,
            number: CallNumber(3),
        };
        let description = "map".to_owned();
        let progressed = Event::DownloadProgressed {
            id,
            description: description.clone(),
            received: 5,
            size: 9,
        };
        let event = shown.take(&core, progressed);
        assert_eq!(
            (event.kind, event.entity, event.number),
            (AnnalsEventKind::DownloadProgressed, 7, 3)
        );
        assert_eq!((said(event.text), event.received, event.size), ("map", 5, 9));
        let content = vec![1, 2, 3];
        let downloaded = Event::Downloaded {
            id,
            description,
            content,
        };
        let event = shown.take(&core, downloaded);
        // SAFETY: as in `said`.
        let content = unsafe { slice::from_raw_parts(event.content.bytes, event.content.length) };
        assert_eq!((event.kind, content), (AnnalsEventKind::Downloaded, &[1, 2, 3][..]));
        let event = shown.take(&core, Event::DownloadEnded(id));
        assert_eq!((event.kind, event.number), (AnnalsEventKind::DownloadEnded, 3));
        assert!(event.content.bytes.is_null() && event.text.bytes.is_null());
    }

    #[test]
    fn a_change_says_what_it_replaced() {
        let (core, mut shown) = (core(), Shown::default());
        let old = Value::Int(5);
        let event = shown.take(&core, changed(Replaced::Whole { old: old.clone() }));
        assert_eq!((event.kind, event.number), (AnnalsEventKind::Changed, 2));
        let change = changes(&event)[0];
        assert_eq!((change.kind, change.path_length), (AnnalsChangeKind::Whole, 0));
        assert_eq!(value(change.old), &old);
        let path = Path(vec![3, 1]);
        let event = shown.take(
            &core,
            changed(Replaced::Nested {
                path: path.clone(),
                old,
            }),
        );
        let change = changes(&event)[0];
        // SAFETY: as in `said`.
        let steps = unsafe { slice::from_raw_parts(change.path, change.path_length) };
        assert_eq!((change.kind, steps), (AnnalsChangeKind::Nested, &[3, 1][..]));
        let (range, old) = (2..4, vec![Value::Int(1), Value::Int(2)]);
        let event = shown.take(
            &core,
            changed(Replaced::Slice {
                path,
                range,
                old: old.clone(),
            }),
        );
        let change = changes(&event)[0];
        assert_eq!((change.kind, change.from, change.to), (AnnalsChangeKind::Slice, 2, 4));
        assert_eq!(value(change.old), &Value::Sequence(old));
    }

    #[test]
    fn a_refreshed_entity_names_what_was_sent_and_what_was_replaced() {
        let (core, mut shown) = (core(), Shown::default());
        let sent = |number| (MemberId(number), Hash::ZERO);
        let event = Event::Refreshed {
            part: Part::Cell,
            entity: SEAT,
            upto: HistoryNumber(4),
            properties: (0..3).map(sent).collect(),
            // The last was reset and not sent.
            replaced: vec![(MemberId(1), Value::Int(1)), (MemberId(5), Value::Int(5))],
        };
        let event = shown.take(&core, event);
        let old: Vec<Option<&Value>> = changes(&event)
            .iter()
            .map(|change| (!change.old.is_null()).then(|| value(change.old)))
            .collect();
        assert_eq!(old, [Some(&Value::Int(1)), Some(&Value::Int(5)), None, None]);
        assert_eq!((event.kind, event.number), (AnnalsEventKind::Refreshed, 4));
    }
}
