//! Methods: arguments, return values, and who may call them.

use std::borrow::Cow;

use super::{Dialect, Reading};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule, Severity},
    grammar::{self, ARG, Content, EXPOSURES_OF_BASE, EXPOSURES_OF_CELL},
    names::Names,
    schema::{Exposure, MAX_CALLS_PER_MINUTE, Method},
    source::{Section, Span},
};

/// A method declaration.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredMethod<'s> {
    pub(crate) name: &'s str,
    pub(crate) span: Span,
    /// Without its name and arguments. `None` if the declaration is wrong, which has been reported.
    pub(crate) method: Option<Method>,
    pub(crate) args: Vec<DeclaredArgument<'s>>,
    pub(crate) returns: Vec<DeclaredArgument<'s>>,
}

/// The declaration of an argument or a returned value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredArgument<'s> {
    pub(crate) name: Cow<'s, str>,
    pub(crate) data_type: DataType,
}

/// The arguments or returned values that could be read.
struct Arguments<'s> {
    list: Vec<DeclaredArgument<'s>>,
    /// Whether all were read; mistakes have been reported.
    are_whole: bool,
}

/// Where a method runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MethodPart {
    Base,
    Cell,
    Client,
    Service,
}

/// Maximum arguments that are compared pairwise; with more, a list of their names is faster.
const FEW_ARGUMENTS: usize = 8;

impl Arguments<'_> {
    fn none() -> Self {
        Self {
            list: Vec::new(),
            are_whole: true,
        }
    }
}

impl MethodPart {
    /// The content of a method of this part.
    fn grammar(self) -> &'static Content {
        match self {
            Self::Base => &grammar::BASE_METHOD,
            Self::Cell => &grammar::CELL_METHOD,
            Self::Client => &grammar::CLIENT_METHOD,
            Self::Service => &grammar::SERVICE_METHOD,
        }
    }
}

impl<'s> Reading<'s> {
    pub(crate) fn methods(&mut self, section: Section<'s>, part: MethodPart) -> Vec<DeclaredMethod<'s>> {
        self.attributes_mean_nothing(section);
        self.text_means_nothing(section);
        let mut methods = Vec::with_capacity(section.children().count());
        for child in section.children() {
            if child.name.contains(':') {
                self.unknown_tag(child, []);
            } else {
                methods.push(self.method(child, part));
            }
        }
        methods
    }

    fn method(&mut self, section: Section<'s>, part: MethodPart) -> DeclaredMethod<'s> {
        let is_named = self.is_identifier(section);
        self.text_means_nothing(section);
        let fields = self.fields(section, part.grammar());
        let mut method = Method::new(String::new(), Vec::new());
        let args = self.arguments(fields.get("Args"), fields.many());
        let returns = self.returns(fields.get("ReturnValues"), part);
        if let Some(exposed) = fields.get("Exposed") {
            method.exposed = self.exposure(exposed, part);
        }
        let client_only = ["SendLatestOnly", "IsReliable", "DetailDistance"];
        for tag in client_only.into_iter().filter_map(|tag| fields.get(tag)) {
            if part != MethodPart::Client {
                let message = format!("`<{}>` has no effect on a method of the server", tag.name);
                let finding = Finding::new(Rule::MemberOption, tag.name_span(), message).help("remove it");
                self.report(finding);
            }
        }
        method.calls_per_minute = fields
            .get("CallsPerMinute")
            .and_then(|section| self.call_limit(section, fields.get("Exposed").is_some()));
        if method.exposed == Exposure::No {
            method.calls_per_minute = None;
        }
        if part == MethodPart::Client {
            method.latest_only = self.boolean(fields.get("SendLatestOnly"), false);
            method.reliable = self.boolean(fields.get("IsReliable"), true);
            method.detail_distance = fields
                .get("DetailDistance")
                .and_then(|section| self.distance(section, 0.0));
            let varies = !args.are_whole || args.list.iter().any(|arg| arg.data_type.stream_size().is_none());
            method.header_size = self.header_size(fields.get("VariableLengthHeaderSize"), varies);
        }
        method.protocol_id = self.protocol_id(fields.get("Utype"));
        let declared = DeclaredMethod {
            name: section.name,
            span: section.name_span(),
            method: None,
            args: Vec::new(),
            returns: Vec::new(),
        };
        if part == MethodPart::Client || method.exposed != Exposure::No {
            let types = args.list.iter().chain(&returns.list).map(|arg| &arg.data_type);
            self.travels_to_clients(&types, section.name_span(), section.name);
        }
        if !(args.are_whole && returns.are_whole && is_named) {
            return declared;
        }
        DeclaredMethod {
            method: Some(method),
            args: args.list,
            returns: returns.list,
            ..declared
        }
    }

    fn call_limit(&mut self, section: Section<'s>, is_exposed: bool) -> Option<u32> {
        let limit = self.integer(section, Rule::Number, 1, MAX_CALLS_PER_MINUTE);
        if !is_exposed {
            let message = "`<CallsPerMinute>` has no effect on a method that clients cannot call";
            let finding = Finding::new(Rule::MemberOption, section.name_span(), message).help("remove it");
            self.report(finding);
        }
        limit
    }

    /// Arguments by name in one section, or by position in one `<Arg>` each.
    fn arguments(&mut self, args: Option<Section<'s>>, positional: &[Section<'s>]) -> Arguments<'s> {
        let Some(args) = args else {
            return self.positional(positional.iter().copied(), "arg");
        };
        if let Some(stray) = positional.first() {
            let finding = Finding::new(
                Rule::StrayText,
                stray.name_span(),
                "`<Arg>` beside `<Args>` is not read",
            )
            .help("move it into `<Args>`");
            self.report(finding);
        }
        self.attributes_mean_nothing(args);
        self.text_means_nothing(args);
        if args.children().all(|child| child.name == ARG) {
            return self.positional(args.children(), "arg");
        }
        self.named(args)
    }

