//! Steps in words.

use super::{Client, Follows, MovingState, MovingStep, Process};

const NAMES: [&str; super::PROCESSES] = ["A", "B", "C"];

pub(super) fn of(state: &MovingState, step: MovingStep, after: &MovingState) -> String {
    match step {
        MovingStep::Beat { process, is_lost, .. } => {
            let mut parts = vec![reported(process, state.processes[process].unwrap_or_default())];
            parts.extend(planned(state, after));
            if is_lost {
                parts.push("the answer is lost".into());
            } else {
                parts.extend(ordered(state, process, after));
            }
            parts.join("; ")
        }
        MovingStep::CatchUp(process) => format!("{} has read the log to its end", NAMES[process]),
        MovingStep::Lag(process) => format!("{} is behind, or has to begin again", NAMES[process]),
        MovingStep::Release(process) => format!("{} releases the owner", NAMES[process]),
        MovingStep::Leave(process) => format!("{} ends, and reports that", NAMES[process]),
        MovingStep::Grant { to, .. } => format!("the director grants the owner to {}", NAMES[to]),
        MovingStep::ReceiveAllReports => "all processes have reported to the director".into(),
        MovingStep::Drain => "B begins to drain".into(),
        MovingStep::Crash => "B crashes, which its server reports".into(),
        MovingStep::Replace => "another director leads".into(),
    }
}

/// What a process reports.
fn reported(process: usize, found: Process) -> String {
    let what = match found.follows {
        _ if found.holds && found.drains => "that it drains",
        _ if found.holds => "that it serves the owner",
        _ if found.released => "that it has released the owner",
        Follows::Ready if found.drains => "that it drains, and is ready to take the owner over",
        Follows::Ready => "that it is ready to take the owner over",
        Follows::Behind if found.drains => "that it drains, and is not at the end of the log",
        Follows::Behind => "that it is not at the end of the log",
        Follows::No if found.drains => "that it drains",
        Follows::No => "that it is there",
    };
    format!("{} reports {what}", NAMES[process])
}

/// What the director plans from now on.
fn planned(state: &MovingState, after: &MovingState) -> Option<String> {
    let plan = after.director.plan;
    (plan != state.director.plan).then(|| match plan {
        Some(next) => format!("the director plans {} as the next holder", NAMES[next]),
        None => "the director plans no next holder".into(),
    })
}

/// What a process does by the director's orders.
fn ordered(state: &MovingState, process: usize, after: &MovingState) -> Vec<String> {
    let name = NAMES[process];
    let before = state.processes[process].unwrap_or_default();
    let now = after.processes[process].unwrap_or_default();
    let mut done = Vec::new();
    if now.holds && !before.holds {
        done.push(format!("{name} takes the owner over"));
    }
    match (before.follows, now.follows) {
        (Follows::No, Follows::Behind) => done.push(format!("{name} begins to follow the owner")),
        (Follows::Behind | Follows::Ready, Follows::No) if !now.holds => {
            done.push(format!("{name} does not follow the owner any more"));
        }
        _ => {}
    }
    if let Some(next) = now.ordered.filter(|_| now.ordered != before.ordered) {
        done.push(format!("{name} sends the client to {}", NAMES[next]));
    }
    if before.ordered.is_some() && now.ordered.is_none() {
        done.push(format!("{name} waits with the hand-over"));
    }
    match after.client {
        client if client == state.client => {}
        Client::Refused(at) => done.push(format!("{} sends the client away", NAMES[at])),
        Client::Served(at) => done.push(format!("{} serves the client", NAMES[at])),
        Client::Waits(_) | Client::Locates => {}
    }
    done
}
