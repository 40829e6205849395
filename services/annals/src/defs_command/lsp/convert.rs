//! Conversion of the library's results to the protocol's types.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use annals_authoring::editor::{Completion, CompletionKind, Draft, QuickFix, Symbol, SymbolKind};
use annals_def::{Diagnostic, Rule, Severity, SourceSpan};
use lsp_types::{
    CodeAction, CodeActionKind, CompletionItem, CompletionItemKind, CompletionTextEdit, DiagnosticRelatedInformation,
    DiagnosticSeverity, DiagnosticTag, DocumentSymbol, Documentation, InsertTextFormat, Location, MarkupContent,
    MarkupKind, NumberOrString, Position, Range, SymbolInformation, TextEdit, Url, WorkspaceEdit,
};

use super::position::Lines;

/// The file that carries diagnostics about a world's folder.
const FOLDER_FILE: &str = "entities.xml";

/// The editor's URLs of the files of a world.
pub(super) struct Urls<'w> {
    pub(super) root: &'w Path,
    /// The URLs of open files, by path below the root.
    pub(super) open: Vec<(String, Url)>,
}

impl Urls<'_> {
    pub(super) fn of(&self, file: &str) -> Option<Url> {
        let file = if file.is_empty() { FOLDER_FILE } else { file };
        match self.open.iter().find(|(open, _)| open == file) {
            Some((_, url)) => Some(url.clone()),
            None => Url::from_file_path(self.root.join(file)).ok(),
        }
    }
}

/// The files of a draft with their line tables, each computed once.
pub(super) struct Texts<'d> {
    draft: &'d Draft,
    lines: BTreeMap<String, Lines<'d>>,
}

impl<'d> Texts<'d> {
    pub(super) fn of(draft: &'d Draft) -> Self {
        Self {
            draft,
            lines: BTreeMap::new(),
        }
    }

    /// The range of a file that a place refers to.
    fn range(&mut self, place: &SourceSpan) -> Range {
        let (Some(bytes), Some(text)) = (self.draft.range(place), self.draft.text(&place.file)) else {
            // There is no text for a file that cannot be read.
            let start = Position::new(place.line.saturating_sub(1), place.column.saturating_sub(1));
            return Range::new(start, start);
        };
        let lines = self.lines.entry(place.file.clone()).or_insert_with(|| Lines::of(text));
        lines.range(&bytes)
    }
}

pub(super) fn diagnostic(texts: &mut Texts<'_>, urls: &Urls<'_>, found: &Diagnostic) -> lsp_types::Diagnostic {
    let mut related = Vec::new();
    for (place, what) in &found.related {
        if let Some(url) = urls.of(&place.file) {
            related.push(DiagnosticRelatedInformation {
                location: Location::new(url, texts.range(place)),
                message: what.clone(),
            });
        }
    }
    let message = match &found.help {
        Some(help) => format!("{}\nhelp: {help}", found.message),
        None => found.message.clone(),
    };
    lsp_types::Diagnostic {
        range: texts.range(&found.place),
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Note => DiagnosticSeverity::INFORMATION,
            Severity::Lint => DiagnosticSeverity::HINT,
        }),
        code: Some(NumberOrString::String(found.rule.to_string())),
        code_description: None,
        source: Some("annals".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        tags: (found.rule == Rule::NotUsed).then(|| vec![DiagnosticTag::UNNECESSARY]),
        data: None,
    }
}

/// A completion; its index in the list keeps its rank. The cursor position is set if the editor supports snippets.
pub(super) fn completion(lines: &Lines<'_>, rank: usize, one: Completion, has_snippets: bool) -> CompletionItem {
    let (format, new_text) = if has_snippets {
        let (before, behind) = one.text.split_at(one.cursor);
        let text = format!("{}$0{}", escaped(before), escaped(behind));
        (InsertTextFormat::SNIPPET, text)
    } else {
        (InsertTextFormat::PLAIN_TEXT, one.text)
    };
    CompletionItem {
        kind: Some(match one.kind {
            CompletionKind::Tag => CompletionItemKind::FIELD,
            CompletionKind::Attribute => CompletionItemKind::PROPERTY,
            CompletionKind::Type => CompletionItemKind::KEYWORD,
            CompletionKind::Alias => CompletionItemKind::STRUCT,
            CompletionKind::Word => CompletionItemKind::ENUM_MEMBER,
            CompletionKind::Definition => CompletionItemKind::CLASS,
            CompletionKind::Level => CompletionItemKind::CONSTANT,
        }),
        detail: (!one.detail.is_empty()).then_some(one.detail),
        documentation: Some(one.documentation).filter(|said| !said.is_empty()).map(markdown),
        sort_text: Some(format!("{rank:05}")),
        filter_text: Some(one.label.clone()),
        insert_text_format: Some(format),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(
            lines.range(&one.range),
            new_text,
        ))),
        label: one.label,
        ..CompletionItem::default()
    }
}

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent {
        kind: MarkupKind::Markdown,
        value,
    })
}

/// A text with snippet syntax escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '$' | '}') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[expect(deprecated, reason = "the protocol's types still have the field")]
pub(super) fn symbol(lines: &Lines<'_>, one: Symbol) -> DocumentSymbol {
    let children: Vec<_> = one.children.into_iter().map(|child| symbol(lines, child)).collect();
    DocumentSymbol {
        kind: symbol_kind(one.kind),
        name: one.name,
        detail: (!one.detail.is_empty()).then_some(one.detail),
        tags: None,
        deprecated: None,
        range: lines.range(&one.range),
        selection_range: lines.range(&one.name_range),
        children: (!children.is_empty()).then_some(children),
    }
}

/// A flat list of symbols, for editors without nested ones.
#[expect(deprecated, reason = "the protocol's types still have the field")]
pub(super) fn flattened(symbols: Vec<DocumentSymbol>, within: Option<&str>, url: &Url) -> Vec<SymbolInformation> {
    let mut flat = Vec::new();
    for one in symbols {
        let children = flattened(one.children.unwrap_or_default(), Some(&one.name), url);
        flat.push(SymbolInformation {
            name: one.name,
            kind: one.kind,
            tags: None,
            deprecated: None,
            location: Location::new(url.clone(), one.range),
            container_name: within.map(str::to_owned),
        });
        flat.extend(children);
    }
    flat
}

fn symbol_kind(kind: SymbolKind) -> lsp_types::SymbolKind {
    match kind {
        SymbolKind::Section => lsp_types::SymbolKind::NAMESPACE,
        SymbolKind::Property => lsp_types::SymbolKind::PROPERTY,
        SymbolKind::Method => lsp_types::SymbolKind::METHOD,
        SymbolKind::Argument => lsp_types::SymbolKind::VARIABLE,
        SymbolKind::Alias => lsp_types::SymbolKind::STRUCT,
        SymbolKind::Definition => lsp_types::SymbolKind::CLASS,
    }
}

pub(super) fn action(lines: &Lines<'_>, url: &Url, fix: QuickFix, of: lsp_types::Diagnostic) -> CodeAction {
    let edits = fix.changes.into_iter();
    let edits = edits
        .map(|change| TextEdit::new(lines.range(&change.range), change.text))
        .collect();
    CodeAction {
        title: fix.title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![of]),
        edit: Some(WorkspaceEdit::new(HashMap::from([(url.clone(), edits)]))),
        is_preferred: Some(true),
        ..CodeAction::default()
    }
}
