//! The definitions, and the types of members in them.

use std::{ffi::c_char, path::Path, ptr, sync::Arc};

use annals_def::{DataType, EntityType, Schema, Style, check_dir, render};
use annals_ids::TypeId;

use crate::{
    failure::{AnnalsError, AnnalsErrorCode, Failure, answering, reporting},
    inputs::{AnnalsText, borrow, elements, give_up, put, text},
    value::{AnnalsValueKind, kind_of_type},
};

/// The definitions of a realm's world. Any number of clients may use them, in any thread.
#[derive(Debug)]
pub struct AnnalsSchema(pub(crate) Arc<Schema>);

/// The type of a property, of an argument or of a part of them; valid as long as the schema it is from.
//
// Pointers to it are pointers to a [`DataType`].
#[derive(Debug)]
pub struct AnnalsType {
    _opaque: (),
}

/// Reads definitions that `annals defs compile` has written. NULL after an error. Free them with annals_schema_free; a
/// client keeps what it needs of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_decode(
    bytes: *const u8,
    length: usize,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsSchema {
    let body = || {
        // SAFETY: the caller passes that many bytes.
        let bytes = unsafe { elements(bytes, length, "bytes") }?;
        let schema = Schema::decode(bytes).map_err(|error| Failure::of(AnnalsErrorCode::Schema, &error))?;
        Ok(handed(schema))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

/// Reads and compiles a folder of `.def` files: the one with `entities.xml`, or the one above its `scripts/`. NULL after
/// an error, whose text lists all mistakes. For development: a released game has the file of annals_schema_decode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_from_folder(
    folder: *const c_char,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsSchema {
    let body = || {
        // SAFETY: the caller passes NULL or a text.
        let folder = unsafe { text(folder, "folder") }?;
        let (schema, diagnostics) = check_dir(Path::new(folder));
        let schema = schema.ok_or_else(|| Failure::new(AnnalsErrorCode::Schema, render(&diagnostics, Style::Plain)))?;
        Ok(handed(schema))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

fn handed(schema: Schema) -> *mut AnnalsSchema {
    Box::into_raw(Box::new(AnnalsSchema(Arc::new(schema))))
}

/// Frees definitions. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_free(schema: *mut AnnalsSchema) {
    // SAFETY: the caller passes NULL or a schema of this library that was not freed.
    unsafe { give_up(schema) }
}

/// The name of the entity type with this `type_id`, valid as long as the definitions; empty if there is none. Types are
/// numbered from 0 without gaps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_type_name(schema: *const AnnalsSchema, type_id: u16) -> AnnalsText {
    answering(AnnalsText::NONE, || {
        // SAFETY: the caller passes NULL or a schema.
        let found = unsafe { borrow(schema, "schema") }?.0.entity_type(TypeId(type_id));
        Ok(found.map_or(AnnalsText::NONE, |found| AnnalsText::new(&found.name)))
    })
}

/// The name of a type's property that clients are shown, from 0, valid as long as the definitions; empty if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_property_name(
    schema: *const AnnalsSchema,
    type_id: u16,
    index: usize,
) -> AnnalsText {
    answering(AnnalsText::NONE, || {
        // SAFETY: the caller passes NULL or a schema.
        let found = unsafe { borrow(schema, "schema") }?.0.entity_type(TypeId(type_id));
        let property = found.and_then(|found| found.property(*found.client_properties().get(index)?));
        Ok(property.map_or(AnnalsText::NONE, |property| AnnalsText::new(&property.name)))
    })
}

/// The type of a property that clients are shown; NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_property_type(
    schema: *const AnnalsSchema,
    entity_type: *const c_char,
    property: *const c_char,
    error: *mut *mut AnnalsError,
) -> *const AnnalsType {
    let body = || {
        // SAFETY: the caller passes NULL or a schema, and NULL or texts.
        let (schema, type_name, name) = unsafe {
            (
                borrow(schema, "schema")?,
                text(entity_type, "entity_type")?,
                text(property, "property")?,
            )
        };
        let entity_type = type_named(schema, type_name)?;
        let found = entity_type.property_named(name);
        let found = found.filter(|property| property.client_id.is_some());
        let found =
            found.ok_or_else(|| no_member(format!("{type_name} has no property {name} that clients are shown")))?;
        Ok(of(&found.data_type))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null(), body) }
}

