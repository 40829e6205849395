//! All kinds of changes.

use std::fmt;

use annals_def::{AccountView, DataType, Difference, Distribution, Domain, Exposure, Index, MethodKind, Parts, Value};
use annals_ids::{AssetKind, Slot};

/// A kind of change. Fields are the old and the new of what the variant names.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// An entity type was added.
    TypeAdded,
    /// An entity type was removed; `perhaps` is a similar new one.
    TypeRemoved {
        perhaps: Option<String>,
    },
    /// An entity type was renamed, according to its author.
    TypeRenamed {
        from: String,
    },
    /// Entity types have other numbers.
    TypesRenumbered {
        shifts: Vec<Shift>,
        because: String,
    },
    /// The parts of an entity type changed.
    PartsChanged {
        from: Parts,
        to: Parts,
    },
    /// Clients can now, or can no longer, meet entities as this type.
    ShownChanged {
        to: bool,
    },
    /// `Persistent` of an entity type.
    TypePersistentChanged {
        to: bool,
    },
    ClientNameChanged {
        from: Option<String>,
        to: Option<String>,
    },
    VolatileChanged,
    /// `LoDLevels`.
    LevelsChanged,
    TempPropertiesChanged,
    DetailedPositionChanged,
    AppealRadiusChanged {
        from: f32,
        to: f32,
    },
    /// `IsManualAoI`.
    ManualAoiChanged {
        to: bool,
    },

    /// A property was added.
    PropertyAdded,
    /// A property was removed; `perhaps` is a similar new one.
    PropertyRemoved {
        perhaps: Option<String>,
    },
    /// A property was renamed, according to its author.
    PropertyRenamed {
        from: String,
    },
    /// Properties have other numbers.
    PropertiesRenumbered {
        shifts: Vec<Shift>,
        because: String,
    },
    /// Properties have other client numbers.
    ClientPropertiesRenumbered {
        shifts: Vec<Shift>,
        because: String,
    },
    /// The type of a property differs at one place; whole types, aliases resolved.
    PropertyType(Difference),
    FlagsChanged {
        from: Distribution,
        to: Distribution,
    },
    /// `Default`, of the property, its alias or its type.
    DefaultChanged {
        from: Value,
        to: Value,
    },
    AccountChanged {
        from: Option<AccountView>,
        to: Option<AccountView>,
    },
    /// `Personal`, or the type of the sealed value.
    PersonalChanged {
        from: Option<DataType>,
        to: Option<DataType>,
    },
    /// `Persistent` of a property.
    PersistentChanged {
        to: bool,
    },
    IndexChanged {
        from: Index,
        to: Index,
    },
    IdentifierChanged {
        to: bool,
    },
    DatabaseLengthChanged {
        from: Option<u32>,
        to: Option<u32>,
    },
    DetailLevelChanged {
        from: Option<String>,
        to: Option<String>,
    },
    /// `SendLatestOnly` of a property.
    LatestOnlyChanged {
        to: bool,
    },
    /// `IsReliable` of a property.
    ReliableChanged {
        to: bool,
    },
    EditableChanged {
        to: bool,
    },
    /// `VariableLengthHeaderSize` of a property.
    HeaderSizeChanged {
        from: u8,
        to: u8,
    },
    /// `Utype` of a property.
    ProtocolIdChanged,

    /// A method was added.
    MethodAdded,
    /// A method was removed; `perhaps` is a similar new one.
    MethodRemoved {
        perhaps: Option<String>,
    },
    /// A method was renamed, according to its author.
    MethodRenamed {
        from: String,
    },
    /// Methods have other numbers.
    MethodsRenumbered {
        kind: MethodKind,
        shifts: Vec<Shift>,
        because: String,
    },
    /// Methods have other client numbers.
    ClientMethodsRenumbered {
        kind: MethodKind,
        shifts: Vec<Shift>,
        because: String,
    },
    /// An argument was added.
    ArgumentAdded {
        name: String,
    },
    /// An argument was removed.
    ArgumentRemoved {
        name: String,
    },
    /// An argument was renamed.
    ArgumentRenamed {
        from: String,
        to: String,
    },
    /// The remaining arguments changed their order.
    ArgumentsReordered,
    /// The type of an argument differs at one place.
    ArgumentType(Difference),
    ReturnsChanged,
    ExposureChanged {
        from: Exposure,
        to: Exposure,
    },
    /// `CallsPerMinute` of a method.
    CallLimitChanged {
        from: Option<u32>,
        to: Option<u32>,
    },
    DetailDistanceChanged {
        from: Option<f32>,
        to: Option<f32>,
    },
    /// `SendLatestOnly` of a method.
    MethodLatestOnlyChanged {
        to: bool,
    },
    /// `IsReliable` of a method.
    MethodReliableChanged {
        to: bool,
    },
    /// `VariableLengthHeaderSize` of a method.
    MethodHeaderSizeChanged {
        from: u8,
        to: u8,
    },
    /// `Utype` of a method.
    MethodProtocolIdChanged,

    /// A service was added.
    ServiceAdded,
    /// A service was removed.
    ServiceRemoved,
    /// Types of fragments, or methods of a service, have other numbers.
    ServicesRenumbered,
    /// A user data object type was added.
    ObjectAdded,
    /// A user data object type was removed.
    ObjectRemoved,
    /// The order of user data object types, or of the properties of one, changed.
    ObjectsReordered,
    DomainChanged {
        from: Domain,
        to: Domain,
    },
    /// A property of a user data object was added, removed or changed.
    ObjectProperty {
        name: String,
    },

    /// The name of a kind of assets was added, changed or removed.
    KindNamed {
        kind: AssetKind,
        from: Option<String>,
        to: Option<String>,
    },
    /// The name of a slot of accounts was added, changed or removed.
    SlotNamed {
        slot: Slot,
        from: Option<String>,
        to: Option<String>,
    },
}

