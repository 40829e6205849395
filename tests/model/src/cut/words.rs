//! Steps of the model of cut logs in words.

use super::{Call, CutState, CutStep};

pub(super) fn words(state: &CutState, step: CutStep, after: &CutState) -> String {
    match step {
        CutStep::Make => {
            let made = after.sender.memory.unconfirmed().last();
            let made = made.map(|(call, _)| named(call)).unwrap_or_default();
            format!("the sender makes {made}")
        }
        CutStep::CommitSender => "the sender's log acknowledges its state".into(),
        CutStep::CommitReceiver => "the receiver's log acknowledges its state".into(),
        CutStep::Send(call, true) => format!("the sender sends {}, its oldest unconfirmed call", named(call)),
        CutStep::Send(call, false) => format!("the sender sends {}", named(call)),
        CutStep::Lose(call, _) => format!("the message with {} is lost", named(call)),
        CutStep::Arrive(call, _) => {
            let skips = call.number > state.receiver.memory.taken + 1;
            let skipping = if skips { ", and skips the numbers before it" } else { "" };
            format!("the receiver takes {}{skipping}", named(call))
        }
        CutStep::SendTook => "the receiver confirms the calls that it has taken".into(),
        CutStep::ArriveTook(upto) => format!("the sender learns that calls up to {upto} were taken"),
        CutStep::CrashSender => "the sender crashes; its successor continues from the log".into(),
        CutStep::CrashReceiver => "the receiver crashes; its successor continues from the log".into(),
        CutStep::CutSender => "the sender's log is cut: its newest batch is void".into(),
        CutStep::CutReceiver => "the receiver's log is cut: its newest batch is void".into(),
    }
}

fn named(call: Call) -> String {
    format!("call {} ({})", call.number, char::from(b'x' + call.body))
}
