//! Steps of the call model in words.

use super::message::Message;
use super::{CallsState, CallsStep, E, F};

pub(super) fn words(state: &CallsState, step: CallsStep) -> String {
    match step {
        CallsStep::Ask(owner, body) => format!("on {}, e calls f with {}", place(owner), said(body)),
        CallsStep::Commit(owner) => format!("{}'s log acknowledges all its batches", place(owner)),
        CallsStep::Crash(owner) => format!("{} crashes; its successor continues from the log", place(owner)),
        CallsStep::Send(owner, entity, number) => {
            let body = state
                .real(owner, entity)
                .and_then(|found| found.said.at(number))
                .unwrap_or_default();
            format!(
                "{} sends {}",
                place(owner),
                message(Message::Call {
                    from: entity,
                    number,
                    body
                })
            )
        }
        CallsStep::SendTook(owner, entity) => format!("{} confirms what {} has taken", place(owner), name(entity)),
        CallsStep::Arrive(what, owner) => format!("{} receives {}", place(owner), message(what)),
        CallsStep::Lose(what) => format!("{} is lost", message(what)),
        CallsStep::TakeHere(owner, entity) => {
            format!("on {}, {} takes a call without the bus", place(owner), name(entity))
        }
        CallsStep::Note(owner) => format!("{} records what f has taken", place(owner)),
        CallsStep::Offload(owner, entity) => format!("{} hands {} over", place(owner), name(entity)),
        CallsStep::Onload(owner, entity) => format!("{} takes {} over", place(owner), name(entity)),
        CallsStep::Depart(owner, entity) => format!("{} deletes its copy of {}", place(owner), name(entity)),
        CallsStep::Destroy(owner, entity) => format!("on {}, {} is destroyed", place(owner), name(entity)),
        CallsStep::Return(owner, entity) => format!(
            "the state of {} returns from {}, for its next part",
            name(entity),
            place(owner)
        ),
        CallsStep::AnswerGone => "f's home answers that f is gone".into(),
        CallsStep::AnswerGoneToo => "an owner without f answers that f is gone".into(),
    }
}

fn message(message: Message) -> String {
    match message {
        Message::Call { from, number, body } if from == F => format!("answer {number} of f ({})", said(body)),
        Message::Call { number, body, .. } => format!("call {number} of e ({})", said(body)),
        Message::Took { by, upto } => format!("the confirmation that {} took calls up to {upto}", name(by)),
        Message::Gone => "the answer that f is gone".into(),
    }
}

fn place(owner: u8) -> char {
    char::from(b'P' + owner)
}

fn name(entity: u8) -> char {
    if entity == E { 'e' } else { 'f' }
}

fn said(body: u8) -> char {
    char::from(b'x' + body)
}
