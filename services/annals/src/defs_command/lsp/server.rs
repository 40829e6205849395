//! The server: takes an editor's messages one at a time, and produces answers.
//!
//! Contract: call [`Server::handle`] with each event, then send what [`Server::drain`] returns. While no input is
//! pending, call [`Server::settle`]: it checks a changed world and publishes its diagnostics. An editor that types
//! faster than a world can be checked therefore waits at most for the check in progress.

use std::collections::{BTreeMap, BTreeSet};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions,
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, HoverProviderCapability,
    InitializeParams, InitializeResult, MessageType, OneOf, PublishDiagnosticsParams, Registration, RegistrationParams,
    ServerCapabilities, ServerInfo, ShowMessageParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, Url, WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
    notification::{
        DidChangeTextDocument, DidChangeWatchedFiles, DidChangeWorkspaceFolders, DidCloseTextDocument,
        DidOpenTextDocument, Exit, Initialized, Notification as _, PublishDiagnostics, ShowMessage,
    },
    request::{
        CodeActionRequest, Completion, DocumentSymbolRequest, GotoDefinition, HoverRequest, Initialize,
        RegisterCapability, Request as _, Shutdown,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{
    answer::{Answer, json},
    convert::{self, Texts, Urls},
    worlds::{NotTaken, World, Worlds},
};

/// The files whose changes on disk matter.
const WATCHED: [&str; 3] = ["**/*.def", "**/*.xml", "**/{base,cell,client}/*.py"];

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    Strange,
    /// Requests are answered.
    Running,
    /// After `shutdown`.
    Leaving,
    /// Ended, with this exit code.
    Over(u8),
}

/// The capabilities of the editor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abilities {
    pub(super) snippets: bool,
    pub(super) nested_symbols: bool,
    /// It can watch files.
    watches: bool,
}

/// A session with an editor.
#[derive(Debug)]
pub(super) struct Server {
    phase: Phase,
    abilities: Abilities,
    worlds: Worlds,
    /// The workspace folders.
    folders: Vec<Url>,
    out: Vec<Message>,
}