/// A member or type whose number changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    pub name: String,
    /// The old number.
    pub from: u16,
    /// The new number.
    pub to: u16,
}

impl Shift {
    /// A shift, if both sides have a client number and the numbers differ.
    pub(super) fn for_clients(name: &str, from: Option<u16>, to: Option<u16>) -> Option<Self> {
        let (from, to) = (from?, to?);
        let name = name.to_owned();
        (from != to).then_some(Self { name, from, to })
    }
}

impl ChangeKind {
    /// The words of all kinds of changes.
    pub const WORDS: [&str; 62] = [
        "type-added",
        "type-removed",
        "type-renamed",
        "types-renumbered",
        "parts",
        "shown-to-clients",
        "type-persistent",
        "client-name",
        "volatile",
        "levels-of-detail",
        "temp-properties",
        "detailed-position",
        "appeal-radius",
        "manual-aoi",
        "property-added",
        "property-removed",
        "property-renamed",
        "properties-renumbered",
        "client-properties-renumbered",
        "property-type",
        "flags",
        "default",
        "account",
        "personal",
        "persistent",
        "index",
        "identifier",
        "database-length",
        "detail-level",
        "send-latest-only",
        "reliable",
        "editable",
        "header-size",
        "utype",
        "method-added",
        "method-removed",
        "method-renamed",
        "methods-renumbered",
        "client-methods-renumbered",
        "argument-added",
        "argument-removed",
        "argument-renamed",
        "arguments-reordered",
        "argument-type",
        "return-values",
        "exposed",
        "calls-per-minute",
        "detail-distance",
        "method-send-latest-only",
        "method-reliable",
        "method-header-size",
        "method-utype",
        "service-added",
        "service-removed",
        "services-renumbered",
        "object-added",
        "object-removed",
        "objects-reordered",
        "domain",
        "object-property",
        "kind-name",
        "slot-name",
    ];

