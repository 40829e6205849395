//! The rules: the class of a change for each audience, and the reason.
//!
//! There is one function for each reader of old data. The rules follow from code elsewhere: rows are read in
//! `services/db/src/stored.rs`, logs are folded in `schema/event/src/state.rs`, processes and clients are rejected in
//! `services/host/src/director.rs` and `services/base/src/admission.rs`.

use annals_def::{DataType, Difference, Fit, TypeChange};

use super::{Class, Effect, Effects, change::ChangeKind};

/// Where the subject of a change occurs, before and after.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// It was in rows of stored entities.
    pub(super) was_stored: bool,
    /// It is in rows of stored entities.
    pub(super) is_stored: bool,
    /// Live parts of entities held it, or calls or histories could refer to it.
    pub(super) was_held: bool,
    /// Live parts of entities hold it, or calls or histories can refer to it.
    pub(super) is_held: bool,
    /// It moved to another part.
    pub(super) is_moved: bool,
    /// Clients knew or know this aspect of it.
    pub(super) is_seen: bool,
    /// Only client methods are affected: the log has histories of these, but no calls under way.
    pub(super) is_history: bool,
}

/// The effects of a change on all audiences.
pub(super) fn effects(kind: &ChangeKind, facts: Facts) -> Effects {
    Effects {
        stored: stored(kind, facts),
        log: log(kind, facts),
        peers: peers(kind, facts),
        clients: clients(kind, facts),
    }
}

const NOTHING_STORED: &str = "rows of stored entities hold persistent properties by name, and nothing of this";

/// Why a member cannot become personal, or cease to be.
const SEALED: &str =
    "nothing seals or opens values on the way; add another member, and have behaviour take over what the old one holds";

fn stored(kind: &ChangeKind, facts: Facts) -> Effect {
    let Facts {
        was_stored, is_stored, ..
    } = facts;
    let both = was_stored && is_stored;
    match kind {
        ChangeKind::TypeAdded if is_stored => compatible("none of it is stored yet"),
        ChangeKind::TypeRemoved { .. } if was_stored => {
            breaking("stored entities of the type stay where they are, and none of them can be loaded")
        }
        ChangeKind::TypeRenamed { .. } if both => {
            migration("each stored entity names its type, and the old name finds none")
        }
        ChangeKind::TypesRenumbered { .. } if was_stored => {
            migration("mailboxes in stored values name types by number")
        }
        ChangeKind::PartsChanged { from, to } if from.base && !to.base => {
            breaking("a stored entity is loaded as its base part, which the type has no more")
        }
        ChangeKind::PartsChanged { .. } if is_stored => compatible("rows serve all parts"),
        ChangeKind::PropertyAdded if is_stored => compatible("entities stored before begin with its default"),
        ChangeKind::PropertyRemoved { .. } if was_stored => {
            migration("its values stay in their rows, where nobody reads them; the plan drops them")
        }
        ChangeKind::PropertyRenamed { .. } if both => migration(
            "rows have its values under the old name; under the new one entities would begin with the default",
        ),
        ChangeKind::PropertyType(difference) if both => stored_value(difference),
        ChangeKind::FlagsChanged { .. } | ChangeKind::PersistentChanged { .. } | ChangeKind::AccountChanged { .. }
            if was_stored && !is_stored =>
        {
            migration("its values stay in their rows, where nobody reads them; the plan drops them")
        }
        ChangeKind::FlagsChanged { .. } | ChangeKind::PersistentChanged { .. } | ChangeKind::AccountChanged { .. }
            if !was_stored && is_stored =>
        {
            compatible("entities stored before begin with its default")
        }
        ChangeKind::PersonalChanged { .. } if both => breaking(SEALED),
        ChangeKind::FlagsChanged { .. } if both && facts.is_moved => compatible("a row serves both parts"),
        ChangeKind::DefaultChanged { .. } if both => {
            compatible("stored values stay; entities whose row has none begin with the new default")
        }
        ChangeKind::IdentifierChanged { .. } | ChangeKind::IndexChanged { .. } if was_stored || is_stored => {
            migration("an entity enters or leaves the index only when it is written again")
        }
        ChangeKind::DatabaseLengthChanged { .. } => unaffected("the store makes room for whatever comes"),
        ChangeKind::TypePersistentChanged { .. } => {
            unaffected("rows stay as they are; it says whether entities are written from here on")
        }
        _ => unaffected(NOTHING_STORED),
    }
}

