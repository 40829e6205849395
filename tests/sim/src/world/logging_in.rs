//! The login service, and the keys and addresses that it gives out.

use std::collections::BTreeMap;

use annals_base::{BaseInput, CheckedOut, DuplicateLogin, OpenSession};
use annals_client::{Attempt, Input as ClientInput};
use annals_db::{StoredEntity, accounts, personal};
use annals_event::OwnerState;
use annals_ids::{DatabaseId, Epoch, OwnerId, OwnerKind, Part, SessionId};
use annals_node::NotOpened;
use annals_personal::PersonalKey;
use annals_store::immediate;
use annals_wire::client::{Located, LoginAnswer, LoginRefusal, LoginRequest, Secret, Ticket};

use super::{
    Step, World,
    clients::{LoginCall, Pending, address_of},
    hosting::{Given, Hold},
};

impl World {
    /// The login service, in one step; the decisions of `annals-login` are tested in its own crate.
    pub(super) fn log_in(&mut self, client: usize, call: LoginCall) {
        let LoginCall { attempt, request } = call;
        let answer = match request {
            LoginRequest::LogIn { .. } => match self.open(client, attempt) {
                None => return,
                Some(refusal) => LoginAnswer::Refused(refusal),
            },
            LoginRequest::Locate { owner, .. } => match self.located(owner) {
                Some((located, _)) => LoginAnswer::Located(located),
                None => LoginAnswer::Refused(LoginRefusal::NotHeld),
            },
        };
        let input = ClientInput::LoginAnswered {
            attempt,
            answer: Some(answer),
        };
        self.after(1_000, Step::ToClient { client, input });
    }

    /// Asks a base for a session; `None` while the answer is pending.
    fn open(&mut self, client: usize, attempt: Attempt) -> Option<LoginRefusal> {
        let name = self.clients[client].name.clone();
        let entity = StoredEntity {
            entity_type: "Avatar".to_owned(),
            ..StoredEntity::default()
        };
        let schema = std::sync::Arc::clone(&self.schema);
        let created = immediate(accounts::create(&self.store, name.as_bytes(), "", &entity, &schema));
        let Ok(account) = created else {
            return Some(LoginRefusal::Busy);
        };
        let Some(preferred) = self.any_base() else {
            return Some(LoginRefusal::Busy);
        };
        let Ok(Some(checkout)) = immediate(accounts::check_out(&self.store, account.database, preferred)) else {
            return Some(LoginRefusal::Busy);
        };
        let Some((base, hold)) = self.located(checkout.owner) else {
            return Some(LoginRefusal::Busy);
        };
        let secret = self.secret();
        let request = self.next_login;
        self.next_login += 1;
        let wanted = self.wanted(request, base.epoch, account.database, checkout.number, &secret);
        self.logins.insert(
            request,
            Pending {
                client,
                attempt,
                secret,
                base,
            },
        );
        self.give(hold, Given::Base(BaseInput::OpenSession(wanted)));
        None
    }

    fn wanted(&self, request: u64, epoch: Epoch, account: DatabaseId, checkout: u64, secret: &Secret) -> OpenSession {
        let entity_type = self.schema.type_named("Avatar").expect("the game has avatars");
        let stored = immediate(accounts::load(&self.truth(), account)).expect("the store in memory answers");
        let properties = stored
            .map(|stored| {
                [Part::Base, Part::Cell]
                    .map(|part| stored.properties_of(entity_type, part))
                    .concat()
            })
            .unwrap_or_default();
        OpenSession {
            request,
            account: CheckedOut {
                epoch,
                database: account,
                checkout,
                type_id: entity_type.id,
                properties,
                key: self.key(account),
            },
            ticket: secret.digest().0,
            name: account.to_string(),
            duplicate: DuplicateLogin::Replace,
            replaces_only: false,
        }
    }

    /// A person's key; db creates it on first use.
    pub(super) fn key(&self, person: DatabaseId) -> Option<PersonalKey> {
        let fresh = [person.0.to_le_bytes()[0]; 32];
        immediate(personal::key(&self.truth(), person, fresh)).expect("the store in memory answers")
    }

    /// The keys of all persons with an activation in a state.
    pub(super) fn keys(&self, state: &OwnerState) -> BTreeMap<DatabaseId, PersonalKey> {
        let lives = state.databases.keys();
        lives.filter_map(|&person| Some((person, self.key(person)?))).collect()
    }

    pub(super) fn any_base(&mut self) -> Option<OwnerId> {
        let owners: Vec<OwnerId> = self
            .director
            .as_ref()?
            .membership
            .live_owners(OwnerKind::Base)
            .collect();
        let choice = self.roll();
        owners
            .get(usize::try_from(choice % owners.len().max(1) as u64).ok()?)
            .copied()
    }

    pub(super) fn located(&self, owner: OwnerId) -> Option<(Located, Hold)> {
        let hold = self.holder(owner)?;
        let epoch = self.processes.get(&hold.process)?.owners.get(&owner)?.epoch;
        Some((
            Located {
                owner,
                epoch,
                address: address_of(hold.process),
                certificate: None,
            },
            hold,
        ))
    }

    pub(super) fn session_opened(&mut self, request: u64, opened: &Result<SessionId, NotOpened>) {
        let Some(Pending {
            client,
            attempt,
            secret,
            base,
        }) = self.logins.remove(&request)
        else {
            return;
        };
        let answer = match opened {
            Ok(session) => LoginAnswer::Ticket(Ticket {
                session: *session,
                secret,
                base,
            }),
            Err(_) => LoginAnswer::Refused(LoginRefusal::Busy),
        };
        let input = ClientInput::LoginAnswered {
            attempt,
            answer: Some(answer),
        };
        self.after(1_000, Step::ToClient { client, input });
    }

    pub(super) fn secret(&mut self) -> Secret {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.roll().to_le_bytes());
        }
        Secret(bytes)
    }
}