    /// One word for programs, and for the table in the documentation.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::TypeAdded => "type-added",
            Self::TypeRemoved { .. } => "type-removed",
            Self::TypeRenamed { .. } => "type-renamed",
            Self::TypesRenumbered { .. } => "types-renumbered",
            Self::PartsChanged { .. } => "parts",
            Self::ShownChanged { .. } => "shown-to-clients",
            Self::TypePersistentChanged { .. } => "type-persistent",
            Self::ClientNameChanged { .. } => "client-name",
            Self::VolatileChanged => "volatile",
            Self::LevelsChanged => "levels-of-detail",
            Self::TempPropertiesChanged => "temp-properties",
            Self::DetailedPositionChanged => "detailed-position",
            Self::AppealRadiusChanged { .. } => "appeal-radius",
            Self::ManualAoiChanged { .. } => "manual-aoi",
            Self::PropertyAdded => "property-added",
            Self::PropertyRemoved { .. } => "property-removed",
            Self::PropertyRenamed { .. } => "property-renamed",
            Self::PropertiesRenumbered { .. } => "properties-renumbered",
            Self::ClientPropertiesRenumbered { .. } => "client-properties-renumbered",
            Self::PropertyType(_) => "property-type",
            Self::FlagsChanged { .. } => "flags",
            Self::DefaultChanged { .. } => "default",
            Self::AccountChanged { .. } => "account",
            Self::PersonalChanged { .. } => "personal",
            Self::PersistentChanged { .. } => "persistent",
            Self::IndexChanged { .. } => "index",
            Self::IdentifierChanged { .. } => "identifier",
            Self::DatabaseLengthChanged { .. } => "database-length",
            Self::DetailLevelChanged { .. } => "detail-level",
            Self::LatestOnlyChanged { .. } => "send-latest-only",
            Self::ReliableChanged { .. } => "reliable",
            Self::EditableChanged { .. } => "editable",
            Self::HeaderSizeChanged { .. } => "header-size",
            Self::ProtocolIdChanged => "utype",
            Self::MethodAdded => "method-added",
            Self::MethodRemoved { .. } => "method-removed",
            Self::MethodRenamed { .. } => "method-renamed",
            Self::MethodsRenumbered { .. } => "methods-renumbered",
            Self::ClientMethodsRenumbered { .. } => "client-methods-renumbered",
            Self::ArgumentAdded { .. } => "argument-added",
            Self::ArgumentRemoved { .. } => "argument-removed",
            Self::ArgumentRenamed { .. } => "argument-renamed",
            Self::ArgumentsReordered => "arguments-reordered",
            Self::ArgumentType(_) => "argument-type",
            Self::ReturnsChanged => "return-values",
            Self::ExposureChanged { .. } => "exposed",
            Self::CallLimitChanged { .. } => "calls-per-minute",
            Self::DetailDistanceChanged { .. } => "detail-distance",
            Self::MethodLatestOnlyChanged { .. } => "method-send-latest-only",
            Self::MethodReliableChanged { .. } => "method-reliable",
            Self::MethodHeaderSizeChanged { .. } => "method-header-size",
            Self::MethodProtocolIdChanged => "method-utype",
            Self::ServiceAdded => "service-added",
            Self::ServiceRemoved => "service-removed",
            Self::ServicesRenumbered => "services-renumbered",
            Self::ObjectAdded => "object-added",
            Self::ObjectRemoved => "object-removed",
            Self::ObjectsReordered => "objects-reordered",
            Self::DomainChanged { .. } => "domain",
            Self::ObjectProperty { .. } => "object-property",
            Self::KindNamed { .. } => "kind-name",
            Self::SlotNamed { .. } => "slot-name",
        }
    }
}

impl ChangeKind {
    /// The path of the difference in the value of a property or the arguments of a method. Empty for the whole.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::PropertyType(difference) | Self::ArgumentType(difference) => &difference.at,
            _ => "",
        }
    }

    /// Whether an existing declaration was altered, as opposed to added, removed or renamed.
    pub(super) fn is_alteration(&self) -> bool {
        !matches!(
            self,
            Self::PropertyAdded
                | Self::PropertyRemoved { .. }
                | Self::PropertyRenamed { .. }
                | Self::MethodAdded
                | Self::MethodRemoved { .. }
                | Self::MethodRenamed { .. }
        )
    }
}

