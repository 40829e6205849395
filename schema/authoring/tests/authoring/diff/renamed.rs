//! Lookup of a property's successor in a comparison.

use annals_authoring::{ChangeKind, Diff, Subject};
use annals_def::{EntityType, Property};

/// The new property that corresponds to `old`.
pub(crate) fn property_now<'a>(found: &Diff, new: &'a EntityType, old: &Property) -> Option<&'a Property> {
    let renamed = found
        .changes
        .iter()
        .find_map(|change| match (&change.subject, &change.kind) {
            (Subject::Property(on, to), ChangeKind::PropertyRenamed { from })
                if *on == new.name && *from == old.name =>
            {
                Some(to)
            }
            _ => None,
        });
    new.property_named(renamed.unwrap_or(&old.name))
}
