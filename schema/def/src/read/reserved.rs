//! Names that a property cannot well have, since what has the property has something of that name already.
//!
//! BigWorld checks no names: a property called like an attribute of its part is there, and scripts reach the attribute
//! instead. KBEngine refuses a list of names, and whatever its entities have.

use super::{Dialect, Reading};
use crate::{
    diagnostic::{Finding, Rule, Severity},
    schema::Distribution,
    source::Section,
};

/// What a BigWorld entity has on its base.
const OF_BASE: &[&str] = &["id", "databaseID"];

/// What it has on cells and clients.
const OF_CELL: &[&str] = &["id", "position", "direction", "spaceID"];

/// What a user data object of BigWorld has.
const OF_OBJECT: &[&str] = &["guid", "position", "direction", "yaw", "pitch", "roll"];

/// What KBEngine has refused in every version.
const KBENGINE: &[&str] = &["id", "position", "direction", "spaceID", "databaseID"];

/// What KBEngine 2.5 refuses beside that. Older versions let some of these be, and nothing here has them.
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

/// Whose property it is.
#[derive(Clone, Copy)]
pub(super) enum Holder {
    /// An entity's, with this distribution if it is known.
    Entity(Option<Distribution>),
    /// A user data object's.
    Object,
}

impl<'s> Reading<'s> {
    /// Whether a property can have this name; reports one that is taken.
    pub(super) fn is_free(&mut self, section: Section<'s>, holder: Holder) -> bool {
        let name = section.name;
        let is_in = |names: &[&str]| names.contains(&name);
        let (severity, message) = match (self.dialect, holder) {
            (Dialect::KBEngine, _) if is_in(KBENGINE) => {
                (Severity::Error, format!("every entity has a `{name}` already"))
            }
            (Dialect::KBEngine, _) if is_in(KBENGINE_NOW) => {
                (Severity::Warning, format!("KBEngine refuses a property `{name}`"))
            }
            (Dialect::BigWorld, Holder::Object) if is_in(OF_OBJECT) => (
                Severity::Warning,
                format!("every user data object has a `{name}` already"),
            ),
            (Dialect::BigWorld, Holder::Entity(on)) if is_in_part(name, on) => {
                (Severity::Warning, format!("every entity has a `{name}` already"))
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

/// Whether a part that may have the property has something of this name.
fn is_in_part(name: &str, distribution: Option<Distribution>) -> bool {
    let may_be = |is: fn(Distribution) -> bool| distribution.is_none_or(is);
    may_be(Distribution::on_base) && OF_BASE.contains(&name)
        || may_be(|on| on.on_cell() || on.to_clients()) && OF_CELL.contains(&name)
}
