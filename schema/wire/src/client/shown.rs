//! What a client is shown of an entity: its properties, and what happened to it. Whoever reads it needs the entity's type and
//! the values that the client holds, for nothing is said that these two tell.

use annals_def::{
    Change, DataType, Edit, EncodeError, EntityType, Form, Located, MessageRange, Method, Mismatch, Path, Problem,
    Value, decode, decode_elements, encode, encode_elements, unpack_path,
};
use annals_event::{Malformed, Reader, put_number};
use annals_ids::{Hash, HistoryNumber};

use super::{ClientMember, value_hash};

/// The id of a change of a part.
const NESTED: u8 = 0;

/// The id of a change of a slice.
const SLICE: u8 = 1;

/// The id of a gap in the history numbers.
const GAP: u8 = 2;

/// A history event as a client is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A property was changed.
    Property {
        /// Which of the type's client properties.
        member: ClientMember,
        /// How.
        change: Change,
    },
    /// A client method was called.
    Method {
        /// Which of the type's client methods.
        member: ClientMember,
        /// The arguments in the method's order.
        args: Vec<Value>,
    },
}

/// Writes what a client is shown of an entity that it knows as one of some type.
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

    /// How many bytes were written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a property as a whole, without a number. A member that the type does not have is passed over, here as below.
    ///
    /// # Errors
    /// When the value does not fit; nothing is appended.
    pub fn property(&mut self, member: ClientMember, value: &Value) -> Result<(), EncodeError> {
        let Some(data_type) = data_type(self.entity_type, member) else {
            return Ok(());
        };
        let start = self.bytes.len();
        self.properties.put(member.0, &mut self.bytes);
        encode(data_type, value, Form::Whole, &mut self.bytes).inspect_err(|_| self.bytes.truncate(start))
    }

    /// Appends a change of a property. `number` is above that of the event before.
    ///
    /// # Errors
    /// When the change does not fit; nothing is appended.
    pub fn change(
        &mut self,
        number: HistoryNumber,
        member: ClientMember,
        located: &Located,
    ) -> Result<(), EncodeError> {
        let change = located.change();
        let data_type = data_type(self.entity_type, member);
        let Some(part_type) = data_type.and_then(|data_type| change.path.find_type(data_type)) else {
            return Ok(());
        };
        let start = (self.bytes.len(), self.last);
        self.number(number);
        let put = match (&change.edit, part_type) {
            (Edit::Set(value), _) if change.path.0.is_empty() => self.property(member, value),
            (Edit::Set(value), _) => {
                self.path(NESTED, member, located);
                encode(part_type, value, Form::Whole, &mut self.bytes)
            }
            (Edit::Splice { inserted, .. }, DataType::Array(sequence)) => {
                self.path(SLICE, member, located);
                encode_elements(&sequence.of, inserted, &mut self.bytes)
            }
            (Edit::Splice { .. }, other) => Err(not_an_array(other)),
        };
        put.inspect_err(|_| self.undo(start))
    }

    /// Appends a call of a client method. `number` is above that of the event before.
    ///
    /// # Errors
    /// When the arguments do not fit; nothing is appended.
    pub fn method(&mut self, number: HistoryNumber, member: ClientMember, args: &[Value]) -> Result<(), EncodeError> {
        let Some(method) = method(self.entity_type, member) else {
            return Ok(());
        };
        let start = (self.bytes.len(), self.last);
        self.number(number);
        self.methods.put(member.0, &mut self.bytes);
        let mut args = method.args.iter().zip(args);
        args.try_for_each(|(argument, value)| encode(&argument.data_type, value, Form::Whole, &mut self.bytes))
            .inspect_err(|_| self.undo(start))
    }

    fn path(&mut self, id: u8, member: ClientMember, located: &Located) {
        let among = self.entity_type.client_properties().len();
        let among = u32::try_from(among).expect("invariant: at most MAX_MEMBERS members");
        self.bytes.push(id);
        located.pack((member.0.into(), among), &mut self.bytes);
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

/// Reads what [`ShownWriter`] wrote, one event after the other.
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

    /// The next event with its number; `None` behind the last. `held` are the client's values by client number, in which all
    /// changes before were made.
    ///
    /// # Errors
    /// When the bytes are nothing that can be shown of this entity. What follows cannot be read.
    pub fn next_event(&mut self, held: &[Value]) -> Result<Option<(HistoryNumber, Shown)>, Malformed> {
        if self.reader.remaining() == 0 {
            return Ok(None);
        }
        let wrong = self.reader.malformed("history number");
        let mut step = 1;
        if self.id()? == GAP {
            self.reader.byte("message id")?;
            let gap = self.reader.ordinal("gap")?;
            step = Some(gap).filter(|&gap| gap > 0).ok_or(wrong)? + 1;
        }
        let number = self.last.0.checked_add(step).map(HistoryNumber);
        let number = number.filter(|&number| number <= self.upto).ok_or(wrong)?;
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

    /// The first byte of a message, which is left there.
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
        let among = u32::try_from(held.len()).unwrap_or(u32::MAX);
        let packed = take_with(&mut self.reader, "path", |bytes| {
            unpack_path(bytes, is_slice, among, |property| held.get(property as usize)).ok()
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
                    decode_elements(&sequence.of, bytes).ok()
                })?;
                Change::splice(packed.path, slice.start, slice.end - slice.start, inserted)
            }
            _ => return Err(wrong),
        };
        Ok(Shown::Property { member, change })
    }
}

/// Reads properties as [`ShownWriter::property`] wrote them, ascending by client number.
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

/// The fingerprint of a change as a client was shown it, for comparison with the log: that of the value's bytes for a whole
/// property, else that of the place and what was put there. `None` if the change does not fit the type.
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
        (Edit::Set(value), part_type) => encode(part_type, value, Form::Whole, &mut bytes).ok()?,
        (Edit::Splice { at, removed, inserted }, DataType::Array(sequence)) => {
            put_number(&mut bytes, u64::from(*at));
            put_number(&mut bytes, u64::from(*removed));
            encode_elements(&sequence.of, inserted, &mut bytes).ok()?;
        }
        _ => return None,
    }
    Some(value_hash(&bytes))
}

/// The fingerprint of a whole property as a client was shown it. `None` if the value does not fit.
#[must_use]
pub fn property_hash(data_type: &DataType, value: &Value) -> Option<Hash> {
    let mut bytes = Vec::new();
    encode(data_type, value, Form::Whole, &mut bytes).ok()?;
    Some(value_hash(&bytes))
}

/// The fingerprint of arguments as a client was shown them, for comparison with the log. `None` if they do not fit.
#[must_use]
pub fn args_hash(method: &Method, args: &[Value]) -> Option<Hash> {
    let mut bytes = Vec::new();
    for (argument, value) in method.args.iter().zip(args) {
        encode(&argument.data_type, value, Form::Whole, &mut bytes).ok()?;
    }
    Some(value_hash(&bytes))
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

fn take_value(reader: &mut Reader<'_>, data_type: &DataType) -> Result<Value, Malformed> {
    take_with(reader, "value", |bytes| decode(data_type, Form::Whole, bytes).ok())
}

/// Takes what `take` takes off the front of the bytes that are left.
fn take_with<T>(
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