/// The type of an argument, from 0, of a client method, or of an exposed method of the base or cell part; NULL after an
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_schema_argument_type(
    schema: *const AnnalsSchema,
    entity_type: *const c_char,
    method: *const c_char,
    argument: usize,
    error: *mut *mut AnnalsError,
) -> *const AnnalsType {
    let body = || {
        // SAFETY: the caller passes NULL or a schema, and NULL or texts.
        let (schema, type_name, name) = unsafe {
            (
                borrow(schema, "schema")?,
                text(entity_type, "entity_type")?,
                text(method, "method")?,
            )
        };
        let entity_type = type_named(schema, type_name)?;
        let found = entity_type
            .client_method_named(name)
            .or_else(|| {
                entity_type
                    .cell_method_named(name)
                    .filter(|method| method.client_id.is_some())
            })
            .or_else(|| {
                entity_type
                    .base_method_named(name)
                    .filter(|method| method.client_id.is_some())
            });
        let found = found.ok_or_else(|| no_member(format!("{type_name} has no method {name} that clients know")))?;
        let found = found.args.get(argument).ok_or_else(|| {
            let count = found.args.len();
            Failure::argument(format!(
                "{type_name}.{name} has {count} arguments, and not one of index {argument}"
            ))
        })?;
        Ok(of(&found.data_type))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null(), body) }
}

fn type_named<'s>(schema: &'s AnnalsSchema, name: &str) -> Result<&'s EntityType, Failure> {
    let found = schema.0.type_named(name);
    found.ok_or_else(|| no_member(format!("the definitions have no entity type {name}")))
}

fn no_member(text: String) -> Failure {
    Failure::new(AnnalsErrorCode::NoSuchMember, text)
}

fn of(data_type: &DataType) -> *const AnnalsType {
    ptr::from_ref(data_type).cast()
}

/// The type that a pointer from outside points to.
///
/// # Safety
/// `data_type` is NULL or misaligned, or a type whose schema nothing frees as long as the result is used.
unsafe fn type_at<'a>(data_type: *const AnnalsType) -> Result<&'a DataType, Failure> {
    // SAFETY: as promised by the caller.
    unsafe { borrow(data_type.cast(), "type") }
}

/// The kind of the values of a type. A FIXED_DICT that allows it may also be none, and so may a mailbox.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_type_get_kind(data_type: *const AnnalsType) -> AnnalsValueKind {
    answering(AnnalsValueKind::None, || {
        // SAFETY: the caller passes NULL or a type of this library.
        Ok(kind_of_type(unsafe { type_at(data_type) }?))
    })
}

/// The number of fields of a dictionary's type, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_type_field_count(data_type: *const AnnalsType) -> usize {
    answering(0, || {
        // SAFETY: the caller passes NULL or a type of this library.
        Ok(match unsafe { type_at(data_type) }? {
            DataType::FixedDict(dict) => dict.fields.len(),
            _ => 0,
        })
    })
}

/// The name of a field, from 0; empty if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_type_field_name(data_type: *const AnnalsType, field: usize) -> AnnalsText {
    answering(AnnalsText::NONE, || {
        // SAFETY: the caller passes NULL or a type of this library.
        Ok(match unsafe { type_at(data_type) }? {
            DataType::FixedDict(dict) => dict
                .fields
                .get(field)
                .map_or(AnnalsText::NONE, |field| AnnalsText::new(&field.name)),
            _ => AnnalsText::NONE,
        })
    })
}

/// Finds a field by its name: its index in the values of the type, for annals_value_at. Look it up once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_type_field(
    data_type: *const AnnalsType,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut AnnalsError,
) -> bool {
    let body = || {
        // SAFETY: the caller passes NULL or a type of this library, and NULL or a text.
        let (data_type, name) = unsafe { (type_at(data_type)?, text(name, "name")?) };
        let DataType::FixedDict(dict) = data_type else {
            return Err(no_member(format!("{data_type} has no fields")));
        };
        let found = dict.fields.iter().position(|field| field.name == name);
        let found = found.ok_or_else(|| no_member(format!("the FIXED_DICT has no field {name}")))?;
        // SAFETY: the caller passes NULL or a place for a number.
        unsafe { put(index, found) };
        Ok(true)
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, false, body) }
}

/// The type of a dictionary's field, from 0, or, with any index, of a list's elements; NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_type_part(data_type: *const AnnalsType, index: usize) -> *const AnnalsType {
    answering(ptr::null(), || {
        // SAFETY: the caller passes NULL or a type of this library.
        Ok(match unsafe { type_at(data_type) }? {
            DataType::FixedDict(dict) => dict.fields.get(index).map_or(ptr::null(), |field| of(&field.data_type)),
            DataType::Array(sequence) | DataType::Tuple(sequence) => of(&sequence.of),
            _ => ptr::null(),
        })
    })
}
