//! Detects in which of the two dialects a game is written.

use std::fmt;

use crate::{
    diagnostic::{Finding, Lines, Rule},
    grammar::{Dialect, GROUPS, LISTED},
    source::{Section, Sources, Span},
};

/// The tags of definitions that only one of the engines reads.
const TAGS: [(&str, Dialect); 4] = [
    ("Implements", Dialect::BigWorld),
    ("LoDLevels", Dialect::BigWorld),
    ("Interfaces", Dialect::KBEngine),
    ("DetailLevels", Dialect::KBEngine),
];

/// The dialect of a game, and how it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectChoice {
    pub dialect: Dialect,
    /// The sign that decided; `None` if there is none, in which case the dialect is BigWorld's.
    pub because: Option<DialectSign>,
}

/// A feature that only games of one dialect have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectSign {
    /// The file's path below the game's folder.
    pub file: String,
    /// The line, from 1, and the word there; `None` if the file itself is the sign.
    pub word: Option<(u32, String)>,
}

/// A sign while the texts are in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign<'s> {
    dialect: Dialect,
    /// The place of the word, or the start of the file.
    span: Span,
    /// The word; `None` if the file itself is the sign.
    word: Option<&'s str>,
}

/// The chosen dialect, and the first sign against it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'s> {
    pub(crate) dialect: Dialect,
    because: Option<Sign<'s>>,
    against: Option<Sign<'s>>,
}

/// The signs of a game, from the strongest to the weakest kind.
#[derive(Default)]
pub(crate) struct Signs<'s> {
    /// The sign in the list of entity types; at most one.
    pub(crate) list: Option<Sign<'s>>,
    /// Files that only one engine looks for; at most one of each dialect.
    pub(crate) files: Vec<Sign<'s>>,
    /// Tags; at most one of each definition and dialect.
    pub(crate) definitions: Vec<Sign<'s>>,
    /// `alias.xml`: the name in BigWorld and in old versions of KBEngine, so it never contradicts another sign.
    pub(crate) alias_file: Option<Sign<'s>>,
}

impl<'s> Sign<'s> {
    /// A file that exists.
    pub(crate) fn of_file(dialect: Dialect, root: Section<'s>) -> Self {
        let span = root.name_span().start_of();
        Self {
            dialect,
            span,
            word: None,
        }
    }

    /// The form of the list of entity types: groups, or marks.
    pub(crate) fn of_list(list: Section<'s>) -> Option<Self> {
        if let Some(group) = GROUPS.iter().find_map(|group| list.child(group)) {
            return Some(Self::of_tag(Dialect::BigWorld, group));
        }
        let is_mark = |name: &str| LISTED.attributes.iter().any(|mark| mark.name == name);
        let mut attributes = list.children().flat_map(|child| child.attributes());
        let mark = attributes.find(|attribute| is_mark(attribute.name))?;
        Some(Self {
            dialect: Dialect::KBEngine,
            span: mark.span,
            word: Some(mark.name),
        })
    }

    /// The tags of a definition: the first sign for each dialect.
    pub(crate) fn of_definition(root: Section<'s>) -> impl Iterator<Item = Self> {
        [Dialect::BigWorld, Dialect::KBEngine]
            .into_iter()
            .filter_map(move |dialect| {
                let mut tags = TAGS.iter().filter(|(_, of)| *of == dialect);
                let section = tags.find_map(|(tag, _)| root.child(tag))?;
                Some(Self::of_tag(dialect, section))
            })
    }

    fn of_tag(dialect: Dialect, section: Section<'s>) -> Self {
        Self {
            dialect,
            span: section.name_span(),
            word: Some(section.name),
        }
    }

    fn named(self) -> String {
        match self.word {
            Some(word) => format!("`{word}`"),
            None => "this file".to_owned(),
        }
    }

    fn placed(self, sources: &Sources<'_>) -> DialectSign {
        let file = sources.file(self.span.file);
        let line = || Lines::of(file).source_span(self.span).line;
        DialectSign {
            file: file.path.to_owned(),
            word: self.word.map(|word| (line(), word.to_owned())),
        }
    }
}

impl<'s> Signs<'s> {
    /// The dialect of the first kind of sign that is not for both; BigWorld if there is none.
    pub(crate) fn choose(&self) -> Choice<'s> {
        let by_weight = [
            self.list.as_slice(),
            &self.files,
            &self.definitions,
            self.alias_file.as_slice(),
        ];
        let winner = by_weight.into_iter().find_map(|signs| {
            let votes = |dialect| signs.iter().filter(|sign| sign.dialect == dialect).count();
            match votes(Dialect::BigWorld).cmp(&votes(Dialect::KBEngine)) {
                std::cmp::Ordering::Greater => Some(Dialect::BigWorld),
                std::cmp::Ordering::Less => Some(Dialect::KBEngine),
                std::cmp::Ordering::Equal => None,
            }
        });
        let dialect = winner.unwrap_or(Dialect::BigWorld);
        let mut all = by_weight.into_iter().flatten().copied();
        let because = all.clone().find(|sign| sign.dialect == dialect);
        let is_alias_file = |sign: &Sign<'_>| self.alias_file.is_some_and(|alias| alias.span == sign.span);
        let against = all.find(|sign| sign.dialect != dialect && !is_alias_file(sign));
        Choice {
            dialect,
            because,
            against,
        }
    }
}

impl Choice<'_> {
    /// The finding if the signs contradict each other.
    pub(crate) fn contradiction(&self) -> Option<Finding> {
        let against = self.against?;
        let (read_as, other) = (self.dialect.name(), against.dialect.name());
        let message = format!(
            "{} is a sign of the {other} dialect, but the game is read in the {read_as} dialect",
            against.named()
        );
        let finding = Finding::new(Rule::DialectSigns, against.span, message).help(format!(
            "use one dialect: remove the {read_as} declarations, or this one"
        ));
        Some(match self.because {
            Some(because) => finding.related(
                because.span,
                format!("{} is a sign of the {read_as} dialect", because.named()),
            ),
            None => finding,
        })
    }

    /// The choice with its place.
    pub(crate) fn placed(&self, sources: &Sources<'_>) -> DialectChoice {
        DialectChoice {
            dialect: self.dialect,
            because: self.because.map(|because| because.placed(sources)),
        }
    }
}

impl DialectChoice {
    /// The choice without any sign.
    pub(crate) fn without_sign() -> Self {
        Self {
            dialect: Dialect::BigWorld,
            because: None,
        }
    }
}

/// For example: ``read as KBEngine, because of entities.xml:4 `hasCell` ``.
impl fmt::Display for DialectChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.dialect.name();
        match &self.because {
            Some(sign) => write!(f, "read as {name}, because of {sign}"),
            None => write!(f, "read as {name}, since nothing speaks for a dialect"),
        }
    }
}

impl fmt::Display for DialectSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.word {
            Some((line, word)) => write!(f, "{}:{line} `{word}`", self.file),
            None => write!(f, "{}", self.file),
        }
    }
}