    /// Returned values by name, or in one `<Arg>` each.
    fn returns(&mut self, section: Option<Section<'s>>, part: MethodPart) -> Arguments<'s> {
        let Some(section) = section else {
            return Arguments::none();
        };
        if part == MethodPart::Client {
            let finding = Finding::new(
                Rule::ClientReturns,
                section.name_span(),
                "a client method cannot return values",
            )
            .help("remove `<ReturnValues>`; the client can call an exposed method instead");
            self.report(finding);
        }
        self.attributes_mean_nothing(section);
        self.text_means_nothing(section);
        if section.has_children() && section.children().all(|child| child.name == ARG) {
            return self.positional(section.children(), "value");
        }
        self.named(section)
    }

    fn positional(&mut self, sections: impl Iterator<Item = Section<'s>>, prefix: &str) -> Arguments<'s> {
        let mut arguments = Arguments::none();
        for (i, section) in sections.enumerate() {
            match self.declared_type(section) {
                Some(typed) => arguments.list.push(DeclaredArgument {
                    name: Cow::Owned(format!("{prefix}{i}")),
                    data_type: typed.data_type,
                }),
                None => arguments.are_whole = false,
            }
        }
        arguments
    }

    fn named(&mut self, section: Section<'s>) -> Arguments<'s> {
        let count = section.children().count();
        let are_few = count <= FEW_ARGUMENTS;
        let mut names = Names::default();
        let mut arguments = Arguments::none();
        arguments.list.reserve(count);
        for (i, child) in section.children().enumerate() {
            let is_named = self.is_identifier(child);
            let is_new = if are_few {
                section.children().take(i).all(|before| before.name != child.name)
            } else {
                names.insert(child.name, i).is_ok()
            };
            if !is_new {
                let message = format!("the argument name `{}` is used twice", child.name);
                let finding =
                    Finding::new(Rule::RepeatedArgument, child.name_span(), message).help("give each its own name");
                self.report(finding);
            }
            arguments.are_whole &= is_named && is_new;
            match self.declared_type(child) {
                Some(typed) => arguments.list.push(DeclaredArgument {
                    name: Cow::Borrowed(child.name),
                    data_type: typed.data_type,
                }),
                None => arguments.are_whole = false,
            }
        }
        arguments
    }

    fn exposure(&mut self, section: Section<'s>, part: MethodPart) -> Exposure {
        self.children_mean_nothing(section);
        if part == MethodPart::Client {
            let severity = match self.dialect {
                Dialect::BigWorld => Severity::Error,
                Dialect::KBEngine => Severity::Warning,
            };
            let finding = Finding::new(
                Rule::ExposedClient,
                section.name_span(),
                "a client method cannot be exposed",
            )
            .severity(severity)
            .help("remove `<Exposed/>`");
            self.report(finding);
            return Exposure::No;
        }
        match (section.text(), part) {
            ("", MethodPart::Cell) | ("ALL_CLIENTS", MethodPart::Cell) => Exposure::AllClients,
            ("", MethodPart::Base) | ("OWN_CLIENT", MethodPart::Cell | MethodPart::Base) => Exposure::OwnClient,
            (text, _) => {
                let span = if text.is_empty() {
                    section.name_span()
                } else {
                    section.text_span()
                };
                let known: Vec<&str> = match part {
                    MethodPart::Cell => EXPOSURES_OF_CELL.iter().map(|word| word.name).collect(),
                    MethodPart::Base => EXPOSURES_OF_BASE.iter().map(|word| word.name).collect(),
                    MethodPart::Service | MethodPart::Client => Vec::new(),
                };
                let message = match (text, part) {
                    (_, MethodPart::Service) => "clients cannot call services".to_owned(),
                    ("ALL_CLIENTS", _) => "other clients cannot call a base method".to_owned(),
                    _ => format!("`{text}` is not an exposure"),
                };
                let finding = Finding::new(Rule::ExposedValue, span, message);
                let meant = self.nearest(text, known.iter().copied());
                self.report(match (meant, known.as_slice()) {
                    (Some(meant), _) => finding.meant(meant),
                    (None, []) => finding.help("remove `<Exposed/>`"),
                    (None, _) => finding.help(format!("write `<Exposed/>`, or {} in it", known.join(" or "))),
                });
                Exposure::No
            }
        }
    }
}