/// The effect of a type difference on a stored value. The reader of a row accepts a value that fits the type, and
/// refuses to load an entity with a value that does not.
fn stored_value(difference: &Difference) -> Effect {
    match (difference.fit, &difference.change) {
        (Fit::Same, TypeChange::FieldPersistent) => {
            compatible("what is stored of the field stays as it is until its entity is written again")
        }
        (Fit::Same, change) if !change.is_seen() => unaffected("a stored value is written the same way"),
        (Fit::Same, _) => compatible("every stored value is read as it is"),
        (Fit::Converted, change) if is_about_fields(change) => {
            migration("fields are stored by place: a value would be misread, or its entity not loaded")
        }
        (Fit::Converted, _) => migration("a stored value would not fit, and its entity not be loaded"),
        (Fit::Some, change) => breaking(format!(
            "{}: the plan stops at it and names it; without a plan its entity is not loaded",
            without_place(change)
        )),
        (
            Fit::None,
            TypeChange::Replaced {
                from: DataType::Python(_),
                to: DataType::Python(_),
            },
        ) => breaking(
            "no value but the default has a counterpart: the plan stops at it and names it; without a plan it would be \
             taken for what it is not",
        ),
        (Fit::None, _) => breaking(
            "no value but the default has a counterpart: the plan stops at it and names it; without a plan its entity is \
             not loaded",
        ),
    }
}

fn log(kind: &ChangeKind, facts: Facts) -> Effect {
    let Facts { was_held, is_held, .. } = facts;
    let both = was_held && is_held;
    match kind {
        ChangeKind::TypeAdded => compatible("none of it is in the log yet"),
        ChangeKind::TypeRemoved { .. } => {
            breaking("an entity that is alive would have no type, and its owner could not be taken over")
        }
        ChangeKind::ServiceAdded => compatible("each base owner creates its fragment"),
        ChangeKind::ServiceRemoved => migration("base owners have fragments of it; the plan removes them"),
        ChangeKind::ServicesRenumbered => {
            migration("fragments have their type, and calls under way their method, by number")
        }
        ChangeKind::TypeRenamed { .. } | ChangeKind::PropertyRenamed { .. } | ChangeKind::MethodRenamed { .. } => {
            compatible("the log knows it by its number")
        }
        ChangeKind::TypesRenumbered { .. } => {
            migration("entities in the log and its snapshots have their type by number, and would be taken for others")
        }
        ChangeKind::PartsChanged { from, to } if from.base && !to.base || from.cell && !to.cell => {
            breaking("a part that the type has no more may be alive")
        }
        ChangeKind::PartsChanged { .. } => compatible("parts that are alive stay"),
        ChangeKind::PropertyAdded if is_held => {
            migration("entities that are alive do not hold it, and cannot read or set it until it is filled in")
        }
        ChangeKind::PropertyRemoved { .. } if was_held => migration(
            "entities that are alive go on holding it under a number that is given to another sooner or later",
        ),
        ChangeKind::PropertiesRenumbered { .. } if was_held => {
            migration("images and events have properties by number, and one would be read as another")
        }
        ChangeKind::PropertyType(difference) if both => held_value(difference, "an entity that is alive"),
        ChangeKind::FlagsChanged { .. } if both && facts.is_moved => {
            breaking("its value is held by the other part, whose log is another owner's")
        }
        ChangeKind::FlagsChanged { .. } if was_held && !is_held => {
            migration("entities that are alive go on holding it; the plan drops it")
        }
        ChangeKind::FlagsChanged { .. } if !was_held && is_held => {
            migration("entities that are alive do not hold it, and cannot read or set it until it is filled in")
        }
        ChangeKind::FlagsChanged { .. } if both => compatible("the same part holds it"),
        ChangeKind::AccountChanged { .. } if was_held => migration(
            "entities that are alive hold a value of their own; the plan drops it, and what the ledger says is seen instead",
        ),
        ChangeKind::AccountChanged { .. } if is_held => {
            migration("entities that are alive do not hold it, and cannot read or set it until it is filled in")
        }
        ChangeKind::AccountChanged { .. } => compatible("its value is what the ledger says, which the log has anyhow"),
        ChangeKind::PersonalChanged { .. } if both => breaking(SEALED),
        ChangeKind::DefaultChanged { .. } if both => compatible("entities that are alive keep what they hold"),
        _ => log_of_methods(kind, facts),
    }
}

