//! `ledger.xml`: names of asset kinds and account slots.

use std::collections::BTreeMap;

use annals_ids::{AssetKind, Slot};

use super::Reading;
use crate::{
    diagnostic::{Finding, Rule},
    grammar,
    schema::LedgerNames,
    source::{Section, Span},
};

impl<'s> Reading<'s> {
    /// The names in the file.
    pub(crate) fn ledger_names(&mut self, root: Section<'s>) -> LedgerNames {
        self.text_means_nothing(root);
        let fields = self.fields(root, &grammar::LEDGER);
        let mut numbered = |tag, what, highest| match fields.get(tag) {
            Some(section) => self.numbered(section, what, highest),
            None => BTreeMap::new(),
        };
        let kinds = numbered("Kinds", "kind", u32::MAX).into_iter();
        let kinds = kinds.map(|(number, name)| (AssetKind(number), name)).collect();
        let slots = numbered("Slots", "slot", u32::from(u16::MAX)).into_iter();
        // A higher number has been reported by the reader.
        let slots = slots.filter_map(|(number, name)| Some((Slot(u16::try_from(number).ok()?), name)));
        LedgerNames::new(kinds, slots.collect())
    }

    /// The names in a section, by number. A repeated name or number is reported.
    fn numbered(&mut self, section: Section<'s>, what: &str, highest: u32) -> BTreeMap<u32, String> {
        self.attributes_mean_nothing(section);
        self.text_means_nothing(section);
        let mut names: BTreeMap<&str, (u32, Span)> = BTreeMap::new();
        let mut numbers: BTreeMap<u32, (&str, Span)> = BTreeMap::new();
        for child in section.children() {
            if !self.is_identifier(child) {
                continue;
            }
            let Some(number) = self.integer(child, Rule::Number, 0, highest) else {
                continue;
            };
            let (name, span) = (child.name, child.name_span());
            let twice = match (names.get(name), numbers.get(&number)) {
                (Some((first, at)), _) => Some((format!("`{name}` is already the name of {what} {first}"), *at)),
                (None, Some((first, at))) => Some((format!("{what} {number} is already named `{first}`"), *at)),
                (None, None) => None,
            };
            if let Some((message, first)) = twice {
                let finding = Finding::new(Rule::LedgerName, span, message)
                    .help(format!("give each {what} one unique name"))
                    .related(first, "the first one");
                self.report(finding);
                continue;
            }
            names.insert(name, (number, span));
            numbers.insert(number, (name, span));
        }
        let named = numbers.into_iter();
        named.map(|(number, (name, _))| (number, name.to_owned())).collect()
    }
}
