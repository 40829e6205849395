//! What a client is shown of an entity: its properties and events. To read it, the entity's type and the values that
//! the client holds are needed: nothing is sent that these two imply.

use annals_def::{
    Argument, Change, DataType, Edit, EncodeError, EntityType, Form, Located, MessageRange, Method, Mismatch, Path,
    Problem, Value, decode, decode_elements, encode, encode_elements, unpack_path,
};
use annals_event::{Malformed, Reader, put_number};
use annals_ids::{Hash, HistoryNumber};

use super::{ClientMember, Reply, value_hash};

/// The id of a change of a part of a value.
const NESTED: u8 = 0;

/// The id of a change of a slice of an array.
const SLICE: u8 = 1;

/// The id of a gap in the history numbers. With a gap of 0, a [`Reply`] follows instead.
const GAP: u8 = 2;

/// A history event as a client is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A property was changed.
    Property {
        /// The index among the type's client properties.
        member: ClientMember,
        change: Change,
    },
    /// A client method was called.
    Method {
        /// The index among the type's client methods.
        member: ClientMember,
        /// The arguments in the method's order.
        args: Vec<Value>,
    },
    /// A call of the client was answered.
    Reply(Reply),
}

/// The data does not fit the type as which the client knows the entity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShowError {
    /// The type has no such client property.
    #[error("{entity_type} has no client property {member}: use the number of the type that the client has")]
    UnknownProperty {
        /// The type's name.
        entity_type: String,
        /// The number.
        member: u16,
    },
    /// The type has no such client method.
    #[error("{entity_type} has no client method {member}: use the number of the type that the client has")]
    UnknownMethod {
        /// The type's name.
        entity_type: String,
        /// The number.
        member: u16,
    },
    /// The path leads to no part of the property's type.
    #[error("client property {member} of {entity_type} has no part at {path:?}: the change is for another type")]
    NoPart {
        /// The type's name.
        entity_type: String,
        /// The property's number.
        member: u16,
        path: Vec<u32>,
    },
    /// The number of arguments or return values is not that of the method.
    #[error("{method} has {wanted} values, not {given}: pass the declared ones")]
    ArgumentCount {
        /// The method's name.
        method: String,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// A value does not fit.
    #[error(transparent)]
    Value(#[from] EncodeError),
}

/// Encodes properties and events for a client that knows an entity's type.
#[derive(Clone, Debug)]
pub struct ShownWriter<'a> {
    entity_type: &'a EntityType,
    properties: MessageRange,
    methods: MessageRange,
    last: HistoryNumber,
    bytes: Vec<u8>,
}

impl<'a> ShownWriter<'a> {
    /// For events that follow `from`; also for properties alone.
    #[must_use]
    pub fn new(entity_type: &'a EntityType, from: HistoryNumber) -> Self {
        let (properties, methods) = MessageRange::of_shown(entity_type);
        Self {
            entity_type,
            properties,
            methods,
            last: from,
            bytes: Vec::new(),
        }
    }

    /// Number of bytes written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a whole property, without a number.
    ///
    /// # Errors
    /// When the type has no such property, or the value does not fit; nothing is appended.
    pub fn property(&mut self, member: ClientMember, value: &Value) -> Result<(), ShowError> {
        let data_type = self.data_type(member)?;
        let start = self.bytes.len();
        self.properties.put(member.0, &mut self.bytes);
        encode(data_type, value, Form::Shown, &mut self.bytes).inspect_err(|_| self.bytes.truncate(start))?;
        Ok(())
    }

    /// Appends a change of a property. `number` must be above that of the previous event.
    ///
    /// # Errors
    /// When the type has no such property, or the change does not fit; nothing is appended.
    pub fn change(&mut self, number: HistoryNumber, member: ClientMember, located: &Located) -> Result<(), ShowError> {
        let change = located.change();
        let part_type = change.path.find_type(self.data_type(member)?);
        let part_type = part_type.ok_or_else(|| ShowError::NoPart {
            entity_type: self.entity_type.name.clone(),
            member: member.0,
            path: change.path.0.clone(),
        })?;
        let start = (self.bytes.len(), self.last);
        self.number(number);
        let put = match (&change.edit, part_type) {
            (Edit::Set(value), _) if change.path.0.is_empty() => self.property(member, value),
            (Edit::Set(value), _) => {
                self.path(NESTED, member, located);
                encode(part_type, value, Form::Shown, &mut self.bytes).map_err(ShowError::from)
            }
            (Edit::Splice { inserted, .. }, DataType::Array(sequence)) => {
                self.path(SLICE, member, located);
                encode_elements(&sequence.of, inserted, Form::Shown, &mut self.bytes).map_err(ShowError::from)
            }
            (Edit::Splice { .. }, other) => Err(not_an_array(other).into()),
        };
        put.inspect_err(|_| self.undo(start))
    }

