//! Bans: the sessions of an account that an operator has banned end.
//!
//! Whether an account is banned is in the realm's store: a log-in is refused there. A log-in that was checked out before
//! the ban may still be on its way to this base, which opens no session for it.

use std::collections::{BTreeSet, VecDeque};

use annals_ids::{DatabaseId, SessionId};
use annals_node::{Output, OwnerContext, time::Mono};
use annals_wire::client::{CloseReason, ToClient};

use crate::{
    input::{BAN_MEMORY, BannedAccount, MAX_BANNED},
    role::BaseRole,
};

/// The accounts that were banned a moment ago.
#[derive(Debug, Default)]
pub(crate) struct RecentBans(VecDeque<(Mono, DatabaseId)>);

impl RecentBans {
    fn remember(&mut self, now: Mono, account: DatabaseId) {
        self.0.retain(|(until, held)| *until > now && *held != account);
        self.0.push_back((now.after(BAN_MEMORY), account));
        if self.0.len() > MAX_BANNED {
            self.0.pop_front();
        }
    }

    /// Whether no session is to be opened for an account.
    pub(crate) fn contains(&self, now: Mono, account: DatabaseId) -> bool {
        self.0.iter().any(|(until, held)| *until > now && *held == account)
    }
}

impl BaseRole {
    /// Ends all sessions of a banned account.
    pub(crate) fn ban(&mut self, cx: &mut OwnerContext, banned: &BannedAccount) {
        let now = cx.now().mono;
        self.recent_bans.remember(now, banned.account);
        let mut ended = 0;
        for session in self.sessions_of(cx, banned) {
            self.send_to_client(cx, session, &ToClient::Banned(banned.ban.clone()));
            self.end_session(cx, session, CloseReason::Banned);
            ended += 1;
        }
        self.counters.banned += u64::from(ended);
        let request = banned.request;
        cx.emit(Output::SessionsEnded { request, ended });
    }

    /// The sessions that were opened for an account. After a take-over those are not known: then the one at the account's
    /// own entity counts, and the one that the log has.
    fn sessions_of(&self, cx: &OwnerContext, banned: &BannedAccount) -> BTreeSet<SessionId> {
        let entity = cx.state().databases.get(&banned.account).copied();
        let own = entity.and_then(|entity| self.session_of(cx, entity));
        let is_of_another = |id: &SessionId| {
            let account = self.sessions.get(*id).and_then(|session| session.account.as_ref());
            account.is_some_and(|account| account.id != banned.account)
        };
        let logged = banned.session.filter(|id| self.sessions.get(*id).is_some());
        let unknown = own.into_iter().chain(logged).filter(|id| !is_of_another(id));
        self.sessions.of_account(banned.account).chain(unknown).collect()
    }
}