/// The error of a request.
#[derive(Debug)]
pub(super) struct Refusal {
    code: ErrorCode,
    message: String,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Strange,
            abilities: Abilities::default(),
            worlds: Worlds::default(),
            folders: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes a message.
    pub(super) fn handle(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(notification) => self.notification(notification),
            // The only request sent registers file watches; its answer does not matter.
            Message::Response(_) => {}
        }
    }

    /// Answers a request that was cancelled.
    pub(super) fn cancelled(&mut self, id: RequestId) {
        self.refuse(id, ErrorCode::RequestCanceled, "the request was cancelled".to_owned());
    }

    /// Handles the end of the input.
    pub(super) fn hung_up(&mut self) {
        self.phase = match self.phase {
            Phase::Over(code) => Phase::Over(code),
            Phase::Leaving => Phase::Over(0),
            Phase::Strange | Phase::Running => Phase::Over(1),
        };
    }

    /// The exit code once the session has ended.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.phase {
            Phase::Over(code) => Some(code),
            Phase::Strange | Phase::Running | Phase::Leaving => None,
        }
    }

    /// The messages to send.
    pub(super) fn drain(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.out)
    }

    /// Whether [`Server::settle`] has work to do.
    pub(super) fn is_unsettled(&self) -> bool {
        self.phase == Phase::Running && self.worlds.is_any_stale()
    }

    /// Checks one changed world.
    pub(super) fn settle(&mut self) {
        let open: Vec<(Url, i32)> = self
            .worlds
            .documents()
            .map(|(url, document)| (url.clone(), document.version))
            .collect();
        let located: Vec<_> = open
            .iter()
            .map(|(url, version)| (url, *version, self.worlds.locate(url)))
            .collect();
        let Some((root, world)) = self.worlds.check_one() else {
            return;
        };
        let here = located.iter().filter_map(|(url, version, located)| {
            let located = located.as_ref().filter(|located| located.root == root)?;
            Some((located.file.clone(), (*url).clone(), *version))
        });
        let here: Vec<(String, Url, i32)> = here.collect();
        let urls = Urls {
            root,
            open: here.iter().map(|(file, url, _)| (file.clone(), url.clone())).collect(),
        };
        let versions: BTreeMap<&str, i32> = here
            .iter()
            .map(|(file, _, version)| (file.as_str(), *version))
            .collect();
        for params in publications(world, &urls, &versions) {
            let notification = Notification::new(PublishDiagnostics::METHOD.to_owned(), params);
            self.out.push(notification.into());
        }
    }

    fn request(&mut self, Request { id, method, params }: Request) {
        let answer = match (self.phase, method.as_str()) {
            (Phase::Strange, Initialize::METHOD) => parsed(params).map(|params| json(self.initialize(params))),
            (Phase::Strange, _) => Err(refusal(ErrorCode::ServerNotInitialized, "`initialize` must come first")),
            (Phase::Running, Shutdown::METHOD) => {
                self.phase = Phase::Leaving;
                Ok(Json::Null)
            }
            (Phase::Running, _) => self.ask(&method, params),
            (Phase::Leaving | Phase::Over(_), _) => {
                Err(refusal(ErrorCode::InvalidRequest, "only `exit` may follow `shutdown`"))
            }
        };
        match answer {
            Ok(result) => self.out.push(Response::new_ok(id, result).into()),
            Err(Refusal { code, message }) => self.refuse(id, code, message),
        }
    }

    fn refuse(&mut self, id: RequestId, code: ErrorCode, message: String) {
        self.out.push(Response::new_err(id, code as i32, message).into());
    }

    /// Answers a request about a file.
    fn ask(&self, method: &str, params: Json) -> Result<Json, Refusal> {
        let answer = Answer {
            worlds: &self.worlds,
            abilities: self.abilities,
        };
        match method {
            Completion::METHOD => parsed(params).map(|params| json(answer.completion(&params))),
            HoverRequest::METHOD => parsed(params).map(|params| json(answer.hover(&params))),
            GotoDefinition::METHOD => parsed(params).map(|params| json(answer.definition(&params))),
            DocumentSymbolRequest::METHOD => parsed(params).map(|params| json(answer.symbols(params))),
            CodeActionRequest::METHOD => parsed(params).map(|params| json(answer.actions(&params))),
            Initialize::METHOD => Err(refusal(ErrorCode::InvalidRequest, "`initialize` may come only once")),
            _ => Err(refusal(
                ErrorCode::MethodNotFound,
                &format!("unknown request `{method}`"),
            )),
        }
    }

    fn notification(&mut self, Notification { method, params }: Notification) {
        if method == Exit::METHOD {
            self.phase = Phase::Over(if self.phase == Phase::Leaving { 0 } else { 1 });
        }
        if self.phase != Phase::Running {
            return;
        }
        // A malformed notification has no answer, so it is dropped.
        let _ = self.take(&method, params);
    }

    fn take(&mut self, method: &str, params: Json) -> Result<(), Refusal> {
        match method {
            Initialized::METHOD => self.initialized(),
            DidOpenTextDocument::METHOD => {
                let lsp_types::DidOpenTextDocumentParams { text_document: file } = parsed(params)?;
                let taken = self.worlds.open(&file.uri, file.version, file.text);
                self.report_unused(&file.uri, taken);
            }
            DidChangeTextDocument::METHOD => {
                let params: lsp_types::DidChangeTextDocumentParams = parsed(params)?;
                let file = params.text_document;
                let taken = self.worlds.change(&file.uri, file.version, params.content_changes);
                self.report_unused(&file.uri, taken);
            }
            DidCloseTextDocument::METHOD => {
                let params: lsp_types::DidCloseTextDocumentParams = parsed(params)?;
                self.worlds.close(&params.text_document.uri);
            }
            DidChangeWatchedFiles::METHOD => {
                let params: lsp_types::DidChangeWatchedFilesParams = parsed(params)?;
                let paths: BTreeSet<_> = params
                    .changes
                    .iter()
                    .filter_map(|change| change.uri.to_file_path().ok())
                    .collect();
                self.worlds.changed_on_disk(&paths);
            }
            DidChangeWorkspaceFolders::METHOD => {
                let params: lsp_types::DidChangeWorkspaceFoldersParams = parsed(params)?;
                self.folders_changed(&params.event);
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows why the text of an open file is not used: a notification has no answer in which to say so.
    fn report_unused(&mut self, url: &Url, taken: Result<(), NotTaken>) {
        if let Err(reason) = taken {
            let message = format!("`{url}` is read from disk: {reason}");
            let params = ShowMessageParams {
                typ: MessageType::WARNING,
                message,
            };
            self.out
                .push(Notification::new(ShowMessage::METHOD.to_owned(), params).into());
        }
    }

    fn initialize(&mut self, params: InitializeParams) -> InitializeResult {
        self.phase = Phase::Running;
        self.abilities = abilities(&params);
        #[expect(deprecated, reason = "editors without workspace folders send rootUri")]
        let root = params.root_uri;
        let folders = params.workspace_folders.into_iter().flatten().map(|folder| folder.uri);
        self.folders = folders.collect();
        if self.folders.is_empty() {
            self.folders.extend(root);
        }
        InitializeResult {
            capabilities: capabilities(),
            server_info: Some(ServerInfo {
                name: "annals".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        }
    }

    fn initialized(&mut self) {
        for folder in self.folders.iter().filter_map(|url| url.to_file_path().ok()) {
            self.worlds.discover(&folder);
        }
        if !self.abilities.watches {
            return;
        }
        let watchers = WATCHED.map(|pattern| FileSystemWatcher {
            glob_pattern: GlobPattern::String(pattern.to_owned()),
            kind: None,
        });
        let options = DidChangeWatchedFilesRegistrationOptions {
            watchers: watchers.to_vec(),
        };
        let registration = Registration {
            id: "files".to_owned(),
            method: DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: Some(json(options)),
        };
        let params = RegistrationParams {
            registrations: vec![registration],
        };
        let id = RequestId::from("watch".to_owned());
        let request = Request::new(id, RegisterCapability::METHOD.to_owned(), params);
        self.out.push(request.into());
    }

    fn folders_changed(&mut self, event: &lsp_types::WorkspaceFoldersChangeEvent) {
        for folder in event.removed.iter().filter_map(|folder| folder.uri.to_file_path().ok()) {
            for (root, world) in self.worlds.forget(&folder) {
                let urls = Urls {
                    root: &root,
                    open: Vec::new(),
                };
                for url in world.published.keys().filter_map(|file| urls.of(file)) {
                    let params = PublishDiagnosticsParams::new(url, Vec::new(), None);
                    self.out
                        .push(Notification::new(PublishDiagnostics::METHOD.to_owned(), params).into());
                }
            }
        }
        for folder in event.added.iter().filter_map(|folder| folder.uri.to_file_path().ok()) {
            self.worlds.discover(&folder);
        }
    }
}

/// The diagnostics to publish: all for open files, and changed ones for the others.
fn publications(world: &mut World, urls: &Urls<'_>, versions: &BTreeMap<&str, i32>) -> Vec<PublishDiagnosticsParams> {
    let mut found: BTreeMap<String, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
    let mut texts = Texts::of(&world.draft);
    for diagnostic in world.draft.diagnostics() {
        let said = convert::diagnostic(&mut texts, urls, diagnostic);
        found.entry(diagnostic.place.file.clone()).or_default().push(said);
    }
    let open = versions.keys().map(|file| (*file).to_owned());
    let files: BTreeSet<String> = world
        .published
        .keys()
        .chain(found.keys())
        .cloned()
        .chain(open)
        .collect();
    let mut publications = Vec::new();
    for file in files {
        let said = found.get(&file).cloned().unwrap_or_default();
        let version = versions.get(file.as_str()).copied();
        let is_new = world.published.get(&file) != found.get(&file);
        if let Some(url) = urls.of(&file).filter(|_| is_new || version.is_some()) {
            publications.push(PublishDiagnosticsParams::new(url, said, version));
        }
    }
    world.published = found;
    publications
}

fn abilities(params: &InitializeParams) -> Abilities {
    let documents = params.capabilities.text_document.as_ref();
    let completion = documents.and_then(|documents| documents.completion.as_ref());
    let item = completion.and_then(|completion| completion.completion_item.as_ref());
    let symbols = documents.and_then(|documents| documents.document_symbol.as_ref());
    let workspace = params.capabilities.workspace.as_ref();
    let watching = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
    Abilities {
        snippets: item.and_then(|item| item.snippet_support) == Some(true),
        nested_symbols: symbols.and_then(|symbols| symbols.hierarchical_document_symbol_support) == Some(true),
        watches: watching.and_then(|watching| watching.dynamic_registration) == Some(true),
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            ..TextDocumentSyncOptions::default()
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(["<", ">", "/"].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    }
}

fn parsed<P: DeserializeOwned>(params: Json) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| refusal(ErrorCode::InvalidParams, &error.to_string()))
}

fn refusal(code: ErrorCode, message: &str) -> Refusal {
    Refusal {
        code,
        message: message.to_owned(),
    }
}
