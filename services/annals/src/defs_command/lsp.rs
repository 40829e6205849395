//! `annals defs lsp`: a language server, for editors that start one and speak with it over its input and output.

mod answer;
mod convert;
mod frame;
mod position;
mod server;
mod worlds;

use std::{
    collections::VecDeque,
    io::{self, BufReader, BufWriter, Write},
    process::ExitCode,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use lsp_server::Message;

use super::CANNOT_RUN;
use frame::{Frame, Malformed};
use server::Server;

/// Most messages read ahead: enough for a fast typist while a large world is checked.
const QUEUE: usize = 256;

#[derive(Debug, clap::Args)]
pub(super) struct Lsp {
    /// Speak over input and output, which is the only way; some editors say so
    #[arg(long)]
    stdio: bool,
}

/// What can happen.
#[derive(Debug)]
enum Event {
    /// The editor says something.
    Message(Message),
    /// It says something that is no message.
    Malformed(Malformed),
    /// It says nothing more.
    Closed,
}

impl Lsp {
    pub(super) fn run(self) -> ExitCode {
        let (sender, events) = sync_channel(QUEUE);
        // It waits for input until the process ends; nobody waits for it.
        thread::spawn(move || listen(&sender));
        match converse(&events, &mut BufWriter::new(io::stdout().lock())) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("the editor does not listen: {error}");
                ExitCode::from(CANNOT_RUN)
            }
        }
    }
}

/// Reads what the editor says until it says no more.
fn listen(events: &SyncSender<Event>) {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let event = match frame::read(&mut input) {
            Ok(Some(Frame::Message(message))) => Event::Message(message),
            Ok(Some(Frame::Malformed(malformed))) => Event::Malformed(malformed),
            Ok(None) | Err(_) => Event::Closed,
        };
        let is_last = matches!(event, Event::Closed);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// Handles events until the conversation is over; gives the exit code.
fn converse(events: &Receiver<Event>, output: &mut impl Write) -> io::Result<u8> {
    let mut server = Server::new();
    let mut queue = VecDeque::new();
    loop {
        // What has come already may cancel what came before it, and makes a check too early.
        while queue.len() < QUEUE
            && let Ok(event) = events.try_recv()
        {
            if let Event::Message(Message::Notification(notification)) = &event {
                server.cancel(notification);
            }
            queue.push_back(event);
        }
        match queue.pop_front() {
            Some(event) => handle(&mut server, event, output)?,
            None if server.is_unsettled() => server.settle(),
            None => match events.recv() {
                Ok(event) => queue.push_back(event),
                Err(_) => server.hung_up(),
            },
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
        Event::Malformed(malformed) => frame::refuse(output, malformed)?,
        Event::Closed => server.hung_up(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use lsp_server::{ErrorCode, Notification, Request, RequestId};
    use serde_json::{Value as Json, json};

    fn ask(id: i32, method: &str, params: Json) -> Event {
        Event::Message(Request::new(RequestId::from(id), method.to_owned(), params).into())
    }

    fn tell(method: &str, params: Json) -> Event {
        Event::Message(Notification::new(method.to_owned(), params).into())
    }

    /// A whole conversation, all of it said before it is heard: the exit code, and the answers as error codes by id.
    fn conversation(events: Vec<Event>) -> (u8, Vec<(Json, Option<i64>)>) {
        let (sender, receiver) = sync_channel(QUEUE);
        for event in events {
            sender.send(event).expect("there is room");
        }
        drop(sender);
        let mut output = Vec::new();
        let code = converse(&receiver, &mut output).expect("memory can be written");
        let text = String::from_utf8(output).expect("text");
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
            tell("unknown/notification", json!({})),
            tell("textDocument/didOpen", json!({ "textDocument": 7 })),
            Event::Malformed(Malformed::NotJson),
            ask(5, "shutdown", Json::Null),
            ask(6, "textDocument/hover", hover),
            tell("exit", Json::Null),
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
    fn what_is_cancelled_before_it_is_answered_is_refused() {
        let symbols = json!({ "textDocument": { "uri": "file:///x.def" } });
        let (_, answers) = conversation(vec![
            initialize(),
            ask(2, "textDocument/documentSymbol", symbols.clone()),
            ask(3, "textDocument/documentSymbol", symbols),
            tell("$/cancelRequest", json!({ "id": 2 })),
            tell("$/cancelRequest", json!({ "id": 99 })),
        ]);
        let cancelled = Some(ErrorCode::RequestCanceled as i64);
        assert_eq!(answers, [(json!(1), None), (json!(2), cancelled), (json!(3), None)]);
    }

    #[test]
    fn the_exit_code_tells_whether_the_editor_said_goodbye() {
        assert_eq!(conversation(vec![initialize(), tell("exit", Json::Null)]).0, 1);
        assert_eq!(conversation(vec![tell("exit", Json::Null)]).0, 1);
        assert_eq!(conversation(vec![initialize(), Event::Closed]).0, 1);
        assert_eq!(conversation(vec![initialize()]).0, 1);
        let goodbye = vec![initialize(), ask(2, "shutdown", Json::Null), Event::Closed];
        assert_eq!(conversation(goodbye).0, 0);
    }
}
