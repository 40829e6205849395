//! Steps of the view model in words.

use super::frame::{Frame, Shows};
use super::{Sight, ViewState, ViewStep};

pub(super) fn words(state: &ViewState, step: ViewStep, after: &ViewState) -> String {
    match step {
        ViewStep::Event => format!("the entity has event {}, with number {}", after.made, after.real.upto),
        ViewStep::Move => "the entity has a new holder".into(),
        ViewStep::TrimHistory => format!("number {} is trimmed from the history", after.trimmed),
        ViewStep::EventArrives(number, event) => match after.ghost.asks {
            true => format!("number {number} reaches the ghost, which finds a gap"),
            false => format!("event {event} reaches the ghost as number {number}"),
        },
        ViewStep::LoseEvent(number, _) => format!("number {number} is lost on its way to the ghost"),
        ViewStep::Beat => format!("the ghost's owner receives the newest number, {}", state.real.upto),
        ViewStep::AskReal => format!(
            "the ghost requests an image, and the real entity sends {}",
            sight(state.real)
        ),
        ViewStep::ImageArrives => "the image reaches the ghost".into(),
        ViewStep::Turn if after.is_near => "the entity comes near".into(),
        ViewStep::Turn => "the entity goes away".into(),
        ViewStep::Write => {
            let written = (0..after.frames.len())
                .map(|index| after.frames.at(index))
                .find(|frame| {
                    (frame.epoch, frame.view, frame.number)
                        == (state.witness.epoch, state.witness.view, state.witness.next_frame)
                });
            format!("the witness writes {}", written.map(frame).unwrap_or_default())
        }
        ViewStep::FrameArrives(index) if after.client.view > state.client.view => {
            format!(
                "the client receives {}, which does not fit, and requests a new view",
                frame(state.frames.at(index))
            )
        }
        ViewStep::FrameArrives(index) => format!("the client receives {}", frame(state.frames.at(index))),
        ViewStep::LoseFrame(index) => format!("{} is lost", frame(state.frames.at(index))),
        ViewStep::TakeOver => "the witness has a new holder".into(),
        ViewStep::NotifyOfHolder => "the client connects to the witness's new holder".into(),
        ViewStep::BeginView => match state.client.sees {
            Some(sees) => format!(
                "the client names what it has, {}; view {} begins",
                sight(sees),
                state.client.view
            ),
            None => format!("the client names nothing; view {} begins", state.client.view),
        },
        ViewStep::FrameBeat => {
            let newest = state.witness.next_frame - 1;
            format!("the client receives the newest frame number, {newest}, and requests a new view")
        }
    }
}

fn frame(frame: Frame) -> String {
    let Frame {
        epoch,
        view,
        number,
        shows,
    } = frame;
    let shows = match shows {
        Shows::Whole(whole) => format!("the whole state, {}", sight(whole)),
        Shows::Update { from, to } => format!("an update from {from} to {}", to.upto),
        Shows::Leave => "the entity leaves".into(),
    };
    format!("frame {number} of view {view} of holder {epoch} ({shows})")
}

fn sight(sight: Sight) -> String {
    format!("number {}", sight.upto)
}
