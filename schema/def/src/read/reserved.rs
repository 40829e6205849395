//! Names that a property should not have, because its part already has an attribute of that name.
//!
//! BigWorld does not check names: such a property exists, but scripts reach the attribute instead. KBEngine rejects a
//! list of names, and the attributes of its entities.

use super::{Dialect, Reading};
use crate::{
    diagnostic::{Finding, Rule, Severity},
    schema::Distribution,
    source::Section,
};

/// Attributes of a BigWorld entity's base.
const OF_BASE: &[&str] = &["id", "databaseID"];

/// Attributes of its cell and client parts.
const OF_CELL: &[&str] = &["id", "position", "direction", "spaceID"];

/// Attributes of a BigWorld user data object.
const OF_OBJECT: &[&str] = &["guid", "position", "direction", "yaw", "pitch", "roll"];

/// Names that every version of KBEngine rejects.
const KBENGINE: &[&str] = &["id", "position", "direction", "spaceID", "databaseID"];

/// Further names that KBEngine 2.5 rejects. Older versions allow some of these, and Annals has no such attributes.
const KBENGINE_NOW: &[&str] = &[
    "__ACCOUNT_NAME__",
    "__ACCOUNT_PASSWORD__",
    "allClients",
    "autoLoad",
    "base",
    "cell",
    "cellData",
    "className",
    "client",
    "clientAddr",
    "clientEnabled",
    "controlledBy",
    "databaseInterfaceName",
    "hasClient",
    "hasWitness",
    "interface",
    "isDestroyed",
    "isOnGround",
    "isWitnessed",
    "layer",
    "otherClients",
    "roundTripTime",
    "shouldAutoArchive",
    "shouldAutoBackup",
    "timeSinceHeardFromClient",
    "topSpeed",
    "topSpeedY",
    "volatileInfo",
];

/// The owner of a property.
#[derive(Clone, Copy)]
pub(super) enum Holder {
    /// An entity, with the property's distribution if known.
    Entity(Option<Distribution>),
    /// A user data object.
    Object,
}

impl<'s> Reading<'s> {
    /// Whether a property can have this name; reports a reserved one.
    pub(super) fn is_free(&mut self, section: Section<'s>, holder: Holder) -> bool {
        let name = section.name;
        let is_in = |names: &[&str]| names.contains(&name);
        let (severity, message) = match (self.dialect, holder) {
            (Dialect::KBEngine, _) if is_in(KBENGINE) => {
                (Severity::Error, format!("every entity already has a member `{name}`"))
            }
            (Dialect::KBEngine, _) if is_in(KBENGINE_NOW) => {
                (Severity::Warning, format!("KBEngine rejects a property `{name}`"))
            }
            (Dialect::BigWorld, Holder::Object) if is_in(OF_OBJECT) => (
                Severity::Warning,
                format!("every user data object already has a member `{name}`"),
            ),
            (Dialect::BigWorld, Holder::Entity(on)) if is_in_part(name, on) => {
                (Severity::Warning, format!("every entity already has a member `{name}`"))
            }
            _ => return true,
        };
        let finding = Finding::new(Rule::ReservedName, section.name_span(), message)
            .severity(severity)
            .help("choose another name");
        self.report(finding);
        severity != Severity::Error
    }
}

/// Whether a part that may have the property has an attribute of this name.
fn is_in_part(name: &str, distribution: Option<Distribution>) -> bool {
    let may_be = |is: fn(Distribution) -> bool| distribution.is_none_or(is);
    may_be(Distribution::on_base) && OF_BASE.contains(&name)
        || may_be(|on| on.on_cell() || on.to_clients()) && OF_CELL.contains(&name)
}
