//! Steps of the log model in words.

use super::batch::{Batch, input_name, process_name};
use super::holder::{Holder, Phase};
use super::{LogState, LogStep, Packet};

pub(super) fn words(state: &LogState, step: LogStep, after: &LogState) -> String {
    match step {
        LogStep::Grant => format!(
            "epoch {} is granted to {}{}",
            after.store.granted,
            process_name(after.store.granted),
            if after.holders[usize::from(after.store.granted) - 1].after_ended {
                ", whose last holder has ended"
            } else {
                ""
            }
        ),
        LogStep::TimePasses => "a freshness limit passes".into(),
        LogStep::Arrive(index) => packet_words(state, state.packets[usize::from(index)], after, ""),
        LogStep::ArriveTwice(index) => packet_words(
            state,
            state.packets[usize::from(index)],
            after,
            ", and a copy of it stays in flight",
        ),
        LogStep::Crash(holder) => format!("{} crashes", process_name(holder + 1)),
        LogStep::Disconnect(holder) => format!("a server closes the connection of {}", process_name(holder + 1)),
        LogStep::Reconnect(holder) => format!("{} is connected again", process_name(holder + 1)),
        LogStep::LoseTail(count) => lost_tail_words(state, count),
        LogStep::LoseTailRead(count) => {
            format!(
                "{}, after db had read {}",
                lost_tail_words(state, count),
                after.db.hand()
            )
        }
        LogStep::LoseAt(index) => lost_at_words(state, index),
        LogStep::LoseAtRead(index) => format!("{}, after db had read it", lost_at_words(state, index)),
        LogStep::Fold(_) | LogStep::FoldHand => format!("db folds {}", after.store.cursor),
        LogStep::DbLearn => "db reads the openings".into(),
        LogStep::Trim => trim_words(state, after),
        LogStep::Input(index)
        | LogStep::Close(index)
        | LogStep::Look(index)
        | LogStep::Beat(index)
        | LogStep::Confirm(index)
        | LogStep::Show(index, _)
        | LogStep::ReadStore(index)
        | LogStep::ReadSubject(index)
        | LogStep::SecondLook(index)
        | LogStep::Record(index)
        | LogStep::RecordUnanswered(index)
        | LogStep::Fill(index)
        | LogStep::FillDamaged(index) => {
            format!(
                "{} {}",
                process_name(index + 1),
                holder_words(state, step, index, after)
            )
        }
    }
}

fn holder_words(state: &LogState, step: LogStep, index: u8, after: &LogState) -> String {
    let then = &after.holders[usize::from(index)];
    match step {
        LogStep::Input(_) => format!("takes input {}", input_name(state.next_input)),
        LogStep::Close(_) => format!("sends {} expecting sequence {}", then.tip, then.expect),
        LogStep::Look(_) => format!("receives no answer, {}", look_words(state, index, then)),
        LogStep::Beat(_) => format!("sends the empty batch {} expecting sequence {}", then.tip, then.expect),
        LogStep::Confirm(_) if then.phase == Phase::Gone => {
            "finds that its epoch is not the granted one, and stops".into()
        }
        LogStep::Confirm(_) => "confirms its epoch and is fresh again".into(),
        LogStep::Show(_, input) => format!("shows {}", input_name(input)),
        LogStep::ReadStore(_) => format!("reads the store: the archive ends at {}", then.base),
        LogStep::ReadSubject(_) if then.phase == Phase::Gone => "reads a higher epoch on the subject, and stops".into(),
        LogStep::ReadSubject(_) => {
            format!(
                "reads the subject to {}, sends {} expecting sequence {}",
                then.tip.before(),
                then.tip,
                then.expect
            )
        }
        LogStep::SecondLook(_) if then.phase == Phase::Looked => {
            "reads the subject again: its Open is the last message".into()
        }
        LogStep::SecondLook(_) => "reads the subject again: its Open is not the last message; it begins again".into(),
        LogStep::Record(_) => match then.phase {
            Phase::Serving => "records its opening; its gate opens".into(),
            Phase::Gone => "cannot record its opening, because another epoch is granted, and stops".into(),
            _ => "cannot record its opening, because the archive is beyond it, and begins again".into(),
        },
        LogStep::RecordUnanswered(_) => "records its opening and receives no answer".into(),
        LogStep::Fill(_) => format!("fills the hole with {}", after.db.hand()),
        _ => format!("fills the hole with {}, damaged", after.db.hand()),
    }
}

fn look_words(state: &LogState, index: u8, then: &Holder) -> String {
    let before = &state.holders[usize::from(index)];
    let last = state.subject.last().map_or(Batch::NONE, |message| message.batch);
    let verdict = match then.phase {
        Phase::Gone => "stops".into(),
        Phase::Granted => "begins again".into(),
        _ if then.acked > before.acked => format!("counts {} as acknowledged", then.tip.at(then.acked)),
        _ => format!("sends {} expecting sequence {}", then.tip.at(then.sending), then.expect),
    };
    format!("reads {last} as the last message, and {verdict}")
}

fn packet_words(state: &LogState, packet: Packet, after: &LogState, copy: &str) -> String {
    match packet {
        Packet::None => String::new(),
        Packet::Append { from, batch, .. } if after.subject == state.subject => {
            format!(
                "{}'s append of {batch} arrives and is refused{copy}",
                process_name(from + 1)
            )
        }
        Packet::Append { from, batch, .. } => {
            let sequence = after.subject.last_sequence();
            format!(
                "{}'s append of {batch} arrives and is stored at {sequence}{copy}",
                process_name(from + 1)
            )
        }
        Packet::Stored { to, batch, .. } => {
            format!("the acknowledgement of {batch} reaches {}{copy}", process_name(to + 1))
        }
    }
}

fn lost_tail_words(state: &LogState, count: u8) -> String {
    let messages = state.subject.messages();
    let lost = &messages[messages.len() - usize::from(count)..];
    format!(
        "the log loses its tail: {}",
        batch_words(lost.iter().map(|message| message.batch))
    )
}

fn lost_at_words(state: &LogState, index: u8) -> String {
    format!(
        "the log loses {} alone",
        state.subject.messages()[usize::from(index)].batch
    )
}

fn trim_words(state: &LogState, after: &LogState) -> String {
    let gone = state
        .subject
        .messages()
        .iter()
        .map(|message| message.batch)
        .filter(|batch| !after.subject.has(*batch));
    format!("the subject is trimmed: {} deleted", batch_words(gone))
}

fn batch_words(batches: impl Iterator<Item = Batch>) -> String {
    batches.map(|batch| batch.to_string()).collect::<Vec<_>>().join(", ")
}