fn log_of_methods(kind: &ChangeKind, facts: Facts) -> Effect {
    match kind {
        _ if !facts.was_held && !facts.is_held => unaffected("the log holds nothing of this"),
        ChangeKind::MethodAdded => compatible("no call of it is under way yet"),
        ChangeKind::MethodRemoved { .. } if facts.is_history => {
            migration("histories have calls of it by a number that another may have now; the plan clears them")
        }
        ChangeKind::MethodRemoved { .. } => {
            migration("a call of it may be under way; the plan answers it with an error")
        }
        ChangeKind::MethodsRenumbered { .. } if facts.is_history => {
            migration("histories have client methods by number, and observers would be shown another")
        }
        ChangeKind::MethodsRenumbered { .. } => {
            migration("calls under way have their method by number, and would reach another")
        }
        ChangeKind::ArgumentRenamed { .. } => compatible("arguments go by their place"),
        ChangeKind::ArgumentAdded { .. } | ChangeKind::ArgumentRemoved { .. } => {
            migration("a call of it that is under way, or in a history, has another number of arguments")
        }
        ChangeKind::ArgumentsReordered => {
            migration("a call of it that is under way, or in a history, has its arguments in the old order")
        }
        ChangeKind::ArgumentType(difference) if facts.is_history => match difference.fit {
            Fit::Same => held_value(difference, "a history"),
            _ => migration("histories have calls of it with arguments of the old type; the plan clears them"),
        },
        ChangeKind::ArgumentType(difference) => held_value(difference, "a call under way"),
        ChangeKind::ReturnsChanged => {
            migration("an answer under way has the former values; the plan replaces it by an error")
        }
        _ => unaffected("the log holds nothing of this"),
    }
}

/// The effect of a type difference on a value in the log.
fn held_value(difference: &Difference, holder: &str) -> Effect {
    match (difference.fit, &difference.change) {
        (Fit::Same, TypeChange::SequenceKind) => {
            migration("histories have changes of single elements, which a tuple has not; the plan clears them")
        }
        (Fit::Same, change) if !change.is_seen() => unaffected("a value is written the same way"),
        (Fit::Same, _) => compatible("every value is read as it is"),
        (Fit::Converted, _) => migration(format!(
            "{holder} has a value of the old type, which nothing checks again"
        )),
        (Fit::Some, change) => breaking(format!(
            "{}, and {holder} may have one: the plan stops there and names it",
            without_place(change)
        )),
        (Fit::None, _) => breaking(format!(
            "no value has a counterpart, and {holder} may have one: the plan stops there and names it"
        )),
    }
}

fn peers(kind: &ChangeKind, facts: Facts) -> Effect {
    let Facts { was_held, is_held, .. } = facts;
    let held = was_held || is_held;
    let changes_messages = match kind {
        ChangeKind::TypeAdded
        | ChangeKind::TypeRemoved { .. }
        | ChangeKind::TypesRenumbered { .. }
        | ChangeKind::ServiceAdded
        | ChangeKind::ServiceRemoved
        | ChangeKind::ServicesRenumbered
        | ChangeKind::PartsChanged { .. } => true,
        ChangeKind::PropertyType(difference) | ChangeKind::ArgumentType(difference) => {
            held && difference.change.is_seen()
        }
        ChangeKind::PropertyAdded
        | ChangeKind::PropertyRemoved { .. }
        | ChangeKind::PropertiesRenumbered { .. }
        | ChangeKind::FlagsChanged { .. }
        | ChangeKind::MethodAdded
        | ChangeKind::MethodRemoved { .. }
        | ChangeKind::MethodsRenumbered { .. }
        | ChangeKind::ArgumentAdded { .. }
        | ChangeKind::ArgumentRemoved { .. }
        | ChangeKind::ArgumentsReordered
        | ChangeKind::ReturnsChanged => held,
        _ => false,
    };
    migration(if changes_messages {
        "processes would misread one another; the director takes those of one schema only, so all are started anew together"
    } else {
        "messages stay the same; yet the director takes processes of one schema only, so all are started anew together"
    })
}

