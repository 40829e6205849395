//! Answers to an editor's requests about a file.

use annals_authoring::editor::Draft;
use lsp_types::{
    CodeActionOrCommand, CodeActionParams, CompletionParams, CompletionResponse, DocumentSymbolParams,
    DocumentSymbolResponse, GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverContents, HoverParams, Location,
    MarkupContent, MarkupKind, TextDocumentPositionParams, Url,
};
use serde_json::Value as Json;

use super::{
    convert::{self, Texts, Urls},
    position::Lines,
    server::Abilities,
    worlds::{InWorld, Worlds},
};

/// What answers are computed from.
pub(super) struct Answer<'s> {
    pub(super) worlds: &'s Worlds,
    pub(super) abilities: Abilities,
}

/// The file of a request.
struct Asked<'s> {
    located: InWorld,
    draft: &'s Draft,
    lines: Lines<'s>,
}

impl<'s> Answer<'s> {
    /// The file of a request, if it belongs to a world.
    fn asked(&self, url: &Url) -> Option<Asked<'s>> {
        let located = self.worlds.locate(url)?;
        let draft = self.worlds.draft(&located)?;
        let lines = Lines::of(draft.text(&located.file)?);
        Some(Asked { located, draft, lines })
    }

    fn asked_at(&self, place: &TextDocumentPositionParams) -> Option<(Asked<'s>, usize)> {
        let asked = self.asked(&place.text_document.uri)?;
        let at = asked.lines.offset(place.position);
        Some((asked, at))
    }

    pub(super) fn completion(&self, params: &CompletionParams) -> Option<CompletionResponse> {
        let (asked, at) = self.asked_at(&params.text_document_position)?;
        let offered = asked.draft.complete(&asked.located.file, at).into_iter().enumerate();
        let has_snippets = self.abilities.snippets;
        let items = offered.map(|(rank, one)| convert::completion(&asked.lines, rank, one, has_snippets));
        Some(CompletionResponse::Array(items.collect()))
    }

    pub(super) fn hover(&self, params: &HoverParams) -> Option<Hover> {
        let (asked, at) = self.asked_at(&params.text_document_position_params)?;
        let hover = asked.draft.hover(&asked.located.file, at)?;
        Some(Hover {
            contents: HoverContents::Markup(MarkupContent {
                kind: MarkupKind::Markdown,
                value: hover.text,
            }),
            range: Some(asked.lines.range(&hover.range)),
        })
    }

    pub(super) fn definition(&self, params: &GotoDefinitionParams) -> Option<GotoDefinitionResponse> {
        let (asked, at) = self.asked_at(&params.text_document_position_params)?;
        let target = asked.draft.target(&asked.located.file, at)?;
        let lines = Lines::of(asked.draft.text(&target.file)?);
        let url = self.urls(&asked.located).of(&target.file)?;
        Some(GotoDefinitionResponse::Scalar(Location::new(
            url,
            lines.range(&target.name),
        )))
    }

    pub(super) fn symbols(&self, params: DocumentSymbolParams) -> Option<DocumentSymbolResponse> {
        let url = params.text_document.uri;
        let asked = self.asked(&url)?;
        let symbols = asked.draft.symbols(&asked.located.file).into_iter();
        let nested = symbols.map(|one| convert::symbol(&asked.lines, one)).collect();
        Some(if self.abilities.nested_symbols {
            DocumentSymbolResponse::Nested(nested)
        } else {
            DocumentSymbolResponse::Flat(convert::flattened(nested, None, &url))
        })
    }

    pub(super) fn actions(&self, params: &CodeActionParams) -> Option<Vec<CodeActionOrCommand>> {
        let url = &params.text_document.uri;
        let asked = self.asked(url)?;
        let urls = self.urls(&asked.located);
        let found = asked.draft.diagnostics().iter();
        let here = found.filter(|diagnostic| diagnostic.place.file == asked.located.file);
        let mut texts = Texts::of(asked.draft);
        let mut actions = Vec::new();
        for diagnostic in here {
            let said = convert::diagnostic(&mut texts, &urls, diagnostic);
            let touches = said.range.start <= params.range.end && params.range.start <= said.range.end;
            if let Some(fix) = asked.draft.fix(diagnostic).filter(|_| touches) {
                let action = convert::action(&asked.lines, url, fix, said);
                actions.push(CodeActionOrCommand::CodeAction(action));
            }
        }
        Some(actions)
    }

    fn urls<'u>(&self, located: &'u InWorld) -> Urls<'u> {
        let open = self.worlds.documents().filter_map(|(url, _)| {
            let known = self.worlds.locate(url).filter(|known| known.root == located.root)?;
            Some((known.file, url.clone()))
        });
        Urls {
            root: &located.root,
            open: open.collect(),
        }
    }
}

/// A value of the protocol as JSON.
pub(super) fn json(value: impl serde::Serialize) -> Json {
    serde_json::to_value(value).expect("invariant: the protocol's values have text for keys")
}
