//! The findings of a run: bounded, ordered, without what the files allow.

use std::collections::{BTreeMap, BTreeSet};

use super::{Diagnostic, Finding, MAX_SUGGESTIONS, Places, Rule, Severity, Where, nearest};
use crate::source::{FileId, Sources, Span};

/// Maximum findings kept of each severity in one run; beyond this they repeat themselves. Each severity has its own
/// limit, so that no number of warnings hides an error.
pub const MAX_FINDINGS: usize = 5_000;

/// Maximum findings of one tag that are reported singly. A tag that another engine knows and this language does not can
/// occur in thousands of places.
const MAX_REPEATED: usize = 8;

/// The rules about tags.
const OF_TAGS: [Rule; 2] = [Rule::UnknownTag, Rule::NotUsed];

/// An allowance: a rule that a file permits to be broken, and where.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    pub(crate) rule: Rule,
    /// The place of the comment.
    pub(crate) at: Span,
    pub(crate) covers: Span,
    /// Whether it matched a finding.
    pub(crate) is_used: bool,
    /// Whether it covers an error, which is reported all the same.
    pub(crate) covers_error: bool,
}

/// The findings so far. Allowed findings are not kept and do not count against the limits.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// By severity: the first ones in the order of files and places.
    kept: BTreeMap<Severity, BTreeSet<Finding>>,
    left_out: BTreeMap<Severity, usize>,
    /// Findings about tags, by rule and message.
    of_tags: BTreeMap<(Rule, String), OfTag>,
    allowances: BTreeMap<FileId, Vec<Allowance>>,
    suggestions: usize,
}

/// Findings about one tag.
#[derive(Debug, Default)]
struct OfTag {
    /// The first few, in the order of files and places.
    first: BTreeSet<Finding>,
    count: usize,
    files: BTreeSet<FileId>,
}

impl OfTag {
    /// Each finding if there are few, else the first one with their number.
    fn into_findings(mut self) -> Vec<Finding> {
        let OfTag { count, files, .. } = &self;
        let (count, files) = (*count, files.len());
        if count <= MAX_REPEATED {
            return self.first.into_iter().collect();
        }
        let plural = if files == 1 { "" } else { "s" };
        let first = self.first.pop_first().into_iter();
        first
            .map(|first| {
                let message = format!("{} ({count} times in {files} file{plural})", first.message);
                Finding { message, ..first }
            })
            .collect()
    }
}

