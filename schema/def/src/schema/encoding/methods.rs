//! Methods and their arguments.

use annals_ids::MemberId;

use super::{
    Input, MAX_TYPE_DEPTH, NO_HEADER, Read, SchemaProblem, put_data_type, put_header, put_list, put_name, put_option,
};
use crate::schema::{Argument, Exposure, MAX_CALLS_PER_MINUTE, MAX_MEMBERS, Method};

pub(super) fn put_method(method: &Method, out: &mut Vec<u8>) {
    put_name(&method.name, out);
    for arguments in [&method.args, &method.returns] {
        put_list(arguments, out, |argument, out| {
            put_name(&argument.name, out);
            put_data_type(&argument.data_type, out);
        });
    }
    out.push(match method.exposed {
        Exposure::No => 0,
        Exposure::OwnClient => 1,
        Exposure::AllClients => 2,
    });
    put_option(method.detail_distance, out, |metres, out| {
        out.extend(metres.to_le_bytes());
    });
    out.push(
        u8::from(method.latest_only)
            | u8::from(method.reliable) << 1
            | u8::from(method.header_size != NO_HEADER) << 2
            | u8::from(method.calls_per_minute.is_some()) << 3,
    );
    put_option(method.protocol_id, out, |id, out| {
        out.extend(id.to_le_bytes());
    });
    put_header(method.header_size, out);
    if let Some(calls) = method.calls_per_minute {
        out.extend(calls.to_le_bytes());
    }
}

impl Input<'_> {
    pub(super) fn method(&mut self) -> Read<Method> {
        let name = self.name()?;
        let args = self.list("arguments", MAX_MEMBERS, Self::argument)?;
        let returns = self.list("return values", MAX_MEMBERS, Self::argument)?;
        let exposed = match self.u8()? {
            0 => Exposure::No,
            1 => Exposure::OwnClient,
            2 => Exposure::AllClients,
            other => return Err(SchemaProblem::Code(other, "an exposure")),
        };
        let detail_distance = self.option(|input| input.distance("a detail distance"))?;
        let flags = self.u8()?;
        let is_limited = flags & 8 != 0;
        if flags >= 1 << 4 || (is_limited && exposed == Exposure::No) {
            return Err(SchemaProblem::Code(flags, "method flags"));
        }
        Ok(Method {
            index: MemberId(0),
            name,
            args,
            returns,
            exposed,
            detail_distance,
            latest_only: flags & 1 != 0,
            reliable: flags & 2 != 0,
            protocol_id: self.option(Self::u16)?,
            header_size: self.header(flags & 4 != 0)?,
            calls_per_minute: is_limited.then(|| self.calls_per_minute()).transpose()?,
            client_id: None,
        })
    }

    fn calls_per_minute(&mut self) -> Read<u32> {
        let calls = self.u32()?;
        if (1..=MAX_CALLS_PER_MINUTE).contains(&calls) {
            Ok(calls)
        } else {
            Err(SchemaProblem::Limit("calls per minute"))
        }
    }

    fn argument(&mut self) -> Read<Argument> {
        Ok(Argument {
            name: self.name()?,
            data_type: self.data_type(MAX_TYPE_DEPTH, &mut 0)?,
        })
    }
}
