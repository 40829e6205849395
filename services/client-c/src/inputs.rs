//! Pointers and plain structures that cross the boundary. All pointers from outside are read here.

use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
    ptr, slice,
};

use annals_ids::{Direction, Part, Position};

use crate::failure::{Failure, answering};

/// A part of an entity, and the view that shows it: ANNALS_PART_BASE or ANNALS_PART_CELL.
pub type AnnalsPart = u32;

/// The base part, without a place. The base's view shows the client's own entity alone.
pub const ANNALS_PART_BASE: AnnalsPart = 0;

/// The cell part, which is somewhere in a space. The cell's view shows the surroundings.
pub const ANNALS_PART_CELL: AnnalsPart = 1;

/// Text in UTF-8, not NUL-terminated. An absent text has no bytes and the length 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsText {
    pub bytes: *const c_char,
    pub length: usize,
}

/// Bytes. Absent ones are NULL, with the length 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsBytes {
    pub bytes: *const u8,
    pub length: usize,
}

/// A place in a space, metres. `y` is the height.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnnalsPosition {
    pub x: f32,
    pub y: f32,
    pub z: f32,
}

/// A direction, radians.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnnalsDirection {
    pub yaw: f32,
    pub pitch: f32,
    pub roll: f32,
}

impl AnnalsText {
    pub(crate) const NONE: Self = Self {
        bytes: ptr::null(),
        length: 0,
    };

    pub(crate) fn new(text: &str) -> Self {
        Self {
            bytes: text.as_ptr().cast(),
            length: text.len(),
        }
    }
}

impl AnnalsBytes {
    pub(crate) const NONE: Self = Self {
        bytes: ptr::null(),
        length: 0,
    };

    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.as_ptr(),
            length: bytes.len(),
        }
    }
}

impl From<Position> for AnnalsPosition {
    fn from(Position { x, y, z }: Position) -> Self {
        Self { x, y, z }
    }
}

impl From<AnnalsPosition> for Position {
    fn from(AnnalsPosition { x, y, z }: AnnalsPosition) -> Self {
        Self { x, y, z }
    }
}

impl From<Direction> for AnnalsDirection {
    fn from(Direction { yaw, pitch, roll }: Direction) -> Self {
        Self { yaw, pitch, roll }
    }
}

impl From<AnnalsDirection> for Direction {
    fn from(AnnalsDirection { yaw, pitch, roll }: AnnalsDirection) -> Self {
        Self { yaw, pitch, roll }
    }
}

/// The number of a part.
pub(crate) fn part_number(part: Part) -> AnnalsPart {
    match part {
        Part::Base => ANNALS_PART_BASE,
        Part::Cell => ANNALS_PART_CELL,
    }
}

/// The part with this number.
pub(crate) fn part_of(number: AnnalsPart) -> Result<Part, Failure> {
    match number {
        ANNALS_PART_BASE => Ok(Part::Base),
        ANNALS_PART_CELL => Ok(Part::Cell),
        other => Err(Failure::argument(format!(
            "there is no part {other}; pass ANNALS_PART_BASE or ANNALS_PART_CELL"
        ))),
    }
}

/// What a pointer points to.
///
/// # Safety
/// The pointer is NULL or misaligned, or points to a `T` that nothing changes or frees as long as the result is used.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    check(pointer, name)?;
    // SAFETY: neither NULL nor misaligned, and so as promised by the caller.
    Ok(unsafe { &*pointer })
}

/// The same, to change it.
///
/// # Safety
/// The pointer is NULL or misaligned, or points to a `T` that nothing else uses as long as the result is used.
pub(crate) unsafe fn borrow_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    check(pointer, name)?;
    // SAFETY: neither NULL nor misaligned, and so as promised by the caller.
    Ok(unsafe { &mut *pointer })
}

/// The elements that a pointer points to; NULL is allowed if there are none.
///
/// # Safety
/// The pointer is NULL or misaligned, or points to this many `T` that nothing changes or frees as long as the result is
/// used.
pub(crate) unsafe fn elements<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    if count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{name}: there cannot be {count} of them")));
    }
    // SAFETY: neither NULL nor misaligned, of a possible size, and so as promised by the caller.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Room for elements; NULL is allowed if it is for none.
///
/// # Safety
/// The pointer is NULL or misaligned, or points to room for this many `T` that nothing else uses as long as the result is
/// used.
pub(crate) unsafe fn room<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, name)?;
    if count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{name}: there cannot be {count} of them")));
    }
    // SAFETY: neither NULL nor misaligned, of a possible size, and so as promised by the caller.
    Ok(unsafe { slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// NUL-terminated UTF-8.
///
/// # Safety
/// The pointer is NULL, or points to a NUL-terminated text that nothing changes or frees as long as the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    check(pointer, name)?;
    // SAFETY: not NULL, and so as promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
}

/// The same, or nothing for NULL.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as promised by the caller.
    unsafe { text(pointer, name) }.map(Some)
}

/// Writes a result, unless there is no place for it.
///
/// # Safety
/// The pointer is NULL or misaligned, or a place for a `T`.
pub(crate) unsafe fn put<T>(place: *mut T, result: T) {
    if !place.is_null() && place.is_aligned() {
        // SAFETY: neither NULL nor misaligned, and so as promised by the caller.
        unsafe { place.write(result) };
    }
}

/// Frees what [`Box::into_raw`] has made.
///
/// # Safety
/// The pointer is NULL, or was made so and not freed.
pub(crate) unsafe fn give_up<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: not NULL, and so as promised by the caller.
        let owned = unsafe { Box::from_raw(pointer) };
        answering((), || {
            drop(owned);
            Ok(())
        });
    }
}

fn check<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!(
            "{name} is not a valid pointer: it is misaligned"
        )));
    }
    Ok(())
}
