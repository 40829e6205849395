//! Fields that several frames share.

use std::net::{IpAddr, SocketAddr};

use annals_event::{Malformed, Reader, put_number};
use annals_ids::{Direction, EntityId, Hash, Part, Position, TypeId};

use super::Secret;

pub(super) fn put_part(out: &mut Vec<u8>, part: Part) {
    out.push(match part {
        Part::Base => 0,
        Part::Cell => 1,
    });
}

pub(super) fn take_part(reader: &mut Reader<'_>) -> Result<Part, Malformed> {
    let wrong = reader.malformed("part");
    match reader.byte("part")? {
        0 => Ok(Part::Base),
        1 => Ok(Part::Cell),
        _ => Err(wrong),
    }
}

pub(super) fn put_entity(out: &mut Vec<u8>, entity: EntityId) {
    put_number(out, entity.0);
}

pub(super) fn take_entity(reader: &mut Reader<'_>) -> Result<EntityId, Malformed> {
    reader.number("entity").map(EntityId)
}

pub(super) fn put_type(out: &mut Vec<u8>, type_id: TypeId) {
    put_number(out, type_id.0.into());
}

pub(super) fn take_type(reader: &mut Reader<'_>) -> Result<TypeId, Malformed> {
    reader.narrow("type").map(TypeId)
}

pub(super) fn take_secret(reader: &mut Reader<'_>) -> Result<Secret, Malformed> {
    reader.array("secret").map(Secret)
}

/// Takes text of at most `limit` bytes.
pub(super) fn take_text(reader: &mut Reader<'_>, limit: usize, what: &'static str) -> Result<String, Malformed> {
    let wrong = reader.malformed(what);
    let bytes = reader.bytes(what)?;
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= limit => Ok(text.to_owned()),
        _ => Err(wrong),
    }
}

pub(super) fn put_position(out: &mut Vec<u8>, position: Position) {
    [position.x, position.y, position.z]
        .iter()
        .for_each(|axis| out.extend(axis.to_le_bytes()));
}

pub(super) fn take_position(reader: &mut Reader<'_>) -> Result<Position, Malformed> {
    let wrong = reader.malformed("position");
    let [x, y, z] = take_floats(reader, "position")?;
    Some(Position { x, y, z })
        .filter(|position| position.is_finite())
        .ok_or(wrong)
}

pub(super) fn put_direction(out: &mut Vec<u8>, direction: Direction) {
    [direction.yaw, direction.pitch, direction.roll]
        .iter()
        .for_each(|angle| out.extend(angle.to_le_bytes()));
}

pub(super) fn take_direction(reader: &mut Reader<'_>) -> Result<Direction, Malformed> {
    let wrong = reader.malformed("direction");
    let [yaw, pitch, roll] = take_floats(reader, "direction")?;
    Some(Direction { yaw, pitch, roll })
        .filter(|direction| direction.is_finite())
        .ok_or(wrong)
}

fn take_floats(reader: &mut Reader<'_>, what: &'static str) -> Result<[f32; 3], Malformed> {
    let mut floats = [0.0; 3];
    for float in &mut floats {
        *float = f32::from_le_bytes(reader.array(what)?);
    }
    Ok(floats)
}

pub(super) fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend(ip.octets());
        }
    }
    out.extend(address.port().to_be_bytes());
}

pub(super) fn take_address(reader: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let wrong = reader.malformed("address");
    let ip: IpAddr = match reader.byte("address")? {
        4 => reader.array::<4>("address")?.into(),
        6 => reader.array::<16>("address")?.into(),
        _ => return Err(wrong),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(reader.array("port")?)))
}

pub(super) fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}

pub(super) fn take_option<T>(
    reader: &mut Reader<'_>,
    what: &'static str,
    take: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    let wrong = reader.malformed(what);
    match reader.byte(what)? {
        0 => Ok(None),
        1 => take(reader).map(Some),
        _ => Err(wrong),
    }
}

pub(super) fn put_certificate(out: &mut Vec<u8>, certificate: Option<Hash>) {
    put_option(out, certificate, |out, hash| out.extend(hash.0));
}

pub(super) fn take_certificate(reader: &mut Reader<'_>) -> Result<Option<Hash>, Malformed> {
    take_option(reader, "certificate", |reader| reader.hash("certificate"))
}

/// Takes a byte that encodes one of a list of reasons.
pub(super) fn take_reason<T>(reader: &mut Reader<'_>, from_code: impl Fn(u8) -> Option<T>) -> Result<T, Malformed> {
    let wrong = reader.malformed("reason");
    from_code(reader.byte("reason")?).ok_or(wrong)
}
