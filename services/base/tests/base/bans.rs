//! Bans: the sessions of a banned account end, whatever became of them.

use annals_base::{BannedAccount, BaseInput};
use annals_def::Value;
use annals_ids::{DatabaseId, Part, SessionId, WallTime};
use annals_node::NotOpened;
use annals_wire::client::{Ban, CloseReason, Rejection, ToClient};

use crate::{
    host::{Host, Out, open},
    player::{Entrance, log_in, with_ticket},
};

fn sample_ban() -> Ban {
    Ban {
        until: Some(WallTime(1_798_000_000_000)),
        reason: "case 9".to_owned(),
    }
}

/// Bans account 5. Returns how many sessions were ended.
pub(crate) fn ban(host: &mut Host, session: Option<SessionId>) -> u32 {
    host.role(BaseInput::Ban(BannedAccount {
        request: 77,
        account: DatabaseId(5),
        session,
        ban: sample_ban(),
    }));
    host.settle();
    let (request, ended) = host.ended.pop().expect("it is answered");
    assert_eq!(request, 77);
    ended
}

#[test]
fn a_banned_player_receives_the_reason_and_is_out() {
    let mut host = Host::new();
    let mut banned = log_in(&mut host, 5, 1);
    let mut other = log_in(&mut host, 6, 2);
    assert_eq!(ban(&mut host, None), 1);
    let mut frame = Vec::new();
    ToClient::Banned(sample_ban()).write(&mut frame);
    let connection = banned.connection;
    let to_banned = |out: &&Out| matches!(out, Out::Frame(to, _) | Out::Close(to, _) if *to == connection);
    let last: Vec<Out> = host.out.iter().filter(to_banned).cloned().collect();
    let expected = [
        Out::Frame(connection, frame),
        Out::Close(connection, CloseReason::Banned),
    ];
    assert!(last.ends_with(&expected), "{last:?}");
    assert_eq!(ban(&mut host, None), 0, "nothing is left to end");
    assert_eq!(host.owner.role().sessions(), 1);
    assert_eq!(host.owner.role().counters().banned, 1);
    other.listen(&mut host);
    assert_eq!(other.closed, None);

    banned.connect(&mut host, 3);
    banned.listen(&mut host);
    assert_eq!(banned.entrance, Entrance::Rejected(Rejection::UnknownSession));
}

#[test]
fn sessions_without_a_connection_end_too() {
    let mut host = Host::new();
    let mut invited = with_ticket(&mut host, 5, 1);
    assert_eq!(ban(&mut host, None), 1);
    invited.connect(&mut host, 1);
    invited.listen(&mut host);
    assert_eq!(invited.entrance, Entrance::Rejected(Rejection::UnknownSession));
}

#[test]
fn a_log_in_that_was_under_way_is_refused() {
    let mut host = Host::new();
    assert_eq!(ban(&mut host, None), 0);
    let ask = |host: &mut Host, account| {
        let ticket = host.secret();
        let wanted = open(host, 1, account, account, &ticket);
        host.role(BaseInput::OpenSession(wanted));
        host.settle();
        host.opened.pop().expect("it is answered").1
    };
    assert_eq!(ask(&mut host, 5), Err(NotOpened::Banned));
    assert!(ask(&mut host, 6).is_ok());
    // Later log-ins are refused by the database, if the account is still banned.
    host.pass(10_000);
    assert!(ask(&mut host, 5).is_ok());
}

#[test]
fn a_player_is_found_at_another_entity_after_a_take_over() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let account = player.entity;
    player.call(&mut host, Part::Base, "become", &[Value::UInt(0)]);
    host.settle();
    player.listen(&mut host);
    assert_ne!(player.entity, account);
    host.crash();
    player.connect(&mut host, 2);
    player.listen(&mut host);
    assert_eq!(player.entrance, Entrance::Welcomed);
    assert_eq!(ban(&mut host, None), 0, "here it is not known whose session it is");
    assert_eq!(ban(&mut host, Some(player.session)), 1, "the log knows");
    player.listen(&mut host);
    assert_eq!(player.closed, Some(CloseReason::Banned));
}

#[test]
fn a_session_of_another_account_is_spared() {
    let mut host = Host::new();
    let mut other = log_in(&mut host, 6, 2);
    assert_eq!(ban(&mut host, Some(other.session)), 0);
    assert_eq!(ban(&mut host, Some(SessionId(1))), 0);
    other.listen(&mut host);
    assert_eq!(other.closed, None);
}
