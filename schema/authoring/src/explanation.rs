//! Explanations of rules: the reason, files that break the rule, and the same files corrected.
//!
//! An explanation is a file in `explain/`, named like its rule. Its examples are sections begun by `=== path`, like the
//! cases of the tests, and are compiled by a test, so their output is real. An example without a list gets one with the
//! type `Avatar` and its empty definition. In examples
//! - `… × 5` at the end of a line repeats the line, with `{n}` counting from 0,
//! - `\xff` is a byte,
//! - `(not there)` behind a path removes the file, `(cannot be read)` makes it unreadable.

use std::fmt::Write as _;

use annals_def::{Rule, Style, Tree, render, survey};

/// The explanation of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The explanation, in paragraphs.
    pub text: &'static str,
    /// Files that break the rule.
    pub wrong: Example,
    /// Files that follow it.
    pub right: Example,
}

/// Files as one text: each behind a line with its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example(pub &'static str);

/// The mark that repeats its line.
const REPEAT: &str = " … × ";

impl Explanation {
    /// The explanation of a rule.
    #[must_use]
    pub fn of(rule: Rule) -> Self {
        Self::parse(text_of(rule))
    }

    /// Parses the text of an explanation.
    fn parse(text: &'static str) -> Self {
        let (text, examples) = text.split_once("# Wrong\n").unwrap_or((text, ""));
        let (wrong, right) = examples.split_once("# Right\n").unwrap_or((examples, ""));
        Self {
            text: text.trim(),
            wrong: Example(wrong.trim()),
            right: Example(right.trim()),
        }
    }
}

impl Example {
    /// The files of the example.
    #[must_use]
    pub fn tree(self) -> Tree {
        let mut tree = Tree::new();
        let sections = || {
            let sections = self.0.split("=== ").skip(1);
            sections.map(|section| section.split_once('\n').unwrap_or((section, "")))
        };
        let is_game = |path: &str| {
            let starts = [
                "entities.xml",
                "entity_defs/",
                "user_data_objects.xml",
                "ledger.xml",
                "zones/",
            ];
            starts.iter().any(|start| path.starts_with(start))
        };
        if sections().any(|(path, _)| is_game(path)) {
            tree.insert("entities.xml", "<root> <Avatar/> </root>");
            tree.insert("entity_defs/Avatar.def", "<root> </root>");
        }
        for (path, content) in sections() {
            match path.split_once(" (") {
                Some((path, "not there)")) => tree.remove(path),
                Some((path, _)) => tree.cannot_read(path, "Permission denied"),
                None => tree.insert(path, bytes(content)),
            }
        }
        tree
    }
}

/// The content of a file with its abbreviations expanded.
fn bytes(content: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in content.lines() {
        match line.split_once(REPEAT) {
            Some((part, count)) => {
                let count: usize = count.trim().parse().unwrap_or(1);
                for n in 0..count {
                    push_line(&part.replace("{n}", &n.to_string()), &mut bytes);
                }
            }
            None => push_line(line, &mut bytes),
        }
    }
    bytes
}

fn push_line(line: &str, bytes: &mut Vec<u8>) {
    let mut parts = line.split("\\x");
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part[2..].bytes());
            }
            None => bytes.extend(part.bytes()),
        }
    }
    bytes.push(b'\n');
}

/// An explanation as shown on a terminal: the text, the wrong example with its diagnostics, the right one.
#[must_use]
pub fn explain(rule: Rule, style: Style) -> String {
    let Explanation { text, wrong, right } = Explanation::of(rule);
    let short = rule.text();
    let mut out = format!(
        "{rule}: {} ({})\n\n{text}\n\nWhy: {}.\n",
        short.title, short.severity, short.why
    );
    let _ = write!(out, "\nThis breaks it:\n\n{}\n", indented(wrong.0));
    let mut found = survey(&wrong.tree()).diagnostics;
    found.retain(|diagnostic| diagnostic.rule == rule);
    found.truncate(1);
    let said = render(&found, style);
    let said = said.trim_end().rsplit_once("\n\n").map_or("", |(said, _)| said);
    let _ = write!(out, "\nWhat is said about it:\n\n{}\n", indented(said));
    let _ = write!(out, "\nThis does not:\n\n{}\n", indented(right.0));
    out
}

fn indented(text: &str) -> String {
    let line = |line: &str| match line {
        "" => String::new(),
        line => format!("    {}", line.replace('\t', "    ")),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Lists every rule once: a missing rule, or one without a file, does not compile.
macro_rules! texts {
    ($($rule:ident)*) => {
        fn text_of(rule: Rule) -> &'static str {
            match rule {
                $(Rule::$rule => include_str!(concat!("../explain/", stringify!($rule), ".md")),)*
            }
        }
    };
}

texts! {
    Unreadable TooLarge Encoding ForeignEncoding NotWellFormed TooDeep Entity StrayText Attribute NoDefinitions
    NoEntityList TooMany MoreFindings DialectSigns ExtraFile UnknownTag TagCase RepeatedTag NotUsed OtherDialect Boolean Number
    Name ReservedName MissingValue UnknownType MissingType AliasOrder AliasCycle RepeatedAlias ElementType
    SequenceSize NoFields RepeatedField DictParent ImplementedBy TypeTooLarge TypeCase AliasDefault AliasName
    MissingFlags UnknownFlags FlagCase RepeatedProperty ClientPython ClientMailbox IndexNotPersistent IndexType
    IdentifierType SecondIdentifier IdentifierIndex MailboxPersistent DatabaseLength UnknownLevel LevelWithoutEffect
    UnreliableHistory ProtocolId Default DefaultIgnored AccountType AccountFlags AccountValue Personal RepeatedMethod ExposedClient ExposedValue RepeatedArgument
    ClientReturns MemberOption MissingParent MissingInterface Cycle InterfaceParent RepeatedInterface MissingComponent
    RepeatedComponent ComponentMethod ClientName FileCase MissingDefinition RepeatedEntity Unlisted PartMismatch
    VolatileOrder LevelCount LevelShape NameClash Domain LedgerName OpaqueValue WideFloat WideBoolean LargeAtAnyDistance
    LargeAtCreation LargeOnGhosts WholeEachTime EveryStep BytesForText OneField ShownToNobody StoredByNobody
    TemporaryYetKept UnboundedName UnboundedStored UnboundedArgument ExposedSilently SentFar UnusedLevel NoHysteresis
    ExactPosition VolatileUnseen UnusedAlias LongIds AccountOfNobody Allowance UnusedAllowance PlacedType PlacedProperty
    ObjectGuid DanglingReference
}
