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
    Unreadable 1 Error "a file or folder cannot be read"
        "what is declared there would be missing from the schema"
    TooLarge 2 Error "a file is larger than any definition"
        "it is more likely something else that would fill the memory"
    Encoding 3 Error "a file is not text"
        "names and strings would differ from machine to machine"
    ForeignEncoding 4 Warning "a file is not UTF-8"
        "its encoding had to be guessed or trusted, and other tools may see other characters"
    NotWellFormed 5 Error "a file is not well-formed XML"
        "where one element ends and the next begins decides what is declared"
    TooDeep 6 Error "elements are nested too deeply"
        "no definition needs it, and reading it would cost memory without bound"
    Entity 7 Error "entities are not expanded"
        "a few lines of entities can stand for gigabytes, or for files of the machine"
    StrayText 8 Warning "text stands where only elements are read"
        "it has no effect, which is seldom what its author thinks"
    Attribute 9 Warning "an attribute is not understood"
        "it has no effect, which is seldom what its author thinks"
    NoDefinitions 10 Error "a folder holds no definitions"
        "definitions are looked for in `entity_defs/`, there or below `scripts/`"
    NoEntityList 11 Warning "there is no list of entity types"
        "the order of the list fixes the type ids; the order of file names takes its place"
    TooMany 12 Error "there is more than can be numbered"
        "ids have 16 bits on the wire and in the log"
    MoreFindings 13 Note "there are more problems than are shown"
        "so many seldom differ; correct the first ones and check again"
    DialectSigns 14 Warning "there are signs of both dialects"
        "the dialect decides what some words mean and which of two declarations counts"
    ExtraFile 15 Note "a file of one game is read too"
        "the engines do not read it, and what it declares would be missing otherwise"

    UnknownTag 101 Warning "a tag is not understood"
        "the predecessors ignore it silently; a misspelt tag leaves its property at a default"
    TagCase 102 Warning "a tag is written in another case"
        "the predecessors take only the exact spelling and ignore this one"
    RepeatedTag 103 Warning "a section is there twice"
        "the first one counts, in the predecessors too"
    NotUsed 104 Note "a tag has no effect here"
        "it is understood, and concerns something that this server does not do or does otherwise"
    OtherDialect 105 Warning "a word of the other dialect"
        "it is understood, but the engine of this dialect ignores or refuses it"
    Boolean 106 Warning "neither true nor false"
        "only `true` and `false` are read, in any case; what becomes of anything else depends on the engine"
    Number 107 Error "not a number in its range"
        "a wrong number would be read as zero"
    Name 108 Error "a name cannot be used in code"
        "scripts and generated code use it as an identifier: letters, digits and `_`, not beginning with a digit"
    ReservedName 109 Warning "every entity has a member of this name already"
        "scripts could not reach one of the two"
    MissingValue 110 Error "something is to be named here"
        "an empty section declares nothing"

    UnknownType 201 Error "there is no such type"
        "without its type a member has neither size nor default nor check"
    MissingType 202 Error "a type is not given"
        "without its type a member has neither size nor default nor check"
    AliasOrder 203 Warning "an alias is used before it is declared"
        "the predecessors read the file from top to bottom and refuse this"
    AliasCycle 204 Error "an alias contains itself"
        "its values would have no end"
    RepeatedAlias 205 Warning "an alias is declared twice"
        "the first one counts, in the predecessors too"
    ElementType 206 Error "a sequence does not say of what"
        "an `ARRAY` or a `TUPLE` needs `<of> TYPE </of>`"
    SequenceSize 207 Error "a sequence cannot have this size"
        "every value of the type would have to have it"
    NoFields 208 Error "a FIXED_DICT has no fields"
        "it could hold nothing"
    RepeatedField 209 Warning "a field is declared twice"
        "the later one replaces the earlier"
    DictParent 210 Error "the parent of a FIXED_DICT is not one"
        "only fields can be inherited"
    ImplementedBy 211 Error "a USER_TYPE does not say what implements it"
        "nothing else knows what its bytes mean"
    TypeTooLarge 212 Error "a type is too large"
        "aliases of aliases double with every line, and sizes multiply"
    TypeCase 213 Warning "a type is written in another case"
        "type names are exact; the predecessors may refuse this one"
    AliasDefault 214 Warning "a default for an aliased type is not read"
        "an alias has one default; only a property may have another"
    AliasName 215 Warning "an alias hides something"
        "readers expect the type of that name"

    MissingFlags 301 Error "a property does not say who has it"
        "whether it is on the base, on the cell or sent to clients decides what it costs and who can see it"
    UnknownFlags 302 Error "there is no such distribution"
        "whether a property is on the base, on the cell or sent to clients decides what it costs and who can see it"
    FlagCase 303 Warning "flags are written in another case"
        "this dialect takes only the exact spelling"
    RepeatedProperty 304 Warning "a property is declared twice"
        "only one of the declarations has an effect"
    ClientPython 305 Warning "an opaque value travels between client and server"
        "its size is unbounded, and unpacking what a client sent can run the client's code"
    ClientMailbox 306 Error "a mailbox travels between client and server"
        "a client cannot use one, and the address would tell it about the servers"
    IndexNotPersistent 307 Error "an index on what is not stored"
        "a database finds only what is in it"
    IndexType 308 Error "an index on a type that has no order"
        "numbers, strings and blobs can be indexed, composites cannot"
    IdentifierType 309 Error "an identifier that is not a name"
        "entities are loaded by it, so it is a `STRING`, `UNICODE_STRING` or `BLOB`"
    SecondIdentifier 310 Error "a second identifier"
        "an entity type is loaded by one name"
    IdentifierIndex 311 Warning "an identifier without its unique index"
        "one name must load one entity; the index is made all the same"
    MailboxPersistent 312 Warning "a mailbox is not stored"
        "the entity it leads to may be gone when it is read back"
    DatabaseLength 313 Warning "a database length without effect"
        "only strings, blobs and opaque values have one"
    UnknownLevel 314 Error "there is no such level of detail"
        "the level decides up to which distance a change is sent"
    LevelWithoutEffect 315 Warning "a level of detail without effect"
        "only what is sent to other clients depends on their distance"
    UnreliableHistory 316 Warning "changes may be lost for ever"
        "an unreliable change is not sent again; only with SendLatestOnly does the next one make up for it"
    ProtocolId 317 Error "a fixed id cannot be used"
        "it is 16 bits wide and names one member"
    Default 318 Error "a default does not fit its type"
        "every new entity would begin with it"
    DefaultIgnored 319 Warning "a default is not read"
        "the property begins with the default of its type"
    AccountType 320 Error "a view of an account has a type for something else"
        "what an account holds is a number of units, or items with serials"
    AccountFlags 321 Error "a view of an account is not with the base part"
        "the ledger tells base parts what they hold, and nobody else"
    AccountValue 322 Error "a view of an account is given something of its own"
        "its value follows from the ledger: it is neither set nor stored, and only the newest is told"
    Personal 323 Error "a personal member that cannot be sealed"
        "what is about a person is sealed under a key of the stored entity, which its base part alone has"

    RepeatedMethod 401 Error "a method is declared twice"
        "a call could mean either; where both are the same, one of them is superfluous, which is a warning"
    ExposedClient 402 Error "a client method is exposed"
        "clients are called by the server; nobody else may call them"
    ExposedValue 403 Error "there is no such exposure"
        "who may call a method decides what a cheater can do with it"
    RepeatedArgument 404 Error "two arguments have the same name"
        "a call by name could mean either"
    ClientReturns 405 Error "a client method returns values"
        "a client answers nothing; what it says is said by calling an exposed method"
    MemberOption 406 Warning "an option without effect on this member"
        "only what is sent to clients has a distance, a history, a reliability or an order by size"

    MissingParent 501 Error "there is no such parent"
        "what the entity should inherit would be missing"
    MissingInterface 502 Error "there is no such interface"
        "what the entity should inherit would be missing"
    Cycle 503 Error "a definition inherits from itself"
        "there would be no end to what it has"
    InterfaceParent 504 Warning "an interface has no parent"
        "only entities inherit; interfaces implement other interfaces"
    RepeatedInterface 505 Warning "an interface is implemented twice"
        "the second time adds nothing"
    MissingComponent 506 Error "there is no such component"
        "what it should bring would be missing"
    RepeatedComponent 507 Error "two components have the same name"
        "their members could not be told apart"
    ComponentMethod 508 Error "methods of the same name differ"
        "a component's method is called by its name alone, so all of that name must be the same"
    ClientName 509 Error "there is no such type for clients"
        "clients are to see the entity as one of that type"
    FileCase 510 Warning "a file name is written in another case"
        "file names are exact on most servers"

    MissingDefinition 601 Error "a listed entity type has no definition"
        "its place in the list is its id, so it cannot be left out"
    RepeatedEntity 602 Warning "an entity type is listed twice"
        "its place in the list is its id, and it can have only one"
    Unlisted 603 Note "a definition is not used"
        "what is not listed is not in the schema; it was checked all the same"
    PartMismatch 604 Warning "members for a part that the entity does not have"
        "nobody can reach them"
    VolatileOrder 605 Error "directions are sent in the wrong order"
        "yaw, pitch and roll share one message: what follows can reach no further than what precedes"
    LevelCount 606 Error "too many levels of detail"
        "every observer keeps a stamp for each"
    LevelShape 607 Error "levels of detail that cannot be told apart"
        "a level is found by its label and ends at its radius"
    NameClash 608 Warning "a property and a method have the same name"
        "scripts reach only one of them by it"
    Domain 609 Error "there is no such domain"
        "a user data object is created on cells, bases or clients"
    LedgerName 610 Error "a name or a number of the ledger is there twice"
        "reports name kinds and slots by it: of two, nobody could know which is meant"

    OpaqueValue 701 Lint "a member that only scripts understand"
        "its size is unbounded, nothing checks it, and a change within it is noticed by nobody"
    WideFloat 702 Lint "more digits than clients show"
        "a `FLOAT64` takes twice the bytes of a `FLOAT32` wherever it is sent"
    WideBoolean 703 Lint "yes or no in more than one byte"
        "it takes its bytes wherever it is sent, and there are only two values to tell apart"
    LargeAtAnyDistance 704 Lint "something large is sent at any distance"
        "each change goes to every client that sees the entity, however far away"
    LargeAtCreation 705 Lint "something large is sent when the client gets the entity"
        "all of it travels before the player sees anything"
    LargeOnGhosts 706 Lint "something large is copied to every neighbouring cell"
        "each change travels to all ghosts, whether or not an entity over there looks at it"
    WholeEachTime 707 Lint "a change in a part sends the whole"
        "where only the newest change is kept, or one can be lost, parts of a value cannot be sent by themselves"
    EveryStep 708 Lint "every step of something that moves is sent"
        "of several changes between two updates each is sent, and only the last one shows"
    BytesForText 709 Lint "text as bytes"
        "a `STRING` has no encoding, so a client cannot know what its letters are"
    OneField 710 Lint "a FIXED_DICT with a single field"
        "nothing is bundled, and each change of the field takes a path into the value"
    ShownToNobody 711 Lint "a property for clients of types that have none"
        "no client ever sees it"
    StoredByNobody 712 Lint "a persistent property of types that are not stored"
        "it is never written"
    TemporaryYetKept 713 Lint "a temporary property that is stored or shown"
        "what is lost with each hand-over to another cell is neither worth storing nor right to show"
    UnboundedName 714 Lint "an index on text of any length"
        "an index looks at the first 255 bytes: names that differ only behind them are one name"
    UnboundedStored 715 Lint "something of any size is stored"
        "an entity is written as a whole, so all of it is written again with every change of anything"
    UnboundedArgument 716 Lint "clients can send something of any length"
        "whoever wants to do harm sends as much as a message may hold, as often as allowed"
    ExposedSilently 717 Lint "exposed, but it is not said to whom"
        "on a cell that is every client which sees the entity, and easily overlooked"
    HeardFar 718 Lint "a call of variable size reaches any distance"
        "called for all clients, it goes to every one that sees the entity"
    UnusedLevel 719 Lint "a level of detail that no property has"
        "each level keeps a stamp for every observer, and crossing its radius is work"
    NoHysteresis 720 Lint "a level of detail without hysteresis"
        "whoever walks along its radius changes levels with every step"
    PositionTwice 721 Lint "a volatile position and an exact one"
        "the exact one is sent with every change, in more bytes, beside the volatile one"
    VolatileUnseen 722 Lint "a volatile position that no client sees"
        "it is sent to clients only, and the type has none"
    UnusedAlias 723 Lint "an alias that nothing uses"
        "readers look for its meaning"
    LongIds 724 Lint "more members than short ids"
        "the ids of those of largest size take a second byte in each message"
    AccountOfNobody 725 Lint "a view of an account of types that are not stored"
        "only entities of the database hold anything, so there is never anything to see"

    Allowance 751 Warning "an allowance that cannot count"
        "it names rules that may be broken here and says why, as in `allow D0704: seen once`"
    UnusedAllowance 752 Lint "an allowance for nothing"
        "the next one to break the rule here would not be told"
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
