//! Hand-over of a client from one entity to another, at this owner or at another one (rule C20).

use annals_event::{Body, Call, GivenClient, GivenOutcome};
use annals_ids::{Address, DatabaseId, EntityId, Mailbox, OwnerId, SessionId};
use annals_node::{Caller, Denied, Nowhere, OwnerContext, Request};
use annals_wire::client::{CloseReason, ToClient};

use crate::{
    admission::token,
    input::{DuplicateLogin, MAX_SESSIONS, RESUME_WINDOW},
    internal_waits::InternalWait,
    role::BaseRole,
    session::{Account, FormerSession, Phase, Session},
};

/// Why an entity does not get a client.
enum NotTaken {
    /// The client that it has stays.
    InUse,
    /// It cannot have it.
    Refused(&'static str),
}

impl BaseRole {
    /// Hands the client of one entity over to another one. If that has a client already, the session of the later log-in
    /// replaces it, or ends if that log-in asked for no replacement.
    ///
    /// # Errors
    /// When there is no client to hand over, or an entity here cannot take it.
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
            self.offer(cx, (from, session), to);
            InternalWait::ClientTaken.set(cx, from);
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
        let (account, duplicate) = self.sessions.get(id).map_or_else(Default::default, |session| {
            let account = session.account.as_ref().map(|account| account.id);
            (account, session.duplicate)
        });
        self.make_room(cx, to, (account, duplicate))?;
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

    /// Makes an entity free for a client of this account. Its present session is replaced, or stays if the new one gives
    /// way.
    fn make_room(
        &mut self,
        cx: &mut OwnerContext,
        to: EntityId,
        (account, duplicate): (Option<DatabaseId>, DuplicateLogin),
    ) -> Result<(), NotTaken> {
        let image = cx.image(to).ok_or(NotTaken::Refused("the other entity has ended"))?;
        if InternalWait::CellEnds.is_set(image) || InternalWait::EndsAfterClient.is_set(image) {
            return Err(NotTaken::Refused("the other entity is about to end"));
        }
        if InternalWait::ClientTaken.is_set(image) {
            return Err(NotTaken::Refused("the other entity is giving its own client away"));
        }
        if let Some(before) = self.session_of(cx, to) {
            if duplicate == DuplicateLogin::Refuse && self.sessions.connection(before).is_some() {
                return Err(NotTaken::InUse);
            }
            self.replace_session(cx, before, account);
        }
        Ok(())
    }

    /// Records that an entity has the client of a session, which presents the token of this digest.
    fn attach(&mut self, cx: &mut OwnerContext, to: EntityId, session: SessionId, token: [u8; 32]) {
        cx.record_for(to, false, Body::TokenSet(token));
        self.set_client(cx, to, Some(session));
    }

    /// Calls the owner of the other entity to take the client.
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
            gives_way: session.duplicate == DuplicateLogin::Refuse,
        };
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

    /// Opens the session of a client that another owner gives to an entity here. The client presents its token when it
    /// connects. If it is given again, its token has changed before it could.
    fn expect_given(&mut self, cx: &mut OwnerContext, given: &GivenClient) -> Result<(), NotTaken> {
        let GivenClient { to, session: id, .. } = *given;
        let to = to.entity;
        if to.fragment().is_some() {
            return Err(NotTaken::Refused("fragments of services have no clients"));
        }
        if given
            .account
            .is_some_and(|account| self.recent_bans.contains(cx.now().mono, account))
        {
            return Err(NotTaken::Refused("its account is banned"));
        }
        if let Some(known) = self.sessions.get_mut(id) {
            if known.entity != to {
                return Err(NotTaken::Refused("its session is at another entity there"));
            }
            if known.phase.connection().is_none() {
                known.former_token = given.former_token;
                self.attach(cx, to, id, given.token);
            }
            return Ok(());
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(NotTaken::Refused("its owner has as many sessions as it can"));
        }
        let duplicate = match given.gives_way {
            true => DuplicateLogin::Refuse,
            false => DuplicateLogin::Replace,
        };
        self.make_room(cx, to, (given.account, duplicate))?;
        let until = cx.now().mono.after(RESUME_WINDOW);
        let mut session = Session::new(to, Phase::Expected { until }, None);
        session.account = given.account.map(|id| Account { id, name: None });
        session.duplicate = duplicate;
        session.former_token = given.former_token;
        self.sessions.insert(id, session);
        self.downloads.restart(to);
        self.attach(cx, to, id, given.token);
        Ok(())
    }

    /// The other owner has answered. A client that connected meanwhile has another token, which is sent after it. If the
    /// session has ended meanwhile, so it does there, since no client comes.
    pub(crate) fn given_answered(
        &mut self,
        cx: &mut OwnerContext,
        (from, id): (EntityId, SessionId),
        to: Mailbox,
        outcome: GivenOutcome,
    ) {
        let is_current = self.session_of(cx, from) == Some(id) && waits(cx, InternalWait::ClientTaken, from);
        match outcome {
            GivenOutcome::Taken { token: taken } if is_current => {
                if token(cx, from) != Some(taken) {
                    return self.offer(cx, (from, id), to);
                }
                self.release(cx, (from, id), to.home);
            }
            GivenOutcome::InUse if is_current => self.end_session(cx, id, CloseReason::LoggedInElsewhere),
            GivenOutcome::Refused(why) if is_current => {
                let entity = to.entity;
                let why = Denied::ClientKept { from, to: entity, why };
                self.counters.denied += 1;
                cx.deny(from, &Nowhere, &Request::GiveClient { from, to }, &why);
            }
            GivenOutcome::Taken { .. } | GivenOutcome::InUse | GivenOutcome::Refused(_) => {}
        }
        InternalWait::ClientTaken.clear(cx, from);
        if InternalWait::EndsAfterClient.clear(cx, from) {
            self.destroy(cx, from);
        }
    }

    /// The session of an entity's client is at another owner from now on.
    fn release(&mut self, cx: &mut OwnerContext, (from, id): (EntityId, SessionId), to: OwnerId) {
        self.downloads.restart(from);
        let before = self.sessions.get(id).and_then(|session| session.former_token);
        let tokens = [token(cx, from), before];
        self.sessions.remember(id, FormerSession::Given { to, tokens });
        self.tell_client(cx, id, &ToClient::Given(to));
        self.drop_session(cx, id, CloseReason::Moved);
        self.set_client(cx, from, None);
    }
}

fn waits(cx: &OwnerContext, wait: InternalWait, entity: EntityId) -> bool {
    cx.image(entity).is_some_and(|image| wait.is_set(image))
}
