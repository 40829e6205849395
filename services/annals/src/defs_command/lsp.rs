//! `annals defs lsp`: a language server, for editors that start one and communicate over its input and output.

mod answer;
mod convert;
mod frame;
mod inbox;
mod position;
mod server;
mod worlds;

use std::{
    io::{self, BufReader, BufWriter, Write},
    process::ExitCode,
    sync::Arc,
    thread,
};

use super::CANNOT_RUN;
use frame::Frame;
use inbox::{Event, Inbox};
use server::Server;

#[derive(Debug, clap::Args)]
pub(super) struct Lsp {
    /// Use standard input and output, the only transport; accepted because some editors pass it
    #[arg(long)]
    stdio: bool,
}

impl Lsp {
    pub(super) fn run(self) -> ExitCode {
        let inbox = Arc::new(Inbox::default());
        let ears = Arc::clone(&inbox);
        // The thread reads until the process ends; it is not joined.
        thread::spawn(move || listen(&ears));
        match converse(&inbox, &mut BufWriter::new(io::stdout().lock())) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("the connection to the editor failed: {error}");
                ExitCode::from(CANNOT_RUN)
            }
        }
    }
}

/// Reads messages until the end of the input.
fn listen(inbox: &Inbox) {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let (event, bytes) = match frame::read(&mut input) {
            Ok(Some(Frame::Message { message, bytes })) => (Event::Message(message), bytes),
            Ok(Some(Frame::Malformed(malformed))) => (Event::Malformed(malformed), 0),
            Ok(None) => return inbox.put(Event::Closed, 0),
            Err(error) => {
                eprintln!("the editor's messages cannot be read any more: {error}");
                return inbox.put(Event::Closed, 0);
            }
        };
        inbox.put(event, bytes);
    }
}

/// Handles events until the session ends; returns the exit code.
fn converse(inbox: &Inbox, output: &mut impl Write) -> io::Result<u8> {
    let mut server = Server::new();
    loop {
        match inbox.try_take() {
            Some(event) => handle(&mut server, event, output)?,
            // If input is pending, a check would be premature.
            None if server.is_unsettled() => server.settle(),
            None => handle(&mut server, inbox.take(), output)?,
        }
        for message in server.drain() {
            frame::write(output, &message)?;
        }
        output.flush()?;
        if let Some(code) = server.exit_code() {
            return Ok(code);
        }
    }
}

fn handle(server: &mut Server, event: Event, output: &mut impl Write) -> io::Result<()> {
    match event {
        Event::Message(message) => server.handle(message),
        Event::Cancelled(id) => server.cancelled(id),
        Event::Malformed(malformed) => frame::refuse(output, malformed)?,
        Event::Closed => server.hung_up(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use frame::Malformed;
    use lsp_server::{ErrorCode, Notification, Request, RequestId};
    use serde_json::{Value as Json, json};

    fn ask(id: i32, method: &str, params: Json) -> Event {
        Event::Message(Request::new(RequestId::from(id), method.to_owned(), params).into())
    }

    fn notify(method: &str, params: Json) -> Event {
        Event::Message(Notification::new(method.to_owned(), params).into())
    }

    /// Runs a session whose input is known in advance: the exit code, and the output.
    fn output(events: Vec<Event>) -> (u8, String) {
        let inbox = Inbox::default();
        for event in events {
            inbox.put(event, 0);
        }
        inbox.put(Event::Closed, 0);
        let mut output = Vec::new();
        let code = converse(&inbox, &mut output).expect("memory can be written");
        (code, String::from_utf8(output).expect("text"))
    }

    /// The exit code of a session, and the error code of each answer by id.
    fn conversation(events: Vec<Event>) -> (u8, Vec<(Json, Option<i64>)>) {
        let (code, text) = output(events);
        let bodies = text.split("Content-Length: ").skip(1).map(|frame| {
            let body = frame.split_once("\r\n\r\n").expect("a header").1;
            serde_json::from_str::<Json>(body).expect("JSON")
        });
        let answers = bodies.filter(|body| body.get("id").is_some());
        let answers = answers.map(|body| (body["id"].clone(), body["error"]["code"].as_i64()));
        (code, answers.collect())
    }

    fn initialize() -> Event {
        ask(1, "initialize", json!({ "capabilities": {} }))
    }

    #[test]
    fn requests_are_answered_in_every_phase() {
        let hover = json!({ "textDocument": { "uri": "file:///x.def" }, "position": { "line": 0, "character": 0 } });
        let (code, answers) = conversation(vec![
            ask(0, "textDocument/hover", hover.clone()),
            initialize(),
            initialize(),
            ask(2, "textDocument/hover", hover.clone()),
            ask(3, "textDocument/hover", json!({ "position": "here" })),
            ask(4, "textDocument/rename", json!({})),
            notify("unknown/notification", json!({})),
            notify("textDocument/didOpen", json!({ "textDocument": 7 })),
            Event::Malformed(Malformed::NotJson),
            ask(5, "shutdown", Json::Null),
            ask(6, "textDocument/hover", hover),
            notify("exit", Json::Null),
        ]);
        let expected = [
            (json!(0), Some(ErrorCode::ServerNotInitialized as i64)),
            (json!(1), None),
            (json!(1), Some(ErrorCode::InvalidRequest as i64)),
            (json!(2), None),
            (json!(3), Some(ErrorCode::InvalidParams as i64)),
            (json!(4), Some(ErrorCode::MethodNotFound as i64)),
            (Json::Null, Some(ErrorCode::ParseError as i64)),
            (json!(5), None),
            (json!(6), Some(ErrorCode::InvalidRequest as i64)),
        ];
        assert_eq!(answers, expected);
        assert_eq!(code, 0);
    }

    #[test]
    fn requests_cancelled_before_their_answer_are_refused() {
        let symbols = json!({ "textDocument": { "uri": "file:///x.def" } });
        let (_, answers) = conversation(vec![
            initialize(),
            ask(2, "textDocument/documentSymbol", symbols.clone()),
            ask(3, "textDocument/documentSymbol", symbols),
            notify("$/cancelRequest", json!({ "id": 2 })),
            notify("$/cancelRequest", json!({ "id": 99 })),
        ]);
        let cancelled = Some(ErrorCode::RequestCanceled as i64);
        assert_eq!(answers, [(json!(1), None), (json!(2), cancelled), (json!(3), None)]);
    }

    #[test]
    fn an_overlong_file_is_refused_with_a_message() {
        let text = " ".repeat(annals_def::MAX_FILE_BYTES + 1);
        let file = json!({ "uri": "file:///nowhere/x.def", "languageId": "xml", "version": 1, "text": text });
        let (_, said) = output(vec![
            initialize(),
            notify("textDocument/didOpen", json!({ "textDocument": file })),
        ]);
        assert!(said.contains("window/showMessage"), "{}", said);
        assert!(said.contains("`file:///nowhere/x.def` is read from disk"), "{}", said);
    }

    #[test]
    fn the_exit_code_reports_whether_the_editor_sent_shutdown() {
        assert_eq!(conversation(vec![initialize(), notify("exit", Json::Null)]).0, 1);
        assert_eq!(conversation(vec![notify("exit", Json::Null)]).0, 1);
        assert_eq!(conversation(vec![initialize(), Event::Closed]).0, 1);
        assert_eq!(conversation(vec![initialize()]).0, 1);
        let goodbye = vec![initialize(), ask(2, "shutdown", Json::Null), Event::Closed];
        assert_eq!(conversation(goodbye).0, 0);
    }
}