    /// Appends a call of a client method. `number` must be above that of the previous event.
    ///
    /// # Errors
    /// When the type has no such method, or the arguments differ in number or do not fit; nothing is appended.
    pub fn method(&mut self, number: HistoryNumber, member: ClientMember, args: &[Value]) -> Result<(), ShowError> {
        let method = method(self.entity_type, member).ok_or_else(|| ShowError::UnknownMethod {
            entity_type: self.entity_type.name.clone(),
            member: member.0,
        })?;
        let start = (self.bytes.len(), self.last);
        self.number(number);
        self.methods.put(member.0, &mut self.bytes);
        put_values(method, &method.args, args, &mut self.bytes).inspect_err(|_| self.undo(start))
    }

    /// Appends the answer to a call of the client. `number` must be above that of the previous event.
    ///
    /// # Errors
    /// When the type has no such exposed method, or the values differ in number or do not fit; nothing is appended.
    pub fn reply(&mut self, number: HistoryNumber, reply: &Reply) -> Result<(), ShowError> {
        let start = (self.bytes.len(), self.last);
        self.number(number);
        self.bytes.extend([GAP, 0]);
        reply
            .write(self.entity_type, &mut self.bytes)
            .inspect_err(|_| self.undo(start))
    }

    fn data_type(&self, member: ClientMember) -> Result<&'a DataType, ShowError> {
        data_type(self.entity_type, member).ok_or_else(|| ShowError::UnknownProperty {
            entity_type: self.entity_type.name.clone(),
            member: member.0,
        })
    }

    fn path(&mut self, id: u8, member: ClientMember, located: &Located) {
        self.bytes.push(id);
        located.pack((member.0.into(), among(self.entity_type)), &mut self.bytes);
    }

    fn number(&mut self, number: HistoryNumber) {
        debug_assert!(number > self.last, "history numbers ascend");
        let gap = number.0.saturating_sub(self.last.next().0);
        if gap > 0 {
            self.bytes.push(GAP);
            put_number(&mut self.bytes, gap);
        }
        self.last = number;
    }

    fn undo(&mut self, (length, last): (usize, HistoryNumber)) {
        self.bytes.truncate(length);
        self.last = last;
    }
}

/// Decodes the output of [`ShownWriter`], one event after the other.
#[derive(Clone, Debug)]
pub struct ShownReader<'a> {
    entity_type: &'a EntityType,
    properties: MessageRange,
    methods: MessageRange,
    last: HistoryNumber,
    upto: HistoryNumber,
    reader: Reader<'a>,
}

impl<'a> ShownReader<'a> {
    /// For events that follow `from`, up to `upto`.
    #[must_use]
    pub fn new(entity_type: &'a EntityType, (from, upto): (HistoryNumber, HistoryNumber), bytes: &'a [u8]) -> Self {
        let (properties, methods) = MessageRange::of_shown(entity_type);
        Self {
            entity_type,
            properties,
            methods,
            last: from,
            upto,
            reader: Reader::new(bytes),
        }
    }

