//! Allowances: comments that say which rule may be broken at a place, and why.
//!
//! ```text
//! <!-- allow D0704: the shop's list, which changes once a day -->
//! ```
//! An allowance covers the element that follows it, or, if something stands before it on its line, the elements that begin
//! on that line; in both cases with everything in them. So one above the root covers the file. Errors cannot be allowed.

use std::collections::BTreeMap;

use super::Documents;
use crate::{
    diagnostic::{Finding, Findings, Rule, Severity, Where},
    source::{Comment, Document, FileId, Span},
};

/// Most allowances of one file: each is compared with whatever is found in it.
const MAX_ALLOWANCES: usize = 1_000;

/// Longest reason or code that a message repeats, characters.
const MAX_SHOWN: usize = 40;

/// The allowances of all files.
#[derive(Default)]
pub(super) struct Allowances {
    files: BTreeMap<FileId, Vec<Allowance>>,
}

/// One allowed rule.
struct Allowance {
    rule: Rule,
    /// The comment.
    at: Span,
    covers: Span,
    is_used: bool,
}

impl Allowances {
    /// Reads the allowances of all files, and reports those that cannot count.
    pub(super) fn read(documents: &Documents<'_>, findings: &mut Findings) -> Self {
        let mut allowances = Self::default();
        for document in documents.iter() {
            let comments = document.comments().iter();
            for comment in comments.filter(|comment| is_allowance(comment.text)) {
                allowances.add(document, comment, findings);
            }
        }
        allowances
    }

    fn add(&mut self, document: &Document<'_>, comment: &Comment<'_>, findings: &mut Findings) {
        let length = u32::try_from(comment.text.len()).unwrap_or(u32::MAX);
        let at = Span {
            file: document.file(),
            start: comment.begin,
            end: comment.begin.saturating_add(length).saturating_add(7),
        };
        let mut refuse = |message: String, help: &str| {
            findings.push(Finding::new(Rule::Allowance, at, message).help(help));
        };
        let words = comment.text.trim_start().strip_prefix("allow").unwrap_or_default();
        let (codes, reason) = words.split_once(':').unwrap_or((words, ""));
        if reason.trim().is_empty() {
            refuse(
                "the allowance gives no reason, so it allows nothing".to_owned(),
                "write a colon behind the code, and why the rule may be broken here",
            );
            return;
        }
        let covers = covered(document, comment);
        let codes = codes.split([',', ' ', '\t', '\n', '\r']);
        for code in codes.filter(|code| !code.is_empty()) {
            let shown: String = code.chars().take(MAX_SHOWN).collect();
            let allowances = self.files.entry(document.file()).or_default();
            match Rule::with_code(code) {
                None => refuse(format!("there is no rule `{shown}`"), "`annals defs explain` lists all"),
                Some(rule) if rule.text().severity == Severity::Error => refuse(
                    format!("`{rule}` is an error, which cannot be allowed"),
                    "put it right: there is no schema until then",
                ),
                Some(_) if allowances.len() == MAX_ALLOWANCES => refuse(
                    format!("there are more than {MAX_ALLOWANCES} allowances in this file"),
                    "allow the rule once, above the root element",
                ),
                Some(rule) => allowances.push(Allowance {
                    rule,
                    at,
                    covers,
                    is_used: false,
                }),
            }
        }
    }

    /// Takes out what is allowed.
    pub(super) fn apply(&mut self, findings: &mut Findings) {
        if !self.files.is_empty() {
            findings.retain(|finding| !self.allows(finding));
        }
    }

    fn allows(&mut self, finding: &Finding) -> bool {
        let Where::Span(at) = finding.at else { return false };
        let Some(allowances) = self.files.get_mut(&at.file) else {
            return false;
        };
        if finding.severity == Severity::Error {
            return false;
        }
        let mut is_allowed = false;
        let covers =
            |one: &Allowance| one.rule == finding.rule && (one.covers.start..one.covers.end).contains(&at.start);
        for allowance in allowances.iter_mut().filter(|one| covers(one)) {
            allowance.is_used = true;
            is_allowed = true;
        }
        is_allowed
    }

    /// Reports the allowances under which nothing was found.
    pub(super) fn report_unused(&self, findings: &mut Findings) {
        let unused = self.files.values().flatten().filter(|allowance| !allowance.is_used);
        for allowance in unused {
            let message = format!("`{}` is not broken here", allowance.rule);
            findings.push(Finding::new(Rule::UnusedAllowance, allowance.at, message).help("remove the code"));
        }
    }
}

/// Whether a comment allows something: `allow D0704…`.
pub(crate) fn is_allowance(text: &str) -> bool {
    let words = text.trim_start().strip_prefix("allow");
    let codes = words.filter(|rest| rest.starts_with([' ', '\t', '\n', '\r']));
    codes.is_some_and(|codes| {
        let mut code = codes.trim_start().chars();
        matches!(code.next(), Some('D' | 'd')) && code.next().is_some_and(|digit| digit.is_ascii_digit())
    })
}

/// The part of a file to which an allowance applies.
fn covered(document: &Document<'_>, comment: &Comment<'_>) -> Span {
    let (file, begin) = (document.file(), comment.begin);
    let before = &document.text()[..begin as usize];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let line_start = u32::try_from(line).unwrap_or(u32::MAX);
    let mut covers = Span {
        file,
        start: line_start,
        end: begin,
    };
    if before[line..].trim().is_empty() {
        let following = document.section_behind(comment);
        return following.map_or(covers, |section| match comment.inside {
            // Above the root: whatever is found in the file.
            None => Span {
                start: 0,
                end: u32::MAX,
                ..covers
            },
            Some(_) => section.extent(),
        });
    }
    let mut next = document.section_from(line_start);
    while let Some(section) = next.filter(|section| section.name_span().start < begin) {
        covers.end = covers.end.max(section.extent().end);
        next = document.section_from(section.extent().end);
    }
    covers
}
