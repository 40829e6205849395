//! What was found so far: bounded, ordered, and without what the files allow.

use std::collections::{BTreeMap, BTreeSet};

use super::{Diagnostic, Finding, MAX_SUGGESTIONS, Places, Rule, Severity, Where, nearest};
use crate::source::{FileId, Sources, Span};

/// Most findings of each severity that are kept of one run. Beyond, they repeat themselves. Each severity has its own
/// bound, so that no number of warnings hides an error.
pub const MAX_FINDINGS: usize = 5_000;

/// A rule that a file allows to be broken, and where.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    pub(crate) rule: Rule,
    /// The comment that says so.
    pub(crate) at: Span,
    pub(crate) covers: Span,
    /// It let something pass.
    pub(crate) is_used: bool,
    /// It covers an error, which stays all the same.
    pub(crate) covers_error: bool,
}

/// What was found so far. What is allowed is not kept, and takes no room from what is not.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// By severity; of each the first in the order of files and places.
    kept: BTreeMap<Severity, BTreeSet<Finding>>,
    left_out: BTreeMap<Severity, usize>,
    allowances: BTreeMap<FileId, Vec<Allowance>>,
    suggestions: usize,
}

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        if self.allows(&finding) {
            return;
        }
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

    /// The candidate that was probably meant by `word`.
    pub(crate) fn nearest<'c>(&mut self, word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        if self.suggestions == MAX_SUGGESTIONS {
            return None;
        }
        self.suggestions += 1;
        nearest(word, candidates)
    }

    /// Lets what is allowed pass: of what was found before, and from now on.
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

    fn allows(&mut self, finding: &Finding) -> bool {
        let Where::Span(at) = finding.at else { return false };
        let Some(allowances) = self.allowances.get_mut(&at.file) else {
            return false;
        };
        let covers =
            |one: &Allowance| one.rule == finding.rule && (one.covers.start..one.covers.end).contains(&at.start);
        let mut is_allowed = false;
        for allowance in allowances.iter_mut().filter(|one| covers(one)) {
            if finding.severity == Severity::Error {
                allowance.covers_error = true;
            } else {
                allowance.is_used = true;
                is_allowed = true;
            }
        }
        is_allowed
    }

    /// Whether anything found forbids a schema.
    pub(crate) fn has_errors(&self) -> bool {
        self.kept.contains_key(&Severity::Error)
    }

    /// The findings with the places they point at: by file, line, column and rule, each once.
    pub(crate) fn into_diagnostics(mut self, sources: &Sources<'_>) -> Vec<Diagnostic> {
        if let Some(message) = self.left_out() {
            self.push(Finding::in_path(Rule::MoreFindings, "", message));
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
