//! Hand-over of a client from one entity to another, at this owner or at another one (rule C20).

use annals_event::{Body, Call, GivenClient, GivenOutcome};
use annals_ids::{Address, DatabaseId, EntityId, Mailbox, OwnerId, SessionId, WorldTime};
use annals_node::{Caller, Denied, Nowhere, OwnerContext, Request};
use annals_wire::client::{CloseReason, ToClient};

use crate::{
    admission::token,
    input::{DuplicateLogin, MAX_SESSIONS, RESUME_WINDOW},
    internal_waits::{InternalWait, is_about_to_end},
    role::BaseRole,
    session::{Account, Former, Phase, Session},
};

/// Time within which an answer that a client is taken is relied on, milliseconds: well below the time for which the other
/// owner waits for the client, which began after the call was made.
const RELIED_ON_MS: u64 = 15_000;
const _: () = assert!(RELIED_ON_MS * 2 <= RESUME_WINDOW.as_millis() as u64);

/// Why an entity does not get a client.
enum NotTaken {
    /// The client that it has stays.
    InUse,
    /// It cannot have it.
    Refused(&'static str),
}

impl BaseRole {
    /// Hands the client of one entity over to another one. If that has a client already, the session of the later log-in
    /// stays, or the present one if the later log-in asked for no replacement.
    ///
    /// # Errors
    /// When there is no client to hand over, an entity here cannot take it, or there is no such base owner.
    pub(crate) fn give_client(&mut self, cx: &mut OwnerContext, from: EntityId, to: Mailbox) -> Result<(), Denied> {
        let kept = |why: &str| Denied::ClientKept {
            from,
            to: to.entity,
            why: why.to_owned(),
        };
        let session = self.session_of(cx, from).filter(|_| token(cx, from).is_some());
        let session = session.ok_or_else(|| kept("it has no client"))?;
        if waits(cx, InternalWait::ClientTaken, from) {
            return Err(kept("it is being given to another entity"));
        }
        if to.home != cx.owner() {
            if !self.map.as_ref().is_some_and(|map| map.bases.contains(&to.home)) {
                return Err(kept("its home is not a base owner that is known here"));
            }
            self.offer(cx, (from, session), to);
            return Ok(());
        }
        match self.give_here(cx, (from, session), to.entity) {
            Ok(()) => Ok(()),
            Err(NotTaken::InUse) => {
                self.end_session(cx, session, CloseReason::LoggedInElsewhere);
                Ok(())
            }
            Err(NotTaken::Refused(why)) => Err(kept(why)),
        }
    }

    fn give_here(
        &mut self,
        cx: &mut OwnerContext,
        (from, id): (EntityId, SessionId),
        to: EntityId,
    ) -> Result<(), NotTaken> {
        let Some(secret) = token(cx, from) else {
            return Err(NotTaken::Refused("it has no client"));
        };
        let session = self.sessions.get(id);
        let newcomer = session.map(|session| Newcomer {
            account: session.account.as_ref().map(|account| account.id),
            opened: session.opened,
            duplicate: session.duplicate,
        });
        self.make_room(cx, to, &newcomer.unwrap_or_default())?;
        // At each change of its entity the client drops what it has.
        self.downloads.restart(from);
        self.downloads.restart(to);
        self.set_client(cx, from, None);
        self.attach(cx, to, id, secret);
        if self.restart_views(cx, id, to) {
            cx.run(to, &Nowhere, |behaviour, context| behaviour.client_attached(context));
        }
        Ok(())
    }

    /// Makes an entity free for a client. Its present session is replaced, unless that is connected and the newcomer is of
    /// an earlier log-in, or gives way.
    fn make_room(&mut self, cx: &mut OwnerContext, to: EntityId, newcomer: &Newcomer) -> Result<(), NotTaken> {
        let image = cx.image(to).ok_or(NotTaken::Refused("there is no such entity"))?;
        if is_about_to_end(image) {
            return Err(NotTaken::Refused("the other entity is about to end"));
        }
        if InternalWait::ClientTaken.is_set(image) {
            return Err(NotTaken::Refused("the other entity is giving its own client away"));
        }
        let Some(before) = self.session_of(cx, to) else {
            return Ok(());
        };
        let opened = self.sessions.get(before).map(|session| session.opened);
        let stays = newcomer.duplicate == DuplicateLogin::Refuse || opened > Some(newcomer.opened);
        if stays && self.sessions.connection(before).is_some() {
            return Err(NotTaken::InUse);
        }
        self.replace_session(cx, before, newcomer.account);
        Ok(())
    }

