//! Advice on methods.

use super::{Advice, MethodUse, has, is_unbounded, place};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule},
    grammar::Dialect,
    read::MethodPart,
    schema::Exposure,
    survey::origin::arguments,
};

impl Advice<'_, '_> {
    pub(super) fn method(&mut self, used: &MethodUse<'_>) {
        self.types_of_arguments(used);
        let (method, name) = (used.method, &used.method.name);
        let is_exposed = method.exposed != Exposure::No;
        let unbounded = method.args.iter().find(|arg| is_unbounded(&arg.data_type));
        if let (true, Some(arg)) = (is_exposed, unbounded) {
            let message = format!("clients can send values of any size as `{}` of `{name}`", arg.name);
            let finding = Finding::new(Rule::UnboundedArgument, used.argument(&arg.name), message)
                .help("declare a bounded type: a number of fixed size, a sequence with a `<size>`");
            self.report(finding);
        }
        let exposed = used.section.child("Exposed");
        let says_nothing = exposed.is_some_and(|exposed| !exposed.has_text());
        if used.part == MethodPart::Cell && says_nothing && self.dialect == Dialect::BigWorld {
            let message = format!("every client that sees the entity can call `{name}`");
            let finding = Finding::new(Rule::ExposedSilently, place(used.section, "Exposed"), message)
                .help("write `<Exposed> OWN_CLIENT </Exposed>`, or ALL_CLIENTS if that is intended");
            self.report(finding);
        }
        let is_seen = used.heirs.iter().any(|heir| heir.parts.cell && heir.parts.client);
        let is_variable = method.stream_size().is_none_or(|size| size > super::LARGE);
        if used.part == MethodPart::Client && is_seen && is_variable && method.detail_distance.is_none() {
            let message = format!("`{name}` is sent at any distance when it is called on all clients");
            let finding = Finding::new(Rule::SentFar, used.span, message)
                .help("add a `<DetailDistance>` in metres; calls to the own client ignore it");
            self.report(finding);
        }
    }

    fn types_of_arguments(&mut self, used: &MethodUse<'_>) {
        let (method, name) = (used.method, &used.method.name);
        let is_sent = used.part == MethodPart::Client || method.exposed != Exposure::No;
        for arg in &method.args {
            let whose = format!("`{}` of `{name}`", arg.name);
            if !is_sent && has(&arg.data_type, |part| matches!(part, DataType::Python(_))) {
                let message = format!("{whose} can be interpreted by scripts only");
                let finding = Finding::new(Rule::OpaqueValue, used.argument(&arg.name), message)
                    .help("declare its content: a FIXED_DICT, an ARRAY, a STRING");
                self.report(finding);
            }
            if is_sent && has(&arg.data_type, |part| *part == DataType::Float64) {
                let message = format!("{whose} is sent with 64 bits");
                let finding = Finding::new(Rule::WideFloat, used.argument(&arg.name), message)
                    .help("use FLOAT32: its 7 digits are enough for display");
                self.report(finding);
            }
            let is_bigworld = self.dialect == Dialect::BigWorld;
            if is_sent && is_bigworld && has(&arg.data_type, |part| *part == DataType::String) {
                let message = format!("{whose} is sent as bytes");
                let finding = Finding::new(Rule::BytesForText, used.argument(&arg.name), message)
                    .help("make it a UNICODE_STRING if it is text for people, else a BLOB");
                self.report(finding);
            }
        }
    }
}

impl MethodUse<'_> {
    /// The place of an argument's type.
    fn argument(&self, name: &str) -> crate::source::Span {
        let sections = arguments(self.section);
        let position = self.method.args.iter().position(|arg| arg.name == name);
        let section = position.and_then(|at| sections.get(at)).copied();
        section
            .filter(|section| section.has_text())
            .map_or(self.span, |section| section.text_span())
    }
}