    /// Number of bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    /// The next event with its number; `None` at the end. `held` are the client's values by client number, with all
    /// earlier changes applied.
    ///
    /// # Errors
    /// When the bytes cannot be shown of this entity. Reading cannot continue after that.
    pub fn next_event(&mut self, held: &[Value]) -> Result<Option<(HistoryNumber, Shown)>, Malformed> {
        if self.reader.remaining() == 0 {
            return Ok(None);
        }
        let wrong = self.reader.malformed("history number");
        let (gap, is_reply) = match self.gap()? {
            None => (0, false),
            Some(0) => (0, true),
            Some(gap) => match self.gap()? {
                None => (gap, false),
                Some(0) => (gap, true),
                Some(_) => return Err(wrong),
            },
        };
        let number = self.last.0.checked_add(gap + 1).map(HistoryNumber);
        let number = number.filter(|&number| number <= self.upto).ok_or(wrong)?;
        if is_reply {
            let reply = Reply::read(self.entity_type, &mut self.reader)?;
            self.last = number;
            return Ok(Some((number, Shown::Reply(reply))));
        }
        let shown = match self.id()? {
            id @ (NESTED | SLICE) => self.part(id == SLICE, held)?,
            id if self.properties.contains(id) => {
                let (member, value) = self.property()?;
                let change = Change::whole(value);
                Shown::Property { member, change }
            }
            _ => self.method()?,
        };
        self.last = number;
        Ok(Some((number, shown)))
    }

    /// Takes the number behind the id of a gap, if that is next.
    fn gap(&mut self) -> Result<Option<u64>, Malformed> {
        if self.id()? != GAP {
            return Ok(None);
        }
        self.reader.byte("message id")?;
        self.reader.ordinal("gap").map(Some)
    }

    /// The first byte of a message, without consuming it.
    fn id(&self) -> Result<u8, Malformed> {
        self.reader.clone().byte("message id")
    }

    fn member(&mut self, range: MessageRange) -> Result<ClientMember, Malformed> {
        take_with(&mut self.reader, "message id", |bytes| {
            let (member, rest) = range.take(bytes)?;
            *bytes = rest;
            Some(ClientMember(member))
        })
    }

    fn property(&mut self) -> Result<(ClientMember, Value), Malformed> {
        let member = self.member(self.properties)?;
        let wrong = self.reader.malformed("value");
        let data_type = data_type(self.entity_type, member).ok_or(wrong)?;
        let value = take_value(&mut self.reader, data_type)?;
        Ok((member, value))
    }

    fn method(&mut self) -> Result<Shown, Malformed> {
        let member = self.member(self.methods)?;
        let wrong = self.reader.malformed("arguments");
        let method = method(self.entity_type, member).ok_or(wrong)?;
        let types = method.args.iter().map(|argument| &argument.data_type);
        let args = types.map(|data_type| take_value(&mut self.reader, data_type));
        Ok(Shown::Method {
            member,
            args: args.collect::<Result<_, _>>()?,
        })
    }

    fn part(&mut self, is_slice: bool, held: &[Value]) -> Result<Shown, Malformed> {
        self.reader.byte("message id")?;
        let among = among(self.entity_type);
        let packed = take_with(&mut self.reader, "path", |bytes| {
            unpack_path(bytes, is_slice, among, |property| held.get(property as usize))
        })?;
        let wrong = self.reader.malformed("path");
        let member = u16::try_from(packed.property).map(ClientMember).map_err(|_| wrong)?;
        let data_type = data_type(self.entity_type, member).ok_or(wrong)?;
        let part_type = packed.path.find_type(data_type).ok_or(wrong)?;
        let change = match (packed.slice, part_type) {
            (None, part_type) if packed.path != Path::WHOLE => {
                Change::part(packed.path, take_value(&mut self.reader, part_type)?)
            }
            (Some(slice), DataType::Array(sequence)) => {
                let inserted = take_with(&mut self.reader, "elements", |bytes| {
                    decode_elements(&sequence.of, Form::Shown, bytes).ok()
                })?;
                Change::splice(packed.path, slice.start, slice.end - slice.start, inserted)
            }
            _ => return Err(wrong),
        };
        Ok(Shown::Property { member, change })
    }
}

/// Reads properties as written by [`ShownWriter::property`], ascending by client number.
///
/// # Errors
/// When the bytes are not properties of this type.
pub fn read_properties(entity_type: &EntityType, bytes: &[u8]) -> Result<Vec<(ClientMember, Value)>, Malformed> {
    let mut reader = ShownReader::new(entity_type, (HistoryNumber(0), HistoryNumber(0)), bytes);
    let mut properties: Vec<(ClientMember, Value)> = Vec::new();
    while reader.reader.remaining() > 0 {
        let wrong = reader.reader.malformed("property");
        let (member, value) = reader.property()?;
        if properties.last().is_some_and(|(before, _)| *before >= member) {
            return Err(wrong);
        }
        properties.push((member, value));
    }
    Ok(properties)
}

