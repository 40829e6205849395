//! Processes of one bus version understand one another: each field and kind of their Protocol Buffers messages that was
//! ever recorded for this version still has its number and type. The record is `bus/VERSION`, one line for each:
//! message, number, type, name. New ones are added to it by `ANNALS_RECORD_BUS=1 cargo test -p annals-compat`,
//! which removes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use annals_wire::control::BUS_VERSION;
use syn::{
    Attribute, Expr, Fields, GenericArgument, ItemEnum, ItemStruct, Lit, Meta, PathArguments, Type,
    visit::{self, Visit},
};

/// The source files of a folder and the folders in it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let nested = folders.iter().flat_map(|folder| sources(folder));
    nested.chain(files).collect()
}

/// What the sources say of messages.
#[derive(Default)]
struct Messages {
    lines: BTreeSet<String>,
}

impl Messages {
    /// Those of the crate of wire messages, and of the store that db serves.
    fn read() -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["schema/wire/src", "services/store/src/remote"].map(|folder| repository.join(folder));
        let mut messages = Self::default();
        let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        let files = folders.iter().flat_map(|folder| sources(folder));
        for path in files.filter(is_source) {
            let text = fs::read_to_string(&path).unwrap();
            messages.visit_file(&syn::parse_file(&text).unwrap());
        }
        messages
    }

    /// Adds a field or kind by its attribute, if it has one.
    fn add(&mut self, of: &str, attributes: &[Attribute], name: &str, held: Option<&Type>) {
        let Some(words) = attributes.iter().find_map(prost_words) else {
            return;
        };
        let value = |wanted: &str| {
            words
                .iter()
                .find_map(|(word, value)| (word == wanted).then(|| value.clone())?)
        };
        if let Some(kinds) = value("oneof") {
            self.lines.insert(format!("{of} - oneof {kinds} {name}"));
            return;
        }
        let number = value("tag").unwrap_or_else(|| panic!("{of}.{name} has no number"));
        // How messages and bytes are held is not on the wire.
        let on_wire = |(word, _): &&(String, _)| word != "tag" && word != "boxed";
        let kind = words.iter().filter(on_wire).map(|(word, value)| match value {
            Some(value) if word == "enumeration" || word == "map" => format!("{word} {value}"),
            _ => word.clone(),
        });
        let mut kind: Vec<String> = kind.collect();
        if kind.iter().any(|word| word == "message") {
            kind.extend(held.and_then(innermost));
        }
        let is_new = self.lines.insert(format!("{of} {number} {} {name}", kind.join(" ")));
        assert!(is_new, "two messages are called {of}");
    }
}

impl<'a> Visit<'a> for Messages {
    fn visit_item_struct(&mut self, item: &'a ItemStruct) {
        for field in &item.fields {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            self.add(&item.ident.to_string(), &field.attrs, &name, Some(&field.ty));
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        let of = item.ident.to_string();
        let is_enumeration = item.attrs.iter().any(|attribute| {
            let Meta::List(list) = &attribute.meta else {
                return false;
            };
            list.tokens.to_string().contains("Enumeration")
        });
        for variant in &item.variants {
            let name = variant.ident.to_string();
            let held = match &variant.fields {
                Fields::Unnamed(fields) => fields.unnamed.first().map(|field| &field.ty),
                Fields::Named(_) | Fields::Unit => None,
            };
            self.add(&of, &variant.attrs, &name, held);
            if let (true, Some((_, Expr::Lit(number)))) = (is_enumeration, &variant.discriminant)
                && let Lit::Int(number) = &number.lit
            {
                self.lines.insert(format!("{of} {number} value {name}"));
            }
        }
        visit::visit_item_enum(self, item);
    }
}

/// The words of a `prost` attribute, with their values.
fn prost_words(attribute: &Attribute) -> Option<Vec<(String, Option<String>)>> {
    let list = match &attribute.meta {
        Meta::List(list) if list.path.is_ident("prost") => list,
        _ => return None,
    };
    let mut words = Vec::new();
    list.parse_nested_meta(|meta| {
        let value = meta
            .value()
            .ok()
            .map(|value| value.parse::<syn::LitStr>())
            .transpose()?;
        words.push((
            meta.path.get_ident().unwrap().to_string(),
            value.map(|text| text.value()),
        ));
        Ok(())
    })
    .unwrap();
    Some(words)
}

/// The message in `Vec<Message>`, `Option<Message>` and `Box<Message>`.
fn innermost(held: &Type) -> Option<String> {
    let Type::Path(path) = held else { return None };
    let last = path.path.segments.last()?;
    if let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(inside)) = arguments.args.first()
    {
        return innermost(inside);
    }
    Some(last.ident.to_string())
}

fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("bus")
        .join(BUS_VERSION.to_string())
}

#[test]
fn messages_of_a_bus_version_keep_their_fields() {
    let now = Messages::read().lines;
    assert!(now.len() > 300, "only {} fields were found", now.len());
    let recorded: BTreeSet<String> = fs::read_to_string(record())
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
    let gone: Vec<&String> = recorded.difference(&now).collect();
    assert!(
        gone.is_empty(),
        "processes that are already deployed with bus version {BUS_VERSION} send or expect these, and this one would \
         not understand them: {gone:#?}\nkeep them, or raise BUS_VERSION, so that the two are not mixed"
    );
    let new: Vec<&String> = now.difference(&recorded).collect();
    if std::env::var_os("ANNALS_RECORD_BUS").is_some() {
        let text: String = now.iter().map(|line| format!("{line}\n")).collect();
        return fs::write(record(), text).unwrap();
    }
    assert!(
        new.is_empty(),
        "not in the record of bus version {BUS_VERSION}: {new:#?}\nif a process that does not know them may do without, \
         add them with ANNALS_RECORD_BUS=1 cargo test -p annals-compat"
    );
}

/// A number has one meaning within a message; the kinds of a field have theirs in the message of the field.
#[test]
fn numbers_are_used_once() {
    let lines = Messages::read().lines;
    let words = lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let (oneofs, fields): (Vec<_>, Vec<_>) = words.partition(|words| words[1..].starts_with(&["-", "oneof"]));
    let messages: BTreeMap<&str, &str> = oneofs.iter().map(|words| (words[3], words[0])).collect();
    let mut used = BTreeMap::new();
    for words in &fields {
        let message = messages.get(words[0]).unwrap_or(&words[0]);
        let other = used.insert((*message, words[1]), words);
        assert!(other.is_none(), "{words:?} and {other:?}");
    }
}