const REFUSED: &str = "a client of the old definitions is refused when it says hello, as it";

fn clients(kind: &ChangeKind, facts: Facts) -> Effect {
    if !facts.is_seen {
        return unaffected("clients know nothing of this");
    }
    let because = match kind {
        ChangeKind::TypeAdded | ChangeKind::PropertyAdded | ChangeKind::MethodAdded => {
            "would be shown what it does not know"
        }
        ChangeKind::TypeRemoved { .. }
        | ChangeKind::TypeRenamed { .. }
        | ChangeKind::PropertyRemoved { .. }
        | ChangeKind::PropertyRenamed { .. }
        | ChangeKind::MethodRemoved { .. }
        | ChangeKind::MethodRenamed { .. } => "is written against what is not there",
        ChangeKind::ShownChanged { .. } => "knows other types",
        ChangeKind::TypesRenumbered { .. } => "would take entities for those of other types",
        ChangeKind::ClientPropertiesRenumbered { .. } => "would take properties for one another",
        ChangeKind::ClientMethodsRenumbered { .. } => "would take methods for one another",
        ChangeKind::PropertyType(_) | ChangeKind::ArgumentType(_) => "would misread the bytes",
        ChangeKind::FlagsChanged { .. } => "expects it from elsewhere, or not at all",
        ChangeKind::DefaultChanged { .. } => {
            "would show the old default, as values that equal the default are not sent"
        }
        ChangeKind::AccountChanged { .. } => "would go on showing the value that it received before",
        ChangeKind::ArgumentAdded { .. } | ChangeKind::ArgumentRemoved { .. } => "has other arguments",
        ChangeKind::ArgumentRenamed { .. } => "knows the argument by another name, and the names are compared",
        ChangeKind::ArgumentsReordered => "has the arguments in another order",
        ChangeKind::ReturnsChanged => "would misread the answers",
        ChangeKind::ExposureChanged { .. } => "knows other calls that it may make",
        _ => return compatible("it is shown at other times or distances; frames stay the same"),
    };
    breaking(format!("{} {because}", REFUSED))
}

fn is_about_fields(change: &TypeChange) -> bool {
    matches!(
        change,
        TypeChange::FieldAdded { .. } | TypeChange::FieldRemoved { .. } | TypeChange::FieldsReordered
    )
}

/// The values that cannot be converted.
fn without_place(change: &TypeChange) -> String {
    match change {
        TypeChange::Narrowed { to, .. } => format!("a number that is not one of {to} has no place"),
        TypeChange::BytesToText => "bytes that are not UTF-8 have no place".to_owned(),
        TypeChange::SizeGiven { to } => format!("a sequence that has not {to} elements has no place"),
        TypeChange::SizeCut { to, .. } => format!("elements behind the {to} that stay have no place"),
        TypeChange::LimitLowered => "a sequence above the new limit has no place".to_owned(),
        TypeChange::NoneRefused => "None has no place".to_owned(),
        other => format!("after \"{other}\" some values have no place"),
    }
}

fn unaffected(reason: impl Into<String>) -> Effect {
    effect(Class::Unaffected, reason)
}

fn compatible(reason: impl Into<String>) -> Effect {
    effect(Class::Compatible, reason)
}

fn migration(reason: impl Into<String>) -> Effect {
    effect(Class::NeedsMigration, reason)
}

fn breaking(reason: impl Into<String>) -> Effect {
    effect(Class::Breaking, reason)
}

fn effect(class: Class, reason: impl Into<String>) -> Effect {
    Effect {
        class,
        reason: reason.into(),
    }
}
