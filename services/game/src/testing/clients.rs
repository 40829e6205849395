//! The clients of a realm in a test: their outputs carried out, their connections and log-ins.

use annals_base::{BaseInput, OpenSession};
use annals_client::{Attempt, Input as ClientInput, Output as ClientOutput};
use annals_ids::{Direction, EntityId, Position, SessionId};
use annals_node::{ConnectionId, NotOpened};
use annals_wire::client::{
    CloseReason, Hello, Located, LoginAnswer, LoginRefusal, Secret, Ticket, ToServer, ToServerDatagram,
};

use super::{BASE, Player, TestRealm, station::WRITTEN};

impl TestRealm {
    /// Moves any entity in a client's view. Returns whether the client drives it
    /// ([`Driver::ClientOf`](annals_event::Driver)).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (player, avatar) = (scene.player, scene.avatar);
    /// assert!(scene.realm.drives(player, avatar), "its own entity");
    /// scene.on_cell(|own| own.context.set_driver(Driver::Server));
    /// scene.realm.pass(200);
    /// assert!(!scene.realm.drives(player, avatar));
    /// assert!(!scene.realm.drive(player, avatar, Position::default()));
    /// ```
    pub fn drive(&mut self, player: usize, entity: EntityId, position: Position) -> bool {
        let now = self.millis();
        let core = &mut self.players[player].core;
        let moved = core.move_entity(now, entity, position, Direction::default());
        self.drain(player);
        moved
    }

    /// Whether a client moves an entity: see [`TestRealm::drive`].
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let scene = Scene::new();
    /// let (player, avatar, monster) = (scene.player, scene.avatar, scene.monster.entity);
    /// assert!(scene.realm.drives(player, avatar) && !scene.realm.drives(player, monster));
    /// ```
    #[must_use]
    pub fn drives(&self, player: usize, entity: EntityId) -> bool {
        self.players[player].core.drives(entity)
    }

    pub(super) fn player_on(&self, connection: ConnectionId) -> Option<usize> {
        let on = |player: &Player| player.connection.is_some_and(|(on, _)| on == connection);
        self.players.iter().position(on)
    }

    pub(super) fn give_player(&mut self, connection: ConnectionId, input: impl FnOnce(Attempt) -> ClientInput) {
        let Some(player) = self.player_on(connection) else {
            return;
        };
        let Some((_, attempt)) = self.players[player].connection else {
            return;
        };
        self.give_core(player, input(attempt));
    }

    pub(super) fn give_core(&mut self, player: usize, input: ClientInput) {
        let now = self.millis();
        self.players[player].core.handle(now, input);
        self.drain(player);
    }

    pub(super) fn disconnect(&mut self, player: usize, reason: CloseReason) {
        if let Some((_, attempt)) = self.players[player].connection.take() {
            self.give_core(player, ClientInput::Disconnected { attempt, reason });
        }
    }

    pub(super) fn drain(&mut self, number: usize) {
        loop {
            let player = &mut self.players[number];
            player.events.extend(std::iter::from_fn(|| player.core.poll_event()));
            let Some(output) = player.core.poll_output() else {
                return;
            };
            self.do_for_player(number, output);
        }
    }

    fn do_for_player(&mut self, number: usize, output: ClientOutput) {
        match output {
            ClientOutput::Login { attempt, request } => self.log_in(number, attempt, &request),
            ClientOutput::Connect { attempt, .. } => {
                self.hang_up(number);
                self.secrets += 1;
                let player = &mut self.players[number];
                (player.connection, player.said_hello) = (Some((ConnectionId(self.secrets), attempt)), false);
                self.give_core(number, ClientInput::Connected { attempt });
            }
            ClientOutput::Frame(bytes) => self.frame(number, &bytes),
            ClientOutput::Datagram(bytes) => {
                if let Some((connection, _)) = self.players[number].connection {
                    let datagram = ToServerDatagram::read(&bytes).expect(WRITTEN);
                    self.give_base(BaseInput::Datagram { connection, datagram });
                }
            }
            ClientOutput::Disconnect(_) => self.hang_up(number),
            ClientOutput::Prepare { .. } | ClientOutput::Greet(_) | ClientOutput::Switch | ClientOutput::Abandon => {
                unreachable!("the base stays where it is")
            }
        }
    }

    pub(super) fn hang_up(&mut self, number: usize) {
        if let Some((connection, _)) = self.players[number].connection.take() {
            self.give_base(BaseInput::Closed { connection });
        }
    }

    fn frame(&mut self, number: usize, bytes: &[u8]) {
        let Some((connection, _)) = self.players[number].connection else {
            return;
        };
        if self.players[number].said_hello {
            let (frame, trace) = (ToServer::read(bytes).expect(WRITTEN), [0; 16]);
            return self.give_base(BaseInput::Frame {
                connection,
                frame,
                trace,
            });
        }
        self.players[number].said_hello = true;
        let (hello, fresh_token) = (Hello::read(bytes).expect(WRITTEN), self.secret());
        self.give_base(BaseInput::Hello {
            connection,
            from: ([127, 0, 0, 1], 1).into(),
            hello,
            fresh_token,
        });
    }

    fn secret(&mut self) -> Secret {
        self.secrets += 1;
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&self.secrets.to_le_bytes());
        Secret(secret)
    }

    fn log_in(&mut self, number: usize, attempt: Attempt, request: &annals_wire::client::LoginRequest) {
        if matches!(request, annals_wire::client::LoginRequest::Locate { .. }) {
            let answer = Some(LoginAnswer::Located(self.located()));
            return self.give_core(number, ClientInput::LoginAnswered { attempt, answer });
        }
        let ticket = self.secret();
        let account = self.players[number].account;
        // An activation that has not ended keeps its check-out.
        self.fold_logs();
        let checked_out = self.database.check_out(account, self.base.epoch);
        let Some(account) = checked_out else {
            let answer = Some(LoginAnswer::Refused(LoginRefusal::WrongPassword));
            return self.give_core(number, ClientInput::LoginAnswered { attempt, answer });
        };
        let wanted = OpenSession {
            request: number as u64,
            account,
            ticket: ticket.digest().0,
            name: number.to_string(),
            duplicate: self.duplicate,
            replaces_only: false,
        };
        self.players[number].pending = Some((attempt, ticket));
        self.give_base(BaseInput::OpenSession(wanted));
    }

    fn located(&self) -> Located {
        Located {
            owner: BASE,
            epoch: self.base.epoch,
            address: ([127, 0, 0, 1], 1).into(),
            certificate: None,
        }
    }

    pub(super) fn opened(&mut self, request: u64, opened: &Result<SessionId, NotOpened>) {
        let number = usize::try_from(request).expect("invariant: the request is a player's number");
        let pending = self.players[number].pending.take();
        let (attempt, secret) = pending.expect("invariant: the base answers each request once");
        let base = self.located();
        let answer = Some(match opened {
            Ok(session) => LoginAnswer::Ticket(Ticket {
                session: *session,
                secret,
                base,
            }),
            Err(NotOpened::InUse) => LoginAnswer::Refused(LoginRefusal::LoggedIn),
            Err(_) => LoginAnswer::Refused(LoginRefusal::Busy),
        });
        self.give_core(number, ClientInput::LoginAnswered { attempt, answer });
    }
}