/// The change in words, behind its place.
impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TypeAdded | Self::PropertyAdded | Self::MethodAdded | Self::ServiceAdded | Self::ObjectAdded => {
                f.write_str("added")
            }
            Self::TypeRemoved { .. }
            | Self::PropertyRemoved { .. }
            | Self::MethodRemoved { .. }
            | Self::ServiceRemoved
            | Self::ObjectRemoved => f.write_str("removed"),
            Self::TypeRenamed { from } | Self::PropertyRenamed { from } | Self::MethodRenamed { from } => {
                write!(f, "renamed, was {from}")
            }
            Self::TypesRenumbered { shifts, because } => write_shifts(f, "types", shifts, because),
            Self::PropertiesRenumbered { shifts, because } => write_shifts(f, "properties", shifts, because),
            Self::ClientPropertiesRenumbered { shifts, because } => {
                write_shifts(f, "properties for clients", shifts, because)
            }
            Self::MethodsRenumbered { kind, shifts, because } => {
                write_shifts(f, &format!("{}s", kind.word()), shifts, because)
            }
            Self::ClientMethodsRenumbered { kind, shifts, because } => {
                let what = match kind {
                    MethodKind::Base => "exposed base methods for clients",
                    MethodKind::Cell => "exposed cell methods for clients",
                    MethodKind::Client => "client methods for clients",
                };
                write_shifts(f, what, shifts, because)
            }
            Self::PropertyType(difference) | Self::ArgumentType(difference) => write!(f, "{}", difference.change),
            other => other.write_setting(f),
        }
    }
}

impl ChangeKind {
    /// Writes a change of a setting.
    fn write_setting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartsChanged { from, to } => write!(f, "parts changed from {} to {}", parts(*from), parts(*to)),
            Self::ShownChanged { to: true } => f.write_str("is met by clients"),
            Self::ShownChanged { to: false } => f.write_str("is not met by clients any more"),
            Self::TypePersistentChanged { to } | Self::PersistentChanged { to } => write_set(f, "Persistent", *to),
            Self::ClientNameChanged { from, to } => write_from(f, "ClientName", from.as_ref(), to.as_ref()),
            Self::VolatileChanged => f.write_str("Volatile changed"),
            Self::LevelsChanged => f.write_str("levels of detail changed"),
            Self::TempPropertiesChanged => f.write_str("TempProperties changed"),
            Self::DetailedPositionChanged => f.write_str("DetailedPosition changed"),
            Self::AppealRadiusChanged { from, to } => write!(f, "AppealRadius changed from {from} to {to}"),
            Self::ManualAoiChanged { to } => write_set(f, "IsManualAoI", *to),
            Self::FlagsChanged { from, to } => write!(f, "Flags changed from {from} to {to}"),
            Self::DefaultChanged { from, to } => write!(f, "Default changed from {from} to {to}"),
            Self::AccountChanged { from, to } => match (from, to) {
                (None, Some(to)) => write!(f, "has become a view of {to}"),
                (Some(from), None) => write!(f, "is no view of {from} any more"),
                _ => write_from(f, "Account", from.as_ref(), to.as_ref()),
            },
            Self::PersonalChanged { from, to } => match (from, to) {
                (None, Some(_)) => f.write_str("has become personal"),
                (Some(_), None) => f.write_str("is not personal any more"),
                _ => write_from(f, "what is sealed", from.as_ref(), to.as_ref()),
            },
            Self::IndexChanged { from, to } => write!(f, "index changed from {} to {}", index(*from), index(*to)),
            Self::IdentifierChanged { to } => write_set(f, "Identifier", *to),
            Self::DatabaseLengthChanged { from, to } => write_from(f, "DatabaseLength", from.as_ref(), to.as_ref()),
            Self::DetailLevelChanged { from, to } => write_from(f, "DetailLevel", from.as_ref(), to.as_ref()),
            Self::LatestOnlyChanged { to } | Self::MethodLatestOnlyChanged { to } => {
                write_set(f, "SendLatestOnly", *to)
            }
            Self::ReliableChanged { to } | Self::MethodReliableChanged { to } => write_set(f, "IsReliable", *to),
            Self::EditableChanged { to } => write_set(f, "Editable", *to),
            Self::HeaderSizeChanged { from, to } | Self::MethodHeaderSizeChanged { from, to } => {
                write!(f, "VariableLengthHeaderSize changed from {from} to {to}")
            }
            Self::ProtocolIdChanged | Self::MethodProtocolIdChanged => f.write_str("Utype changed"),
            Self::ArgumentAdded { name } => write!(f, "argument {name} added"),
            Self::ArgumentRemoved { name } => write!(f, "argument {name} removed"),
            Self::ArgumentRenamed { from, to } => write!(f, "argument {from} renamed to {to}"),
            Self::ArgumentsReordered => f.write_str("arguments reordered"),
            Self::ReturnsChanged => f.write_str("return values changed"),
            Self::ExposureChanged { from, to } => {
                write!(f, "Exposed changed from {} to {}", exposure(*from), exposure(*to))
            }
            Self::CallLimitChanged { from, to } => write_from(f, "CallsPerMinute", from.as_ref(), to.as_ref()),
            Self::DetailDistanceChanged { from, to } => write_from(f, "DetailDistance", from.as_ref(), to.as_ref()),
            Self::ServicesRenumbered => f.write_str("renumbered"),
            Self::ObjectsReordered => f.write_str("order changed"),
            Self::DomainChanged { from, to } => write!(f, "Domain changed from {from:?} to {to:?}"),
            Self::ObjectProperty { name } => write!(f, "property {name} changed"),
            Self::KindNamed { kind, from, to } => {
                write_from(f, &format!("name of kind {kind}"), from.as_ref(), to.as_ref())
            }
            Self::SlotNamed { slot, from, to } => {
                write_from(f, &format!("name of slot {slot}"), from.as_ref(), to.as_ref())
            }
            _ => f.write_str(self.word()),
        }
    }
}