impl Findings {
    /// An empty collection with the same allowances, for a part of a run.
    pub(crate) fn apart(&self) -> Self {
        Self {
            suggestions: self.suggestions,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        let Some(finding) = self.unless_allowed(finding) else {
            return;
        };
        match finding.at {
            Where::Span(at) if OF_TAGS.contains(&finding.rule) => self.push_of_tag(finding, at.file),
            _ => self.keep(finding),
        }
    }

    fn push_of_tag(&mut self, finding: Finding, file: FileId) {
        let key = (finding.rule, finding.message.clone());
        if self.of_tags.len() == MAX_FINDINGS && !self.of_tags.contains_key(&key) {
            return self.keep(finding);
        }
        let of_tag = self.of_tags.entry(key).or_default();
        of_tag.count += 1;
        of_tag.files.insert(file);
        of_tag.first.insert(finding);
        if of_tag.first.len() > MAX_REPEATED {
            of_tag.first.pop_last();
        }
    }

    /// Whether there are so many findings with this message about a tag that another one changes only their number.
    pub(crate) fn is_repeated(&self, rule: Rule, message: &str) -> bool {
        let of_tag = self.of_tags.get(&(rule, message.to_owned()));
        of_tag.is_some_and(|of_tag| of_tag.count >= MAX_REPEATED)
    }

    fn keep(&mut self, finding: Finding) {
        let severity = finding.severity;
        let kept = self.kept.entry(severity).or_default();
        kept.insert(finding);
        if kept.len() > MAX_FINDINGS {
            kept.pop_last();
            *self.left_out.entry(severity).or_default() += 1;
        }
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }

    /// The candidate most similar to `word`, if one is similar enough.
    pub(crate) fn nearest<'c>(&mut self, word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        if self.suggestions == MAX_SUGGESTIONS {
            return None;
        }
        self.suggestions += 1;
        nearest(word, candidates)
    }

    /// Applies allowances to the findings so far and to later ones.
    pub(crate) fn allow(&mut self, allowances: BTreeMap<FileId, Vec<Allowance>>) {
        self.allowances = allowances;
        for finding in std::mem::take(&mut self.kept).into_values().flatten() {
            self.push(finding);
        }
    }

    /// The allowances, in the order of files and comments.
    pub(crate) fn allowances(&self) -> impl Iterator<Item = &Allowance> {
        self.allowances.values().flatten()
    }

    /// Adds the findings of a part of the run that no listed type needs; its errors become warnings.
    pub(crate) fn extend_idle(&mut self, idle: Self) {
        self.suggestions = idle.suggestions;
        for (severity, count) in idle.left_out {
            let severity = severity.max(Severity::Warning);
            *self.left_out.entry(severity).or_default() += count;
        }
        for finding in idle.kept.into_values().flatten() {
            let errors = self.kept.get(&Severity::Error);
            // Skip findings that a listed type has too.
            if errors.is_none_or(|errors| !errors.contains(&finding)) {
                self.push(finding.idle());
            }
        }
        for finding in idle.of_tags.into_values().flat_map(|of_tag| of_tag.first) {
            self.push(finding);
        }
    }

    /// Turns errors at places that no listed type needs into warnings.
    pub(crate) fn forgive(&mut self, is_idle: impl Fn(&Where) -> bool) {
        // The places of errors that were not kept are unknown.
        if self.left_out.contains_key(&Severity::Error) {
            return;
        }
        for allowance in self.allowances.values_mut().flatten() {
            allowance.covers_error = false;
        }
        for finding in self.kept.remove(&Severity::Error).into_iter().flatten() {
            let finding = if is_idle(&finding.at) { finding.idle() } else { finding };
            self.push(finding);
        }
    }

    /// The finding after allowances: `None` if it is allowed. An error stays, but becomes a warning if it may be
    /// allowed.
    fn unless_allowed(&mut self, finding: Finding) -> Option<Finding> {
        let is_error = finding.severity == Severity::Error;
        match self.is_allowed(&finding) {
            false => Some(finding),
            true if is_error => Some(finding.severity(Severity::Warning)),
            true => None,
        }
    }

    fn is_allowed(&mut self, finding: &Finding) -> bool {
        let Where::Span(at) = finding.at else { return false };
        let Some(allowances) = self.allowances.get_mut(&at.file) else {
            return false;
        };
        let covers =
            |one: &Allowance| one.rule == finding.rule && (one.covers.start..one.covers.end).contains(&at.start);
        let mut is_allowed = false;
        for allowance in allowances.iter_mut().filter(|one| covers(one)) {
            if finding.severity == Severity::Error && !finding.rule.is_error_allowed() {
                allowance.covers_error = true;
            } else {
                allowance.is_used = true;
                is_allowed = true;
            }
        }
        is_allowed
    }

    /// Whether there is an error, which forbids a schema.
    pub(crate) fn has_errors(&self) -> bool {
        self.kept.contains_key(&Severity::Error)
    }

    /// The findings with lines and columns, ordered by file, line, column and rule, without duplicates.
    pub(crate) fn into_diagnostics(mut self, sources: &Sources<'_>) -> Vec<Diagnostic> {
        let of_tags = std::mem::take(&mut self.of_tags);
        for finding in of_tags.into_values().flat_map(OfTag::into_findings) {
            self.keep(finding);
        }
        if let Some(message) = self.left_out() {
            self.keep(Finding::in_path(Rule::MoreFindings, "", message));
        }
        let mut list: Vec<_> = self.kept.into_values().flatten().collect();
        list.sort();
        let mut places = Places::of(sources);
        list.into_iter()
            .map(|finding| finding.into_diagnostic(&mut places))
            .collect()
    }

    /// `7 more warnings and 1 more note are not shown`.
    fn left_out(&self) -> Option<String> {
        let parts: Vec<String> = self
            .left_out
            .iter()
            .map(|(severity, count)| format!("{count} more {severity}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        let verb = match parts.len() {
            0 => return None,
            _ if self.left_out.values().sum::<usize>() == 1 => "is",
            _ => "are",
        };
        let (last, others) = parts.split_last()?;
        Some(match others {
            [] => format!("{last} {verb} not shown"),
            others => format!("{} and {last} {verb} not shown", others.join(", ")),
        })
    }
}