/// The fingerprint of a change as a client was shown it, for comparison with the log: of the value's bytes for a whole
/// property, else of the path and the new content. `None` if the change does not fit the type.
#[must_use]
pub fn change_hash(data_type: &DataType, change: &Change) -> Option<Hash> {
    let part_type = change.path.find_type(data_type)?;
    let mut bytes = Vec::new();
    let steps = &change.path.0;
    match (&change.edit, part_type) {
        (Edit::Set(value), _) if steps.is_empty() => return property_hash(data_type, value),
        _ => put_number(&mut bytes, steps.len() as u64),
    }
    steps.iter().for_each(|&step| put_number(&mut bytes, step.into()));
    match (&change.edit, part_type) {
        (Edit::Set(value), part_type) => encode(part_type, value, Form::Shown, &mut bytes).ok()?,
        (Edit::Splice { at, removed, inserted }, DataType::Array(sequence)) => {
            put_number(&mut bytes, u64::from(*at));
            put_number(&mut bytes, u64::from(*removed));
            encode_elements(&sequence.of, inserted, Form::Shown, &mut bytes).ok()?;
        }
        _ => return None,
    }
    Some(value_hash(&bytes))
}

/// The fingerprint of a whole property as a client was shown it. `None` if the value does not fit.
#[must_use]
pub fn property_hash(data_type: &DataType, value: &Value) -> Option<Hash> {
    let mut bytes = Vec::new();
    encode(data_type, value, Form::Shown, &mut bytes).ok()?;
    Some(value_hash(&bytes))
}

/// The fingerprint of arguments as a client was shown them, for comparison with the log. `None` if they do not fit.
#[must_use]
pub fn args_hash(method: &Method, args: &[Value]) -> Option<Hash> {
    let mut bytes = Vec::new();
    put_values(method, &method.args, args, &mut bytes).ok()?;
    Some(value_hash(&bytes))
}

/// Appends arguments or return values of a method, which must be as many as are declared.
pub(super) fn put_values(
    method: &Method,
    declared: &[Argument],
    values: &[Value],
    bytes: &mut Vec<u8>,
) -> Result<(), ShowError> {
    if values.len() != declared.len() {
        return Err(ShowError::ArgumentCount {
            method: method.name.clone(),
            wanted: declared.len(),
            given: values.len(),
        });
    }
    for (argument, value) in declared.iter().zip(values) {
        encode(&argument.data_type, value, Form::Shown, bytes)?;
    }
    Ok(())
}

/// The number of properties by which a packed path encodes its own index.
fn among(entity_type: &EntityType) -> u32 {
    u32::try_from(entity_type.client_properties().len()).expect("invariant: at most MAX_MEMBERS members")
}

fn not_an_array(data_type: &DataType) -> EncodeError {
    let problem = Problem::Kind {
        wanted: data_type.to_string(),
        found: "a slice of an array",
    };
    EncodeError::Mismatch(Mismatch {
        at: Vec::new(),
        problem,
    })
}

fn data_type(entity_type: &EntityType, member: ClientMember) -> Option<&DataType> {
    let index = *entity_type.client_properties().get(usize::from(member.0))?;
    entity_type.property(index).map(|property| &property.data_type)
}

fn method(entity_type: &EntityType, member: ClientMember) -> Option<&Method> {
    let index = *entity_type.client_method_ids().get(usize::from(member.0))?;
    entity_type.client_methods.get(usize::from(index.0))
}

pub(super) fn take_value(reader: &mut Reader<'_>, data_type: &DataType) -> Result<Value, Malformed> {
    take_with(reader, "value", |bytes| decode(data_type, Form::Shown, bytes).ok())
}

/// Runs `take` on the bytes that are left.
pub(super) fn take_with<T>(
    reader: &mut Reader<'_>,
    what: &'static str,
    take: impl FnOnce(&mut &[u8]) -> Option<T>,
) -> Result<T, Malformed> {
    let wrong = reader.malformed(what);
    let bytes = reader.clone().take(reader.remaining(), what)?;
    let mut rest = bytes;
    let taken = take(&mut rest).ok_or(wrong)?;
    reader.take(bytes.len() - rest.len(), what)?;
    Ok(taken)
}