    /// Records that an entity has the client of a session, which presents the token of this digest.
    fn attach(&mut self, cx: &mut OwnerContext, to: EntityId, session: SessionId, token: [u8; 32]) {
        cx.record_for(to, false, Body::TokenSet(token));
        self.set_client(cx, to, Some(session));
    }

    /// Calls the owner of the other entity to take the client, and waits for the answer.
    fn offer(&mut self, cx: &mut OwnerContext, (from, id): (EntityId, SessionId), to: Mailbox) {
        let (Some(session), Some(token)) = (self.sessions.get(id), token(cx, from)) else {
            return;
        };
        let given = GivenClient {
            from,
            to,
            session: id,
            token,
            former_token: session.former_token,
            account: session.account.as_ref().map(|account| account.id),
            opened: session.opened,
            gives_way: session.duplicate == DuplicateLogin::Refuse,
        };
        InternalWait::ClientTaken.clear(cx, from);
        let offered = cx.now().world.0.to_le_bytes();
        InternalWait::ClientTaken.set_with(cx, from, offered.to_vec());
        let (caller, called) = (Address::Owner(cx.owner()), Address::Owner(to.home));
        cx.call(caller, called, to.home, Call::GiveClient(Box::new(given)));
    }

    /// Takes a client that another owner gives to an entity here, and answers.
    pub(crate) fn take_given(&mut self, cx: &mut OwnerContext, caller: &Caller, given: &GivenClient) {
        let outcome = match self.expect_given(cx, given) {
            Ok(()) => GivenOutcome::Taken { token: given.token },
            Err(NotTaken::InUse) => GivenOutcome::InUse,
            Err(NotTaken::Refused(why)) => GivenOutcome::Refused(why.to_owned()),
        };
        cx.answer_given(caller, given, outcome);
    }

    /// Opens the session of a client that another owner gives to an entity here.
    fn expect_given(&mut self, cx: &mut OwnerContext, given: &GivenClient) -> Result<(), NotTaken> {
        let GivenClient { session: id, token, .. } = *given;
        let to = given.to.entity;
        if to.fragment().is_some() {
            return Err(NotTaken::Refused("fragments of services have no clients"));
        }
        let is_banned = |account| self.recent_bans.contains(cx.now().mono, account);
        if given.account.is_some_and(is_banned) {
            return Err(NotTaken::Refused("its account is banned"));
        }
        if self.sessions.get(id).is_some() {
            return self.expect_again(cx, given);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(NotTaken::Refused("its owner has as many sessions as it can"));
        }
        let newcomer = Newcomer {
            account: given.account,
            opened: given.opened,
            duplicate: match given.gives_way {
                true => DuplicateLogin::Refuse,
                false => DuplicateLogin::Replace,
            },
        };
        self.make_room(cx, to, &newcomer)?;
        let until = cx.now().mono.after(RESUME_WINDOW);
        let mut session = Session::new(to, Phase::Expected { until }, None);
        session.account = newcomer.account.map(|id| Account { id, name: None });
        session.opened = newcomer.opened;
        session.duplicate = newcomer.duplicate;
        session.former_token = given.former_token;
        self.sessions.insert(id, session);
        self.downloads.restart(to);
        self.attach(cx, to, id, token);
        InternalWait::ClientComes.set(cx, to);
        Ok(())
    }

