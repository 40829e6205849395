//! Steps of the hand-over model in words.

use super::message::{Kind, Message};
use super::{HandoverState, HandoverStep};

pub(super) fn words(state: &HandoverState, step: HandoverStep) -> String {
    match step {
        HandoverStep::Offload(from, to) if state.memory[usize::from(from)].half_left.is_none() => {
            format!("{} hands the entity over to {}", name(from), name(to))
        }
        HandoverStep::Offload(from, to) => format!("{} hands the entity over to {} as well", name(from), name(to)),
        HandoverStep::OffloadLater(from, to) => {
            format!("{} notes that the entity has left for {}", name(from), name(to))
        }
        HandoverStep::Commit(owner) => format!("{}'s log stores all its events", name(owner)),
        HandoverStep::Crash(owner) => format!("{} crashes; its successor continues from the log", name(owner)),
        HandoverStep::Send(from, to, number) => {
            let what = state.memory[usize::from(from)].out[usize::from(to)].at(number);
            let what = what
                .map(|kind| call(Message::Call { from, to, number, kind }))
                .unwrap_or_default();
            format!("{} sends {what}", name(from))
        }
        HandoverStep::SendTook(by, of) => format!(
            "{} sends {} the number of the last call that it took",
            name(by),
            name(of)
        ),
        HandoverStep::SendPlace(owner) => format!("{} sends the home the place of the entity", name(owner)),
        HandoverStep::Arrive(message) => format!("{} receives {}", receiver(message), call(message)),
        HandoverStep::ArriveRefused(message) => {
            format!("{} receives {}, and refuses", receiver(message), call(message))
        }
        HandoverStep::Lose(message) => format!("{} is lost", call(message)),
        HandoverStep::TakeBack(owner, to) => {
            format!(
                "{} has received no answer from {} and makes the entity real again",
                name(owner),
                name(to)
            )
        }
    }
}

fn call(message: Message) -> String {
    match message {
        Message::Call { from, to, number, kind } => {
            let what = match kind {
                Kind::Onload { .. } => "take the entity",
                Kind::Arrived { .. } => "it has arrived",
                Kind::Refused { .. } => "it is refused",
            };
            format!("call {number} from {} to {} ({what})", name(from), name(to))
        }
        Message::Took { by, of, upto } => {
            format!("the confirmation by {} of {}'s calls up to {upto}", name(by), name(of))
        }
        Message::Place { owner, .. } => format!("the notification that the entity is on {}", name(owner)),
        Message::TookPlace { number } => format!("the confirmation by the home of place {number}"),
    }
}

fn receiver(message: Message) -> String {
    match message {
        Message::Call { to, .. } => name(to).to_string(),
        Message::Took { of, .. } => name(of).to_string(),
        Message::Place { .. } => "the home".into(),
        Message::TookPlace { .. } => "the entity's owner".into(),
    }
}

fn name(owner: u8) -> char {
    char::from(b'X' + owner)
}
