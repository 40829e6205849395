//! `annals defs lsp` as an editor uses it: a protocol client library starts the program and communicates over its input
//! and output.

use std::{fs, io::Write as _, ops::ControlFlow, path::Path, process::Stdio, time::Duration};

use async_lsp::{LanguageServer as _, MainLoop, ServerSocket, router::Router};
use lsp_types::{
    ClientCapabilities, CodeActionContext, CodeActionOrCommand, CodeActionParams, CompletionParams, CompletionResponse,
    CompletionTextEdit, Diagnostic, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentSymbolParams, DocumentSymbolResponse,
    FileChangeType, FileEvent, GotoDefinitionParams, GotoDefinitionResponse, HoverContents, HoverParams,
    InitializeParams, InitializedParams, NumberOrString, Position, PublishDiagnosticsParams, Range,
    TextDocumentContentChangeEvent, TextDocumentIdentifier, TextDocumentItem, TextDocumentPositionParams, Url,
    VersionedTextDocumentIdentifier, WorkspaceFolder, notification::PublishDiagnostics, request::RegisterCapability,
};
use serde_json::json;
use tokio::{
    process::{Child, Command},
    sync::mpsc::{Receiver, channel},
    time::timeout,
};
use tokio_util::compat::{TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

/// Timeout: enough for a debug build on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

const AVATAR: &str = "\
<root>
	<Parent> Creature </Parent>
	<Implements> <Interface> Fighter </Interface> </Implements>
	<Properties>
		<!-- 名字 😀 --> <gold> <Type> GOLD </Type> <Flags> OWN_CLIENT </Flags> </gold>
		<!-- 怪物 😀 --> <name> <Type> UNICODE_STRING </Type> <Flags> ALL_CLIENT </Flags> </name>
	</Properties>
</root>
";

/// A world with a mistake in the file that is opened, and another in one that is not.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |file: &str, text: &str| {
        let path = dir.path().join("scripts").join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("entities.xml", "<root> <Avatar/> </root>");
    write("entity_defs/alias.xml", "<root>\n\t<GOLD> UINT32 </GOLD>\n</root>");
    write("entity_defs/Avatar.def", AVATAR);
    write("entity_defs/Creature.def", "<root> </root>");
    let fighter =
        "<root> <Properties> <hp> <Type> INT33 </Type> <Flags> ALL_CLIENTS </Flags> </hp> </Properties> </root>";
    write("entity_defs/interfaces/Fighter.def", fighter);
    dir
}

/// An editor, and the program that it has started.
struct Editor {
    server: ServerSocket,
    published: Receiver<PublishDiagnosticsParams>,
    watching: Receiver<()>,
    child: Child,
}

struct Client {
    published: tokio::sync::mpsc::Sender<PublishDiagnosticsParams>,
    watching: tokio::sync::mpsc::Sender<()>,
}

