//! The rules of the language that can be broken: code, severity, and the reason for each.

use std::fmt;

use crate::grammar::Dialect;

/// The severity of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// There is no schema until it is fixed.
    Error,
    /// There is a schema, but perhaps not the intended one.
    Warning,
    /// The declaration means what was intended, but could be better. Reported only on request.
    Lint,
    /// A declaration was understood and has no effect.
    Note,
}

/// The documentation of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleText {
    /// The digits of its code.
    pub number: u16,
    /// The severity, unless the dialect has another.
    pub severity: Severity,
    /// The rule, in a few words.
    pub title: &'static str,
    /// The reason for the rule.
    pub why: &'static str,
}

/// Declares the rules and the table of their texts in one place.
macro_rules! rules {
    ($($rule:ident $number:literal $severity:ident $title:literal $why:literal)*) => {
        /// A rule of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $title] $rule,)*
        }

        impl Rule {
            /// Every rule in the order of its code.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

            /// What is documented about the rule.
            #[must_use]
            pub fn text(self) -> RuleText {
                match self {
                    $(Rule::$rule => RuleText {
                        number: $number,
                        severity: Severity::$severity,
                        title: $title,
                        why: $why,
                    },)*
                }
            }
        }
    };
}

rules! {
    Unreadable 1 Error "unreadable file or folder"
        "its declarations would be missing from the schema"
    TooLarge 2 Error "file larger than any definition"
        "it is probably not a definition, and reading it could exhaust the memory"
    Encoding 3 Error "file is not text"
        "names and strings would differ from machine to machine"
    ForeignEncoding 4 Warning "file is not UTF-8"
        "its encoding was guessed or taken from its declaration, and other tools may decode other characters"
    NotWellFormed 5 Error "file is not well-formed XML"
        "the bounds of the elements decide what is declared"
    TooDeep 6 Error "elements nested too deeply"
        "no definition needs this depth, and reading it would take unbounded memory"
    Entity 7 Error "unsupported XML entity"
        "a few lines of entity declarations can expand to gigabytes, or include files of the machine"
    StrayText 8 Warning "text where only elements are read"
        "the text has no effect, which is rarely intended"
    Attribute 9 Warning "attribute without effect"
        "an attribute that has no effect is rarely intended"
    NoDefinitions 10 Error "folder without definitions"
        "definitions are read from `entity_defs/`, in the folder itself or below `scripts/`"
    NoEntityList 11 Warning "missing list of entity types"
        "the order of the list fixes the type ids; without it, the order of file names does"
    TooMany 12 Error "more declarations than ids"
        "ids have 16 bits on the wire and in the log"
    MoreFindings 13 Note "more findings than are shown"
        "so many findings rarely differ; fix the first ones and check again"
    DialectSigns 14 Warning "signs of both dialects"
        "the dialect decides the meaning of some words, and which of two declarations takes effect"
    ExtraFile 15 Note "file that the engines do not read"
        "it is a file of one shipped game, whose declarations would be missing otherwise"

    UnknownTag 101 Warning "unknown tag"
        "BigWorld and KBEngine ignore it silently; a misspelt tag leaves its property at a default"
    TagCase 102 Warning "tag in the wrong case"
        "BigWorld and KBEngine accept only the exact spelling and ignore this one"
    RepeatedTag 103 Warning "repeated section"
        "only the first one takes effect, as in BigWorld and KBEngine"
    NotUsed 104 Note "declaration without effect"
        "it is understood, but concerns something that this server does not do or does differently"
    OtherDialect 105 Warning "word of the other dialect"
        "it is understood, but the engine of this dialect ignores or rejects it"
    Boolean 106 Warning "value is neither true nor false"
        "only `true` and `false` are read, in any case; the effect of anything else depends on the engine"
    Number 107 Error "invalid number"
        "a number that is invalid or out of range would be read as zero"
    Name 108 Error "invalid name"
        "scripts and generated code use it as an identifier: letters, digits and `_`, not beginning with a digit"
    ReservedName 109 Warning "name of a built-in member"
        "scripts could not reach one of the two members"
    MissingValue 110 Error "missing value"
        "an empty section declares nothing"

    UnknownType 201 Error "unknown type"
        "the size, the default and the checks of a member follow from its type"
    MissingType 202 Error "missing type"
        "the size, the default and the checks of a member follow from its type"
    AliasOrder 203 Warning "alias used before its declaration"
        "BigWorld and KBEngine read the file from top to bottom and reject this"
    AliasCycle 204 Error "alias that contains itself"
        "its values would be infinite"
    RepeatedAlias 205 Warning "alias declared twice"
        "only the first declaration takes effect, as in BigWorld and KBEngine"
    ElementType 206 Error "sequence without an element type"
        "an `ARRAY` or a `TUPLE` needs `<of> TYPE </of>`"
    SequenceSize 207 Error "invalid sequence size"
        "every value of the type must have this size"
    NoFields 208 Error "FIXED_DICT without fields"
        "it could hold nothing"
    RepeatedField 209 Warning "field declared twice"
        "the later declaration replaces the earlier one"
    DictParent 210 Error "parent of a FIXED_DICT is not a FIXED_DICT"
        "only fields can be inherited"
    ImplementedBy 211 Error "USER_TYPE without an implementation"
        "only its implementation defines what its bytes mean"
    TypeTooLarge 212 Error "type too large"
        "aliases of aliases double with every line, and sizes multiply"
    TypeCase 213 Warning "type name in the wrong case"
        "type names are case-sensitive; BigWorld and KBEngine may reject this one"
    AliasDefault 214 Warning "default of an aliased type is not read"
        "an alias has one default; only a property can have another"
    AliasName 215 Warning "alias name with another meaning"
        "readers and engines expect the other meaning of the name"

    MissingFlags 301 Error "missing flags"
        "whether a property is on the base, on the cell or sent to clients decides its cost and its visibility"
    UnknownFlags 302 Error "unknown flags"
        "whether a property is on the base, on the cell or sent to clients decides its cost and its visibility"
    FlagCase 303 Warning "flags in the wrong case"
        "this dialect accepts only the exact spelling"
    RepeatedProperty 304 Warning "property declared twice"
        "only one of the declarations takes effect"
    ClientPython 305 Warning "opaque value sent between client and server"
        "its size is unbounded, and unpacking data of a client can run the client's code"
    ClientMailbox 306 Error "mailbox sent between client and server"
        "a client cannot use it, and its address would reveal the servers to the client"
    IndexNotPersistent 307 Error "index on a property that is not stored"
        "a database finds only stored values"
    IndexType 308 Error "invalid index"
        "numbers, strings and blobs can be indexed, composites cannot"
    IdentifierType 309 Error "identifier of the wrong type"
        "entities are loaded by it, so it must be a `STRING`, `UNICODE_STRING` or `BLOB`"
    SecondIdentifier 310 Error "second identifier"
        "an entity type is loaded by one name"
    IdentifierIndex 311 Warning "identifier without a unique index"
        "one name must load one entity; the index is created in any case"
    MailboxPersistent 312 Warning "persistent mailbox is not stored"
        "its entity may no longer exist when the value is loaded"
    DatabaseLength 313 Warning "database length without effect"
        "only strings, blobs and opaque values have one"
    UnknownLevel 314 Error "unknown level of detail"
        "the level decides up to which distance a change is sent"
    LevelWithoutEffect 315 Warning "level of detail without effect"
        "only changes sent to other clients depend on their distance"
    UnreliableHistory 316 Warning "change that can be lost permanently"
        "an unreliable change is not sent again; only with SendLatestOnly does the next one replace it"
    ProtocolId 317 Error "invalid fixed id"
        "a fixed id has 16 bits and belongs to one member"
    Default 318 Error "default does not fit its type"
        "every new entity would begin with it"
    DefaultIgnored 319 Warning "default is not read"
        "the property begins with the default of its type"
    AccountType 320 Error "account view of the wrong type"
        "an account holds a number of units, or items with serials"
    AccountFlags 321 Error "account view outside the base part"
        "the ledger sends holdings to base parts only"
    AccountValue 322 Error "account view with a value of its own"
        "its value follows from the ledger: it is neither set nor stored, and only the newest is sent"
    Personal 323 Error "personal member that cannot be sealed"
        "personal data is sealed with a key of the stored entity, which only its base part has"

    RepeatedMethod 401 Error "method declared twice"
        "a call would be ambiguous; a second declaration that is identical is redundant, which is a warning"
    ExposedClient 402 Error "exposed client method"
        "only the server calls client methods"
    ExposedValue 403 Error "invalid exposure"
        "the callers of a method decide what a cheater can do with it"
    RepeatedArgument 404 Error "repeated argument name"
        "a call that names its arguments would be ambiguous"
    ClientReturns 405 Error "client method with return values"
        "a client sends no return values; it calls an exposed method instead"
    MemberOption 406 Warning "option without effect on this member"
        "only what is sent to clients has a distance, a history, a reliability or an order by size"

    MissingParent 501 Error "missing parent"
        "what the entity should inherit would be missing"
    MissingInterface 502 Error "missing interface"
        "what the entity should inherit would be missing"
    Cycle 503 Error "endless inheritance"
        "collecting the members of the definition would not end, or would take too long"
    InterfaceParent 504 Warning "interface with a parent"
        "only entities inherit; interfaces implement other interfaces"
    RepeatedInterface 505 Warning "interface implemented twice"
        "the second time adds nothing"
    MissingComponent 506 Error "missing component"
        "the members of the component would be missing"
    RepeatedComponent 507 Error "repeated component name"
        "the members of the two components would have the same names"
    ComponentMethod 508 Error "conflicting methods of a component"
        "a component's method is called by its name alone, so all methods of that name must be the same"
    ClientName 509 Error "unknown client type"
        "clients see the entity as one of that type"
    FileCase 510 Warning "file name in the wrong case"
        "file names are case-sensitive on most servers"

    MissingDefinition 601 Error "listed entity type without a definition"
        "its place in the list is its id, so it cannot be skipped"
    RepeatedEntity 602 Warning "entity type listed twice"
        "its place in the list is its id, and it can have only one"
    Unlisted 603 Note "unused definition"
        "it is not in the schema; it was checked in any case"
    PartMismatch 604 Warning "member of a part that the entity type does not have"
        "the member cannot be reached"
    VolatileOrder 605 Error "directions with increasing distances"
        "yaw, pitch and roll share one message: each can reach no further than the one before"
    LevelCount 606 Error "too many levels of detail"
        "every observer keeps a stamp for each"
    LevelShape 607 Error "incomplete level of detail"
        "a level is found by its label and ends at its radius"
    NameClash 608 Warning "property and method with the same name"
        "scripts reach only one of them by it"
    Domain 609 Error "unknown domain"
        "a user data object is created on cells, bases or clients"
    LedgerName 610 Error "repeated name or number of the ledger"
        "reports refer to kinds and slots by name, and a repeated one is ambiguous"

    OpaqueValue 701 Lint "member that only scripts can interpret"
        "its size is unbounded, its value is not checked, and a change within it is not detected"
    WideFloat 702 Lint "64-bit float sent to clients"
        "a `FLOAT64` takes twice the bytes of a `FLOAT32` wherever it is sent"
    WideBoolean 703 Lint "boolean of more than one byte"
        "all its bytes are sent, to distinguish two values"
    LargeAtAnyDistance 704 Lint "large value sent at any distance"
        "each change goes to every client that sees the entity, however far away"
    LargeAtCreation 705 Lint "large value sent when the client gets the entity"
        "all of it is sent before the player sees anything"
    LargeOnGhosts 706 Lint "large value copied to every neighbouring cell"
        "each change goes to all ghosts, whether or not an entity of their cell reads it"
    WholeEachTime 707 Lint "change of a part sends the whole value"
        "where only the newest change is kept, or one can be lost, parts of a value cannot be sent separately"
    EveryStep 708 Lint "every intermediate change is sent"
        "of several changes between two updates each is sent, and only the last one is visible"
    BytesForText 709 Lint "text sent as bytes"
        "a `STRING` has no encoding, so a client cannot know which characters it holds"
    OneField 710 Lint "FIXED_DICT with a single field"
        "it groups nothing, and each change of the field takes a path into the value"
    ShownToNobody 711 Lint "client property of types without clients"
        "no client ever sees it"
    StoredByNobody 712 Lint "persistent property of types that are not stored"
        "it is never written"
    TemporaryYetKept 713 Lint "temporary property that is stored or shown"
        "a value that is lost with each hand-over to another cell should be neither stored nor shown"
    UnboundedName 714 Lint "index on text of any length"
        "an index covers the first 255 bytes: names that differ only after them are one name"
    UnboundedStored 715 Lint "stored value of any size"
        "an entity is written as a whole, so each change of any property writes all of it again"
    UnboundedArgument 716 Lint "argument of any size from clients"
        "an attacker can send as much as a message may hold, as often as calls are allowed"
    ExposedSilently 717 Lint "exposed method without named callers"
        "on a cell, every client that sees the entity can call it, which is easily overlooked"
    SentFar 718 Lint "call of variable size sent at any distance"
        "a call to all clients goes to every one that sees the entity"
    UnusedLevel 719 Lint "unused level of detail"
        "each level keeps a stamp for every observer, and crossing its radius takes work"
    NoHysteresis 720 Lint "level of detail without hysteresis"
        "an observer that moves along its radius changes levels with every step"
    ExactPosition 721 Lint "exact volatile position"
        "an exact position is not coded as the difference from what the client predicts"
    VolatileUnseen 722 Lint "volatile position that no client sees"
        "it is sent to clients only, and the type has none"
    UnusedAlias 723 Lint "unused alias"
        "readers look for its meaning"
    LongIds 724 Lint "more members than ids of one byte"
        "the ids of the members of largest size take a second byte in each message"
    AccountOfNobody 725 Lint "account view of types that are not stored"
        "only stored entities have holdings, so the view is always empty"

    Allowance 751 Warning "allowance without effect"
        "an allowance names rules that may be broken and gives the reason, as in `allow D0704: seen once`"
    UnusedAllowance 752 Lint "unused allowance"
        "the next violation of the rule here would not be reported"

    PlacedType 801 Error "type that cannot be placed"
        "nothing can be created from it"
    PlacedProperty 802 Error "property that a zone cannot set"
        "it does not exist, or its value does not come from a zone"
    ObjectGuid 803 Error "invalid or repeated GUID"
        "references could not distinguish two user data objects"
    DanglingReference 804 Warning "reference to a user data object that is in no zone"
        "behaviour finds nothing there"
}

