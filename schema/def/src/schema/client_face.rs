//! The part of a schema that clients know, and its fingerprint.
//!
//! ```text
//! face      = version:u8 (type-number:u16 type)*          types that clients can meet, in order
//! type      = name list(property) list(method){3: client, exposed base, exposed cell}
//! property  = name shape default eyes:u8 account          by client number; eyes: 1 own, 2 others, 4 in the base part,
//!                                                         8 a view of an account
//! account   = slot:u16 named:bool kind:u32                if it is a view, else nothing; kind 0 if none is named
//! method    = name exposure:u8 list(name shape) returns   by client number; exposure + 4 if it answers clients
//! returns   = list(name shape)                            if there are any, else nothing
//! shape     = the data type without what only databases and scripts look at
//! ```
//!
//! It contains names because clients are written against them: if two members of one type were exchanged, every frame
//! would still decode, but to wrong values.

use std::collections::BTreeSet;

use annals_ids::{Hash, MemberId, TypeId};
use sha2::{Digest, Sha256};

use super::{AccountView, Argument, EntityType, Exposure, Method, Property, Schema};
use crate::{
    data_type::{DataType, FixedDict, Form},
    stream,
};

/// The version of this form; it is part of the fingerprint.
const VERSION: u8 = 1;

impl Schema {
    /// SHA-256 of the part of the schema that clients know; clients send it in their hello. No client can distinguish
    /// two schemas with the same fingerprint. Computed on first use.
    #[must_use]
    pub fn client_fingerprint(&self) -> Hash {
        *self.client_fingerprint.get_or_init(|| self.hash_face())
    }

    fn hash_face(&self) -> Hash {
        let mut out = vec![VERSION];
        let shown = self.shown_types();
        for entity_type in shown.iter().filter_map(|&id| self.entity_type(id)) {
            out.extend(entity_type.id.0.to_le_bytes());
            put_type(entity_type, &mut out);
        }
        Hash(Sha256::digest(&out).into())
    }

    /// The types that clients can meet, each as its `ClientName` type if it has one.
    #[must_use]
    pub fn shown_types(&self) -> BTreeSet<TypeId> {
        let shown = self.types().iter().filter(|entity_type| has_clients(entity_type));
        shown
            .map(|entity_type| entity_type.client_type.unwrap_or(entity_type.id))
            .collect()
    }
}

fn has_clients(entity_type: &EntityType) -> bool {
    let lists = [
        entity_type.client_properties(),
        entity_type.client_method_ids(),
        entity_type.exposed_base_methods(),
        entity_type.exposed_cell_methods(),
    ];
    entity_type.parts.client || lists.iter().any(|list| !list.is_empty())
}

fn put_type(entity_type: &EntityType, out: &mut Vec<u8>) {
    put_name(&entity_type.name, out);
    let properties = entity_type.client_properties().iter();
    put_list(properties.filter_map(|&id| entity_type.property(id)), out, put_property);
    for (ids, methods, answers) in [
        (entity_type.client_method_ids(), &entity_type.client_methods, false),
        (entity_type.exposed_base_methods(), &entity_type.base_methods, true),
        (entity_type.exposed_cell_methods(), &entity_type.cell_methods, true),
    ] {
        put_list(members(ids, methods), out, |method, out| {
            put_method(method, answers, out);
        });
    }
}

fn members<'a, M>(ids: &'a [MemberId], members: &'a [M]) -> impl Iterator<Item = &'a M> {
    ids.iter().filter_map(|id| members.get(usize::from(id.0)))
}

fn put_property(property: &Property, out: &mut Vec<u8>) {
    put_name(&property.name, out);
    put_shape(&property.data_type, out);
    stream::encode(&property.data_type, &property.default, Form::Whole, out)
        .expect("invariant: a compiled default fits its type");
    let distribution = property.distribution;
    out.push(
        u8::from(distribution.to_own_client())
            | u8::from(distribution.to_other_clients()) << 1
            | u8::from(distribution.on_base()) << 2
            | u8::from(property.account.is_some()) << 3,
    );
    // A property that becomes a view, or a view of another account, has another meaning without a change in its
    // history.
    if let Some(AccountView { slot, shows }) = property.account {
        out.extend(slot.0.to_le_bytes());
        out.push(shows.kind().is_some().into());
        out.extend(shows.kind().unwrap_or_default().0.to_le_bytes());
    }
}

/// Writes a method, with what it returns if methods of its kind answer clients.
fn put_method(method: &Method, answers: bool, out: &mut Vec<u8>) {
    put_name(&method.name, out);
    let exposure = match method.exposed {
        Exposure::No => 0,
        Exposure::OwnClient => 1,
        Exposure::AllClients => 2,
    };
    let answers = answers && method.is_two_way();
    out.push(exposure | u8::from(answers) << 2);
    put_arguments(&method.args, out);
    if answers {
        put_arguments(&method.returns, out);
    }
}

fn put_arguments(arguments: &[Argument], out: &mut Vec<u8>) {
    put_list(arguments.iter(), out, |argument, out| {
        put_name(&argument.name, out);
        put_shape(&argument.data_type, out);
    });
}

fn put_shape(data_type: &DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            put_name(
                if matches!(data_type, DataType::Array(_)) {
                    "ARRAY"
                } else {
                    "TUPLE"
                },
                out,
            );
            out.push(sequence.size.is_some().into());
            out.extend(sequence.size.unwrap_or(0).to_le_bytes());
            put_shape(&sequence.of, out);
        }
        DataType::FixedDict(dict) => {
            let FixedDict { fields, allow_none, .. } = &**dict;
            put_name("FIXED_DICT", out);
            out.push((*allow_none).into());
            put_list(fields.iter(), out, |field, out| {
                put_name(&field.name, out);
                put_shape(&field.data_type, out);
            });
        }
        simple => put_name(&simple.to_string(), out),
    }
}

fn put_list<T>(items: impl Iterator<Item = T>, out: &mut Vec<u8>, put: impl Fn(T, &mut Vec<u8>)) {
    let at = out.len();
    put_count(0, out);
    let mut count = 0;
    for item in items {
        put(item, out);
        count += 1;
    }
    let mut bytes = Vec::new();
    put_count(count, &mut bytes);
    out[at..at + bytes.len()].copy_from_slice(&bytes);
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    put_count(name.len(), out);
    out.extend(name.as_bytes());
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    let count = u32::try_from(count).expect("invariant: sources are far smaller");
    out.extend(count.to_le_bytes());
}
