//! Allowances: comments that permit a rule to be broken at a place, with a reason.
//!
//! ```text
//! <!-- allow D0704: the shop's list, which changes once a day -->
//! ```
//! An allowance covers the element that follows it. If something precedes it on its line, it covers the elements that
//! begin on that line. Elements are covered with all their content, so an allowance above the root covers the file.
//! Errors cannot be allowed, except those of [`Rule::is_error_allowed`], which become warnings.

use std::collections::BTreeMap;

use super::Documents;
use crate::{
    diagnostic::{Allowance, Finding, Findings, Rule, Severity},
    grammar::Dialect,
    source::{Comment, Document, FileId, Span},
};

/// Maximum allowances per file: each is compared with every finding in the file.
const MAX_ALLOWANCES: usize = 1_000;

/// Longest reason or code that a message quotes, characters.
const MAX_SHOWN: usize = 40;

/// Reads the allowances of all files into `findings`, and reports those that cannot be read.
pub(super) fn read_allowances(documents: &Documents<'_>, findings: &mut Findings) {
    let mut reading = ReadAllowances::default();
    for document in documents.iter() {
        let comments = document.comments().iter();
        for comment in comments.filter(|comment| is_allowance(comment.text)) {
            reading.add(document, comment);
        }
    }
    findings.allow(reading.files);
    findings.extend(reading.refused);
}

/// Reports allowances of errors.
pub(super) fn report_refused(dialect: Dialect, findings: &mut Findings) {
    let refused: Vec<_> = findings
        .allowances()
        .filter(|one| is_refused(one, dialect))
        .map(|one| {
            let message = format!("`{}` is an error, and errors cannot be allowed", one.rule);
            Finding::new(Rule::Allowance, one.at, message).help("fix the error: there is no schema until then")
        })
        .collect();
    findings.extend(refused);
}

/// Reports other allowances that matched no finding.
pub(super) fn report_unused(dialect: Dialect, findings: &mut Findings) {
    let unused: Vec<_> = findings
        .allowances()
        .filter(|one| !one.is_used && !is_refused(one, dialect))
        .map(|one| {
            let message = format!("`{}` is not violated here", one.rule);
            Finding::new(Rule::UnusedAllowance, one.at, message).help("remove the code from the allowance")
        })
        .collect();
    findings.extend(unused);
}

/// Whether the allowance is for an error, found or possible.
fn is_refused(allowance: &Allowance, dialect: Dialect) -> bool {
    let would_be = || allowance.rule.severity_in(dialect) == Severity::Error && !allowance.rule.is_error_allowed();
    allowance.covers_error || (!allowance.is_used && would_be())
}

/// The allowances read so far.
#[derive(Default)]
struct ReadAllowances {
    files: BTreeMap<FileId, Vec<Allowance>>,
    /// Findings about allowances that cannot be read.
    refused: Vec<Finding>,
}

impl ReadAllowances {
    fn add(&mut self, document: &Document<'_>, comment: &Comment<'_>) {
        let length = u32::try_from(comment.text.len()).unwrap_or(u32::MAX);
        let at = Span {
            file: document.file(),
            start: comment.begin,
            end: comment.begin.saturating_add(length).saturating_add(7),
        };
        let mut refuse = |message: String, help: &str| {
            self.refused.push(Finding::new(Rule::Allowance, at, message).help(help));
        };
        let Some(words) = codes_of(comment.text) else {
            let code = misspelt(comment.text).unwrap_or("D…").to_ascii_uppercase();
            let message = "the comment does not begin as an allowance does, so it allows nothing".to_owned();
            return refuse(
                message,
                &format!("write `allow {code}: ` and the reason for the exception"),
            );
        };
        let (codes, reason) = words.split_once(':').unwrap_or((words, ""));
        if reason.trim().is_empty() {
            refuse(
                "the allowance gives no reason, so it allows nothing".to_owned(),
                "after the code, write a colon and the reason for the exception",
            );
            return;
        }
        let covers = covered(document, comment);
        let codes = codes.split([',', ' ', '\t', '\n', '\r']);
        for code in codes.filter(|code| !code.is_empty()) {
            let shown: String = code.chars().take(MAX_SHOWN).collect();
            let allowances = self.files.entry(document.file()).or_default();
            match Rule::with_code(code) {
                None => refuse(
                    format!("there is no rule `{shown}`"),
                    "`annals defs explain` lists all rules",
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
                    covers_error: false,
                }),
            }
        }
    }
}

/// Whether a comment is an allowance or is meant as one: `allow D0704…`, `Allow: D0704…`, `annals: allow D0704…`.
pub(crate) fn is_allowance(text: &str) -> bool {
    codes_of(text).is_some() || misspelt(text).is_some()
}

/// The text behind the word that begins an allowance, if a code follows it.
fn codes_of(text: &str) -> Option<&str> {
    let words = text.trim_start().strip_prefix("allow")?;
    let codes = words.strip_prefix([' ', '\t', '\n', '\r'])?.trim_start();
    let mut code = codes.chars();
    let is_code = matches!(code.next(), Some('D' | 'd')) && code.next().is_some_and(|digit| digit.is_ascii_digit());
    is_code.then_some(codes)
}

/// The code in a comment that has a code and the word `allow` among its first words, in any order and spelling.
fn misspelt(text: &str) -> Option<&str> {
    const FIRST_WORDS: usize = 4;
    const CODE_DIGITS: std::ops::RangeInclusive<usize> = 3..=5;
    let words = || {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).take(FIRST_WORDS)
    };
    let is_allow = |word: &str| {
        ["allow", "allows", "allowed"]
            .iter()
            .any(|one| one.eq_ignore_ascii_case(word))
    };
    let is_code = |word: &str| {
        let digits = word.strip_prefix(['D', 'd']).unwrap_or_default();
        CODE_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    words().find(|word| is_code(word) && words().any(is_allow))
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
            // Above the root: covers the whole file.
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
