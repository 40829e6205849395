//! Views of ledger accounts: what a property shows, and the tags that it cannot have as a view.

use annals_ids::{AssetKind, Slot};

use super::{Fields, Reading};
use crate::{
    diagnostic::{Finding, Rule},
    grammar,
    schema::{AccountView, Holding, Property},
    source::Section,
};

/// Highest slot number.
const SLOTS: u32 = u16::MAX as u32;

/// The types of views, as messages list them.
const TYPES: &str = "with a `<Kind>`, use UINT64 or ARRAY of UINT64; without one, ARRAY of FIXED_DICT with `kind` \
                     (UINT32) and then `units` or `serial` (UINT64)";

impl<'s> Reading<'s> {
    /// The account that a property is a view of, if it is one. Tags that a view cannot have are reported.
    pub(super) fn account(
        &mut self,
        section: Section<'s>,
        fields: &Fields<'s>,
        property: &Property,
    ) -> Option<AccountView> {
        let account = fields.get("Account")?;
        self.text_means_nothing(account);
        let parts = self.fields(account, &grammar::ACCOUNT);
        let mut number = |tag, high| match parts.get(tag) {
            Some(section) => self.integer(section, Rule::Number, 0, high).map(Some),
            None => Some(None),
        };
        let (slot, kind) = (number("Slot", SLOTS), number("Kind", u32::MAX));
        self.only_on_base(section, fields, property);
        self.nothing_of_its_own(section, fields, property);
        let (slot, kind) = (slot?.unwrap_or(0), kind?.map(AssetKind));
        let Some(shows) = Holding::of(&property.data_type, kind) else {
            let span = fields.get("Type").map_or(section.name_span(), |of| of.name_span());
            let message = format!(
                "`{}` is a view of an account {}, but of type {}",
                section.name,
                if kind.is_some() { "of one kind" } else { "of all kinds" },
                property.data_type
            );
            self.report(Finding::new(Rule::AccountType, span, message).help(TYPES));
            return None;
        };
        // A higher number has been reported by the reader.
        let slot = u16::try_from(slot).ok().map(Slot)?;
        Some(AccountView { slot, shows })
    }

    fn only_on_base(&mut self, section: Section<'s>, fields: &Fields<'s>, property: &Property) {
        if property.distribution.on_base() {
            return;
        }
        let span = fields
            .get("Flags")
            .map_or(section.name_span(), |flags| flags.text_span());
        let message = format!(
            "`{}` is a view of an account, but its flags are {}",
            section.name, property.distribution
        );
        let finding = Finding::new(Rule::AccountFlags, span, message).help(
            "make it BASE, or BASE_AND_CLIENT for the own client; for other clients, set a cell property after the \
             ledger has booked the change",
        );
        self.report(finding);
    }

    fn nothing_of_its_own(&mut self, section: Section<'s>, fields: &Fields<'s>, property: &Property) {
        let name = section.name;
        let taken = [
            (property.persistent, "Persistent", "the ledger keeps it"),
            (property.editable, "Editable", "it cannot be set"),
            (
                property.latest_only,
                "SendLatestOnly",
                "only the newest value is sent in any case",
            ),
        ];
        for (is_given, tag, because) in taken {
            if let (true, Some(given)) = (is_given, fields.get(tag)) {
                let message = format!("`{name}` is a view of an account: {because}");
                let finding = Finding::new(Rule::AccountValue, given.name_span(), message)
                    .help(format!("remove the `<{tag}>`, or the `<Account>`"));
                self.report(finding);
            }
        }
        if property.default != property.data_type.default_value() {
            let default = fields.get("Default").or(fields.get("Type"));
            let span = default.map_or(section.name_span(), |default| default.name_span());
            let message = format!(
                "`{name}` is a view of an account and cannot begin as {}",
                property.default
            );
            let finding = Finding::new(Rule::AccountValue, span, message).help(
                "remove the `<Default>`, or use a type without a default: the view is empty until the ledger sends it",
            );
            self.report(finding);
        }
    }
}