impl Rule {
    /// The severity of the rule in a dialect, unless the case has another. KBEngine accepts more in declarations that
    /// its engine runs; it rejects more in names and lists.
    #[must_use]
    pub fn severity_in(self, dialect: Dialect) -> Severity {
        const FORGIVEN: [Rule; 5] = [
            Rule::Default,
            Rule::ClientMailbox,
            Rule::UnknownLevel,
            Rule::ExposedClient,
            Rule::VolatileOrder,
        ];
        const REFUSED: [Rule; 2] = [Rule::ReservedName, Rule::RepeatedEntity];
        match dialect {
            Dialect::KBEngine if FORGIVEN.contains(&self) => Severity::Warning,
            Dialect::KBEngine if REFUSED.contains(&self) => Severity::Error,
            _ => self.text().severity,
        }
    }

    /// Whether a comment can allow an error of this rule, which then becomes a warning.
    #[must_use]
    pub fn is_error_allowed(self) -> bool {
        self == Self::ClientMailbox
    }

    /// The rule with this code, like `D0101`.
    #[must_use]
    pub fn with_code(code: &str) -> Option<Rule> {
        let number: u16 = code.strip_prefix(['D', 'd'])?.parse().ok()?;
        Rule::ALL.iter().copied().find(|rule| rule.text().number == number)
    }
}

/// The rule's code: `D` and four digits.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D{:04}", self.text().number)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Lint => "lint",
            Severity::Note => "note",
        })
    }
}