/// Maximum names shown in a list of shifts.
const SHOWN_SHIFTS: usize = 4;

fn write_shifts(f: &mut fmt::Formatter<'_>, what: &str, shifts: &[Shift], because: &str) -> fmt::Result {
    write!(f, "{what} renumbered, as {because}: ")?;
    for (i, Shift { name, from, to }) in shifts.iter().take(SHOWN_SHIFTS).enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        write!(f, "{separator}{name} {from} → {to}")?;
    }
    match shifts.len().saturating_sub(SHOWN_SHIFTS) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

fn write_set(f: &mut fmt::Formatter<'_>, what: &str, to: bool) -> fmt::Result {
    write!(f, "{what} changed to {to}")
}

fn write_from<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    from: Option<&T>,
    to: Option<&T>,
) -> fmt::Result {
    match (from, to) {
        (Some(from), Some(to)) => write!(f, "{what} changed from {from} to {to}"),
        (None, Some(to)) => write!(f, "{what} {to} given"),
        (Some(from), None) => write!(f, "{what} {from} dropped"),
        (None, None) => write!(f, "{what} changed"),
    }
}

fn parts(parts: Parts) -> String {
    let named = [(parts.base, "base"), (parts.cell, "cell"), (parts.client, "client")];
    let named: Vec<&str> = named.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    if named.is_empty() {
        "none".to_owned()
    } else {
        named.join(" and ")
    }
}

fn index(index: Index) -> &'static str {
    match index {
        Index::None => "none",
        Index::Plain => "plain",
        Index::Unique => "unique",
    }
}

fn exposure(exposure: Exposure) -> &'static str {
    match exposure {
        Exposure::No => "nobody",
        Exposure::OwnClient => "OWN_CLIENT",
        Exposure::AllClients => "ALL_CLIENTS",
    }
}