impl Editor {
    /// Starts the program and initializes the session.
    async fn start(folder: Option<&Path>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_annals"))
            .args(["defs", "lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let (sender, published) = channel(1_000);
        let (watching_sender, watching) = channel(10);
        let (main_loop, server) = MainLoop::new_client(|_| {
            let mut router = Router::new(Client {
                published: sender,
                watching: watching_sender,
            });
            router
                .notification::<PublishDiagnostics>(|client, params| {
                    client.published.try_send(params).expect("there is room");
                    ControlFlow::Continue(())
                })
                .request::<RegisterCapability, _>(|client, params| {
                    assert_eq!(params.registrations[0].method, "workspace/didChangeWatchedFiles");
                    client.watching.try_send(()).expect("there is room");
                    std::future::ready(Ok(()))
                });
            router
        });
        let output = child.stdout.take().expect("piped").compat();
        let input = child.stdin.take().expect("piped").compat_write();
        tokio::spawn(main_loop.run_buffered(output, input));
        let mut editor = Self {
            server,
            published,
            watching,
            child,
        };
        let answer = editor.server.initialize(introduction(folder));
        let answer = timeout(WAIT, answer).await.expect("in time").expect("an answer");
        assert_eq!(answer.server_info.expect("a name").name, "annals");
        editor.server.initialized(InitializedParams {}).expect("it listens");
        editor
    }

    /// The next diagnostics of a file, for this version if one is given.
    async fn diagnostics(&mut self, url: &Url, version: Option<i32>) -> Vec<Diagnostic> {
        loop {
            let published = timeout(WAIT, self.published.recv())
                .await
                .expect("in time")
                .expect("it runs");
            if published.uri == *url && (version.is_none() || published.version == version) {
                return published.diagnostics;
            }
        }
    }

    fn open(&mut self, url: &Url, text: &str) {
        let item = TextDocumentItem::new(url.clone(), "xml".to_owned(), 1, text.to_owned());
        let params = DidOpenTextDocumentParams { text_document: item };
        self.server.did_open(params).expect("it listens");
    }

    fn change(&mut self, url: &Url, version: i32, range: Option<Range>, text: &str) {
        let change = TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.to_owned(),
        };
        let params = DidChangeTextDocumentParams {
            text_document: VersionedTextDocumentIdentifier::new(url.clone(), version),
            content_changes: vec![change],
        };
        self.server.did_change(params).expect("it listens");
    }

    /// The labels offered, and the inserted text of the first.
    async fn complete(&mut self, url: &Url, position: Position) -> Vec<(String, String)> {
        let params = CompletionParams {
            text_document_position: at(url, position),
            work_done_progress_params: Default::default(),
            partial_result_params: Default::default(),
            context: None,
        };
        let answer = timeout(WAIT, self.server.completion(params)).await.expect("in time");
        let Some(CompletionResponse::Array(items)) = answer.expect("an answer") else {
            panic!("no completions");
        };
        let item = |item: lsp_types::CompletionItem| match item.text_edit {
            Some(CompletionTextEdit::Edit(edit)) => (item.label, edit.new_text),
            other => panic!("{other:?}"),
        };
        items.into_iter().map(item).collect()
    }

    async fn hover(&mut self, url: &Url, position: Position) -> String {
        let params = HoverParams {
            text_document_position_params: at(url, position),
            work_done_progress_params: Default::default(),
        };
        let answer = timeout(WAIT, self.server.hover(params)).await.expect("in time");
        match answer.expect("an answer").expect("something").contents {
            HoverContents::Markup(markup) => markup.value,
            other => panic!("{other:?}"),
        }
    }

    async fn definition(&mut self, url: &Url, position: Position) -> (Url, Range) {
        let params = GotoDefinitionParams {
            text_document_position_params: at(url, position),
            work_done_progress_params: Default::default(),
            partial_result_params: Default::default(),
        };
        let answer = timeout(WAIT, self.server.definition(params)).await.expect("in time");
        match answer.expect("an answer").expect("something") {
            GotoDefinitionResponse::Scalar(location) => (location.uri, location.range),
            other => panic!("{other:?}"),
        }
    }

    /// The first quick fix at a range, as the title and the edits of this file.
    async fn fix(&mut self, url: &Url, range: Range) -> (String, Vec<lsp_types::TextEdit>) {
        let params = CodeActionParams {
            text_document: TextDocumentIdentifier::new(url.clone()),
            range,
            context: CodeActionContext::default(),
            work_done_progress_params: Default::default(),
            partial_result_params: Default::default(),
        };
        let answer = timeout(WAIT, self.server.code_action(params)).await.expect("in time");
        match answer.expect("an answer").expect("something").remove(0) {
            CodeActionOrCommand::CodeAction(action) => {
                let mut changes = action.edit.expect("an edit").changes.expect("changes");
                (action.title, changes.remove(url).expect("of this file"))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Ends the session; returns the program's exit code.
    async fn leave(mut self) -> Option<i32> {
        timeout(WAIT, self.server.shutdown(()))
            .await
            .expect("in time")
            .expect("an answer");
        self.server.exit(()).expect("it listens");
        let status = timeout(WAIT, self.child.wait()).await.expect("in time");
        status.expect("it ends").code()
    }
}

fn introduction(folder: Option<&Path>) -> InitializeParams {
    let capabilities: ClientCapabilities = serde_json::from_value(json!({
        "textDocument": {
            "completion": { "completionItem": { "snippetSupport": true } },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        },
        "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } },
    }))
    .expect("capabilities");
    let folder = folder.map(|folder| WorkspaceFolder {
        uri: Url::from_directory_path(folder).expect("a path from the root"),
        name: "world".to_owned(),
    });
    InitializeParams {
        capabilities,
        workspace_folders: folder.map(|folder| vec![folder]),
        ..InitializeParams::default()
    }
}

fn at(url: &Url, position: Position) -> TextDocumentPositionParams {
    TextDocumentPositionParams::new(TextDocumentIdentifier::new(url.clone()), position)
}

fn url(dir: &tempfile::TempDir, file: &str) -> Url {
    Url::from_file_path(dir.path().join("scripts").join(file)).expect("a path from the root")
}

/// The position of the first `word` in a text, in UTF-16 units.
fn position(text: &str, word: &str) -> Position {
    let at = text.find(word).expect("there");
    let line = text[..at].matches('\n').count();
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let character = text[line_start..at].encode_utf16().count();
    Position::new(
        u32::try_from(line).expect("small"),
        u32::try_from(character).expect("small"),
    )
}

fn range(text: &str, word: &str) -> Range {
    let start = position(text, word);
    let length = u32::try_from(word.encode_utf16().count()).expect("small");
    Range::new(start, Position::new(start.line, start.character + length))
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<String> {
    let code = |diagnostic: &Diagnostic| match &diagnostic.code {
        Some(NumberOrString::String(code)) => code.clone(),
        other => panic!("{other:?}"),
    };
    diagnostics.iter().map(code).collect()
}

#[tokio::test]
async fn diagnostics_appear_are_fixed_and_disappear() {
    let dir = world();
    let (avatar, fighter) = (
        url(&dir, "entity_defs/Avatar.def"),
        url(&dir, "entity_defs/interfaces/Fighter.def"),
    );
    let mut editor = Editor::start(Some(dir.path())).await;
    // Files that are not open are checked too.
    let elsewhere = editor.diagnostics(&fighter, None).await;
    assert!(codes(&elsewhere).contains(&"D0201".to_owned()), "{elsewhere:#?}");
    editor.open(&avatar, AVATAR);
    let found = editor.diagnostics(&avatar, Some(1)).await;
    let wrong = found
        .iter()
        .find(|found| codes(&[(*found).clone()]) == ["D0302"])
        .expect("it is found");
    // Two characters of three bytes, and one of two UTF-16 units, precede it on its line.
    assert_eq!(wrong.range, range(AVATAR, "ALL_CLIENT"));
    assert_eq!(wrong.range.start, Position::new(5, 62));
    assert!(
        wrong.message.contains("did you mean `ALL_CLIENTS`?"),
        "{}",
        wrong.message
    );
    let (title, edits) = editor.fix(&avatar, wrong.range).await;
    assert_eq!((title.as_str(), edits.len()), ("write `ALL_CLIENTS`", 1));
    assert_eq!(edits[0].range, wrong.range);
    editor.change(&avatar, 2, Some(edits[0].range), &edits[0].new_text);
    let found = editor.diagnostics(&avatar, Some(2)).await;
    assert!(!codes(&found).contains(&"D0302".to_owned()), "{found:#?}");
    assert_eq!(editor.leave().await, Some(0));
}

#[tokio::test]
async fn hover_and_go_to_declaration_work() {
    let dir = world();
    let avatar = url(&dir, "entity_defs/Avatar.def");
    let interface = dir.path().join("scripts/entity_defs/interfaces/Fighter.def");
    fs::write(&interface, "<root> </root>").expect("a file");
    let right = AVATAR.replace("ALL_CLIENT ", "ALL_CLIENTS ");
    let mut editor = Editor::start(Some(dir.path())).await;
    editor.open(&avatar, &right);
    assert!(
        editor
            .diagnostics(&avatar, Some(1))
            .await
            .iter()
            .all(|found| found.severity != Some(lsp_types::DiagnosticSeverity::ERROR))
    );

    let hover = editor.hover(&avatar, position(&right, "gold>")).await;
    for part in [
        "property **gold**",
        "`UINT32`: 4 B",
        "OWN_CLIENT: cell, own client",
        "in Avatar: wire id 0 of 2",
    ] {
        assert!(hover.contains(part), "{hover}");
    }
    for (word, file, name) in [
        (
            "GOLD",
            "entity_defs/alias.xml",
            Range::new(Position::new(1, 2), Position::new(1, 6)),
        ),
        (
            "Fighter",
            "entity_defs/interfaces/Fighter.def",
            Range::new(Position::new(0, 1), Position::new(0, 5)),
        ),
        (
            "Creature",
            "entity_defs/Creature.def",
            Range::new(Position::new(0, 1), Position::new(0, 5)),
        ),
    ] {
        assert_eq!(
            editor.definition(&avatar, position(&right, word)).await,
            (url(&dir, file), name)
        );
    }
    let params = DocumentSymbolParams {
        text_document: TextDocumentIdentifier::new(avatar.clone()),
        work_done_progress_params: Default::default(),
        partial_result_params: Default::default(),
    };
    let symbols = timeout(WAIT, editor.server.document_symbol(params))
        .await
        .expect("in time");
    let Some(DocumentSymbolResponse::Nested(symbols)) = symbols.expect("an answer") else {
        panic!("no symbols");
    };
    let properties = symbols
        .iter()
        .find(|symbol| symbol.name == "Properties")
        .expect("a section");
    let names = properties.children.iter().flatten().map(|symbol| symbol.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["gold", "name"]);
    assert_eq!(editor.leave().await, Some(0));
}

#[tokio::test]
async fn completion_works() {
    let dir = world();
    let avatar = url(&dir, "entity_defs/Avatar.def");
    let mut editor = Editor::start(Some(dir.path())).await;
    editor.open(&avatar, AVATAR);
    // Typing a property tag by tag, with the rest still missing.
    let end = position(AVATAR, "\n\t</Properties>");
    let mut version = 1;
    for (typed, label, written) in [
        (" <hp> <", "Type", "Type> $0 </Type>"),
        (" <hp> <Type> ", "GOLD", "GOLD$0"),
        (" <hp> <Type> U", "UINT8", "UINT8$0"),
        (" <hp> <Type> UINT8 </Type> <", "Flags", "Flags> $0 </Flags>"),
        (" <hp> <Type> UINT8 </Type> <Flags>", "ALL_CLIENTS", "ALL_CLIENTS$0"),
        (" <hp> <Type> UINT8 </Type> <Flags> BASE </", "Flags", "Flags>$0"),
    ] {
        version += 1;
        let text = AVATAR.replace("\n\t</Properties>", &format!("{typed}\n\t</Properties>"));
        editor.change(&avatar, version, None, &text);
        let cursor = Position::new(end.line, end.character + u32::try_from(typed.len()).expect("small"));
        let offered = editor.complete(&avatar, cursor).await;
        assert!(
            offered.contains(&(label.to_owned(), written.to_owned())),
            "{typed}: {offered:?}"
        );
    }
    assert_eq!(editor.leave().await, Some(0));
}

#[tokio::test]
async fn files_changed_on_disk_are_read_again() {
    let dir = world();
    let (avatar, fighter) = (
        url(&dir, "entity_defs/Avatar.def"),
        url(&dir, "entity_defs/interfaces/Fighter.def"),
    );
    // An editor without a folder: the world is found from the file that it opens.
    let mut editor = Editor::start(None).await;
    timeout(WAIT, editor.watching.recv())
        .await
        .expect("in time")
        .expect("it asks");
    editor.open(&avatar, "<root> <Propertis/> </root>");
    assert_eq!(codes(&editor.diagnostics(&avatar, Some(1)).await), ["D0101"]);
    assert!(codes(&editor.diagnostics(&fighter, None).await).contains(&"D0201".to_owned()));

    let path = dir.path().join("scripts/entity_defs/interfaces/Fighter.def");
    fs::write(&path, "<root> </root>").expect("a file");
    let event = FileEvent::new(fighter.clone(), FileChangeType::CHANGED);
    let params = DidChangeWatchedFilesParams { changes: vec![event] };
    editor.server.did_change_watched_files(params).expect("it listens");
    assert!(!codes(&editor.diagnostics(&fighter, None).await).contains(&"D0201".to_owned()));

    // The open text counts until it is closed.
    fs::write(
        dir.path().join("scripts/entity_defs/Avatar.def"),
        "<root> <Volatil/> </root>",
    )
    .expect("a file");
    let params = DidCloseTextDocumentParams {
        text_document: TextDocumentIdentifier::new(avatar.clone()),
    };
    editor.server.did_close(params).expect("it listens");
    let found = editor.diagnostics(&avatar, None).await;
    assert!(
        found.iter().any(|found| found.message.contains("<Volatile>")),
        "{found:#?}"
    );
    assert_eq!(editor.leave().await, Some(0));
}

#[tokio::test]
async fn unknown_requests_are_refused_and_the_server_continues() {
    let dir = world();
    let mut editor = Editor::start(Some(dir.path())).await;
    let params = lsp_types::FoldingRangeParams {
        text_document: TextDocumentIdentifier::new(url(&dir, "entities.xml")),
        work_done_progress_params: Default::default(),
        partial_result_params: Default::default(),
    };
    let refused = timeout(WAIT, editor.server.folding_range(params))
        .await
        .expect("in time");
    assert!(
        matches!(refused, Err(async_lsp::Error::Response(error)) if error.code == async_lsp::ErrorCode::METHOD_NOT_FOUND)
    );
    let unknown = Url::parse("untitled:Untitled-1").expect("a URL");
    editor.open(&unknown, "<root> <");
    assert_eq!(editor.leave().await, Some(0));
}

#[test]
fn malformed_messages_do_not_end_the_session() {
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let said = [
        "GET / HTTP/1.1\r\nHost: nobody\r\n\r\n".to_owned(),
        frame("{ \"jsonrpc\": "),
        frame("[1, 2, 3]"),
        frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#),
        frame(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#),
        frame(r#"{"jsonrpc":"2.0","method":"exit"}"#),
    ];
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(["defs", "lsp", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(said.concat().as_bytes()).expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    let answers = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{answers}");
    assert_eq!(answers.matches("-32700").count(), 2, "{answers}");
    assert_eq!(answers.matches("-32600").count(), 1, "{answers}");
    assert!(answers.contains("\"capabilities\""), "{answers}");
}