    /// A client of a session that is here already is given again: it has a new token since, or the other owner's answer
    /// came late. Or the other entity gives it back before it came there: then it stays here.
    fn expect_again(&mut self, cx: &mut OwnerContext, given: &GivenClient) -> Result<(), NotTaken> {
        let GivenClient { session: id, token, .. } = *given;
        let to = given.to.entity;
        let until = cx.now().mono.after(RESUME_WINDOW);
        let is_expected = waits(cx, InternalWait::ClientComes, to);
        let Some(known) = self.sessions.get_mut(id).filter(|known| known.entity == to) else {
            return Err(NotTaken::Refused("its session is at another entity there"));
        };
        if waits(cx, InternalWait::ClientTaken, to) {
            if is_expected {
                return Err(NotTaken::Refused("the other entity is giving it back"));
            }
            if waits(cx, InternalWait::EndsAfterClient, to) {
                return Err(NotTaken::Refused("the other entity is about to end"));
            }
            InternalWait::ClientTaken.clear(cx, to);
            return Ok(());
        }
        // A client that has come has the newest token already.
        if is_expected {
            known.former_token = given.former_token;
            self.sessions.set_phase(id, Phase::Expected { until });
            cx.record_for(to, false, Body::TokenSet(token));
        }
        Ok(())
    }

    /// The other owner has answered. The client is given again if it has another token by now, or if the answer comes so
    /// late that the other owner may not wait for it any more. An answer about a session that is no longer here changes
    /// nothing: at the other owner it ends, too, since no client comes.
    pub(crate) fn given_answered(
        &mut self,
        cx: &mut OwnerContext,
        (from, id): (EntityId, SessionId),
        to: Mailbox,
        outcome: GivenOutcome,
    ) {
        if self.session_of(cx, from) != Some(id) || !waits(cx, InternalWait::ClientTaken, from) {
            return;
        }
        match outcome {
            GivenOutcome::Taken { token: taken } => {
                if token(cx, from) != Some(taken) || is_late(cx, from) {
                    return self.offer(cx, (from, id), to);
                }
                self.release(cx, (from, id), to.home);
            }
            GivenOutcome::InUse => self.end_session(cx, id, CloseReason::LoggedInElsewhere),
            GivenOutcome::Refused(why) => {
                InternalWait::ClientTaken.clear(cx, from);
                let entity = to.entity;
                let why = Denied::ClientKept { from, to: entity, why };
                self.counters.denied += 1;
                cx.deny(from, &Nowhere, &Request::GiveClient { from, to }, &why);
            }
        }
        self.end_after_client(cx, from);
    }

    /// Whether the end of an entity waits for its client to be taken; notes that it is to end then.
    pub(crate) fn waits_for_client(&self, cx: &mut OwnerContext, entity: EntityId) -> bool {
        let is_waiting = waits(cx, InternalWait::ClientTaken, entity);
        if is_waiting && !waits(cx, InternalWait::EndsAfterClient, entity) {
            InternalWait::EndsAfterClient.set(cx, entity);
        }
        is_waiting
    }

    /// Ends an entity whose end has waited for its client to be taken, if it waits no longer.
    pub(crate) fn end_after_client(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        let is_waiting = waits(cx, InternalWait::ClientTaken, entity);
        if !is_waiting && InternalWait::EndsAfterClient.clear(cx, entity) {
            self.destroy(cx, entity);
        }
    }

    /// The session of an entity's client is at another owner from now on.
    fn release(&mut self, cx: &mut OwnerContext, (from, id): (EntityId, SessionId), to: OwnerId) {
        self.downloads.restart(from);
        let before = self.sessions.get(id).and_then(|session| session.former_token);
        let tokens = [token(cx, from), before];
        self.sessions.remember(id, tokens, Former::Given(to));
        self.send_to_client(cx, id, &ToClient::Given(to));
        self.drop_session(cx, id, CloseReason::Moved);
        self.set_client(cx, from, None);
    }
}

/// A client that an entity is to get.
#[derive(Default)]
struct Newcomer {
    account: Option<DatabaseId>,
    /// When its session was opened.
    opened: WorldTime,
    duplicate: DuplicateLogin,
}

/// Whether the call that an answer belongs to was made so long ago that the answer is not relied on.
fn is_late(cx: &OwnerContext, from: EntityId) -> bool {
    let offered = cx.image(from).and_then(|image| InternalWait::ClientTaken.note(image));
    let offered = offered.and_then(|note| Some(u64::from_le_bytes(note.try_into().ok()?)));
    let since = cx.now().world.0.saturating_sub(offered.unwrap_or_default());
    since > RELIED_ON_MS
}

fn waits(cx: &OwnerContext, wait: InternalWait, entity: EntityId) -> bool {
    cx.image(entity).is_some_and(|image| wait.is_set(image))
}
