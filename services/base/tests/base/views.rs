//! The view that clients have of their entity's base part.

use annals_def::Value;
use annals_ids::{EntityId, HistoryNumber, Part};
use annals_wire::client::{Known, Stamps, ToServer};

use crate::{
    game::text,
    host::{Host, Mood},
    player::{Player, log_in},
};

fn say(player: &mut Player, host: &mut Host, what: &str) {
    player.call(host, Part::Base, "say", &[Value::Unicode(what.into())]);
}

fn motto(player: &Player) -> String {
    text(&player.property_value("motto"))
}

fn shown_texts(player: &Player) -> Vec<&str> {
    player.shown_calls.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn a_change_is_shown_after_its_batch() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    assert_eq!(
        shown_texts(&player),
        ["welcome"],
        "calls before the start of the view are kept"
    );
    host.mood = Mood::Withholds;
    say(&mut player, &mut host, "one");
    host.pass(400);
    let frames = player.frames;
    player.listen(&mut host);
    assert_eq!((player.frames, motto(&player)), (frames, String::new()));
    host.answer_again();
    player.listen(&mut host);
    assert_eq!(
        (motto(&player).as_str(), shown_texts(&player)),
        ("one", vec!["welcome", "one"])
    );
}

#[test]
fn a_view_continues_after_a_take_over_without_gap_or_repetition() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    for round in 0..10 {
        say(&mut player, &mut host, &format!("shown {round}"));
        host.settle();
        player.listen(&mut host);
        // Shown to no client, but in the log.
        say(&mut player, &mut host, &format!("missed {round}"));
        host.settle();
        host.crash();
        player.connect(&mut host, 1);
        player.listen(&mut host);
        player.repeat(&mut host);
        player.begin_view(&mut host);
        host.settle();
        player.listen(&mut host);
        assert_eq!(motto(&player), format!("missed {round}"));
    }
    let expected = (0..10).flat_map(|round| [format!("shown {round}"), format!("missed {round}")]);
    let expected: Vec<String> = ["welcome".to_owned()].into_iter().chain(expected).collect();
    assert_eq!(shown_texts(&player), expected);
    assert!(player.shown_calls.is_sorted_by_key(|(number, _)| *number));
}

#[test]
fn deleted_history_is_replaced_by_a_full_refresh() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let connection = player.connection;
    host.role(annals_base::BaseInput::Closed { connection });
    player.connect(&mut host, 2);
    player.listen(&mut host);
    for n in 0..annals_event::HISTORY_KEPT {
        say(&mut player, &mut host, &n.to_string());
        host.settle();
        player.listen(&mut host);
    }
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    assert_eq!(motto(&player), (annals_event::HISTORY_KEPT - 1).to_string());
    assert_eq!(shown_texts(&player), ["welcome"], "a refresh sends no old calls");
}

#[test]
fn invalid_stamps_converge_to_the_current_state() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    say(&mut player, &mut host, "now");
    host.settle();
    player.listen(&mut host);
    let (entity, ..) = *player.has.as_ref().unwrap();
    let strange: Known = [
        (EntityId(3), HistoryNumber(9)),
        (entity, HistoryNumber(u64::MAX)),
        (EntityId(u64::MAX), HistoryNumber(0)),
    ]
    .into_iter()
    .collect();
    player.has.as_mut().unwrap().1 = HistoryNumber(0);
    player.begin_view(&mut host);
    // A repeated number begins no view.
    let stale = Stamps {
        source: Part::Base,
        view: 1,
        known: strange.clone(),
    };
    host.settle();
    let waiting = host.out.len();
    player.send(&mut host, &ToServer::Stamps(stale));
    host.settle();
    assert_eq!(host.out.len(), waiting);
    player.listen(&mut host);
    assert_eq!(motto(&player), "now");
    let known = strange;
    let (source, view) = (Part::Base, 1_000);
    host.pass(100);
    player.send(&mut host, &ToServer::Stamps(Stamps { source, view, known }));
    host.settle();
    let last = host.out.back().cloned().unwrap();
    let crate::host::Out::Frame(_, bytes) = last else {
        panic!("{last:?}")
    };
    let frame = annals_wire::client::ToClient::read(&bytes).unwrap();
    let annals_wire::client::ToClient::View(frame) = frame else {
        panic!("{frame:?}")
    };
    assert_eq!(
        frame.items.len(),
        3,
        "two that are not in view leave, the own one is refreshed: {frame:?}"
    );
}

#[test]
fn repeated_full_refreshes_are_limited() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    host.pass(200);
    let frames = player.frames;
    for _ in 0..50 {
        player.has = None;
        player.begin_view(&mut host);
    }
    host.settle();
    assert_eq!(host.out.len(), 1, "the first is answered");
    host.out.clear();
    host.pass(100);
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.frames, frames + 1, "and the waiting entity");
}

#[test]
fn large_changes_are_spread_over_frames() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let long = "x".repeat(60_000);
    for n in 0..20 {
        say(&mut player, &mut host, &format!("{n}{long}"));
        host.settle();
        player.listen(&mut host);
    }
    assert_eq!(player.shown_calls.len(), 21);
    // All of it again: each text once as a property and once as an argument, 2.4 MB.
    player.has.as_mut().unwrap().1 = HistoryNumber(1);
    let frames = player.frames;
    player.begin_view(&mut host);
    host.settle();
    player.listen(&mut host);
    assert!(player.frames >= frames + 8, "{} frames", player.frames - frames);
    assert!(motto(&player).starts_with("19x"));
    assert_eq!(player.shown_calls.len(), 41);
}
