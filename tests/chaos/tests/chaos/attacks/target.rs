//! The realm under attack, as an attacker knows it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use annals::up::Realm;
use annals_client::Trust;
use annals_host::world::compile;
use annals_ids::{CallNumber, EntityId, Epoch, Hash, OwnerId, Part, SessionId};
use annals_wire::client::{
    Call, Credentials, Hello, HelloAnswer, LOGIN_ALPN, LoginAnswer, LoginRequest, PLAY_ALPN, Proof, Reads, Secret,
    Ticket, ToServer, protocol_hash,
};
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use tokio::time::timeout;

use super::quic::{config, first_frame, frame};

/// The address of all attackers; honest bots have another one.
pub(super) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The page that may connect.
pub(super) const PAGE: &str = "https://game.example";

/// Accounts of the attacker. A host may register ten.
pub(super) const ACCOUNTS: usize = 8;

/// Timeout for a log-in: passwords are hashed one after the other.
const PATIENCE: Duration = Duration::from_secs(30);

/// The realm under attack.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) login: SocketAddr,
    pub(super) base: SocketAddr,
    /// The base's owner.
    owner: OwnerId,
    schema: Hash,
    pub(super) trust: Trust,
    endpoint: Arc<Endpoint>,
    play: quinn::ClientConfig,
    log_in: quinn::ClientConfig,
}

/// A session of the attacker.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
    pub(super) entity: EntityId,
    /// The ticket that it used.
    pub(super) ticket: Ticket,
}

impl Target {
    /// What an attacker learns of a realm by logging in once.
    pub(super) async fn of(realm: &Realm) -> Self {
        let schema = compile(&realm.plan().build.world).expect("the sample compiles");
        let endpoint = Endpoint::client((ATTACKER, 0).into()).expect("an address of the loopback network");
        // On one machine all processes show the same certificate.
        let (login, certificate) = realm.login;
        let trust = Trust::Pinned(certificate);
        let mut target = Self {
            login,
            base: login,
            owner: OwnerId(0),
            schema: schema.client_fingerprint(),
            endpoint: Arc::new(endpoint),
            play: config(&trust, PLAY_ALPN),
            log_in: config(&trust, LOGIN_ALPN),
            trust,
        };
        // The last ones of the host: guesses at names register no more.
        for account in 0..ACCOUNTS {
            let ticket = target.ticket(account).await;
            let ticket = ticket.unwrap_or_else(|reason| panic!("account {account} has no ticket: {reason}"));
            (target.base, target.owner) = (ticket.base.address, ticket.base.owner);
        }
        target
    }

    pub(super) async fn connect_to_login(&self) -> Result<Connection, ConnectionError> {
        let connecting = self.endpoint.connect_with(self.log_in.clone(), self.login, "localhost");
        connecting.expect("the address is one of IPv4").await
    }

    pub(super) async fn connect_to_base(&self) -> Result<Connection, ConnectionError> {
        let connecting = self.endpoint.connect_with(self.play.clone(), self.base, "localhost");
        connecting.expect("the address is one of IPv4").await
    }

    /// The answer to a log-in.
    pub(super) async fn log_in(&self, name: &str, password: &str) -> Option<LoginAnswer> {
        let connection = self.connect_to_login().await.ok()?;
        let (mut send, mut receive) = connection.open_bi().await.ok()?;
        let mut body = Vec::new();
        let request = LoginRequest::LogIn {
            protocol: protocol_hash(),
            credentials: Credentials::password(name, password),
        };
        request.write(&mut body);
        send.write_all(&frame(&body)).await.ok()?;
        LoginAnswer::read(&first_frame(&mut receive).await?).ok()
    }

    /// A ticket for an account of the attacker, or why there is none.
    async fn ticket(&self, account: usize) -> Result<Ticket, String> {
        assert!(account < ACCOUNTS, "a host registers few accounts");
        let name = format!("mallory {account}");
        match timeout(PATIENCE, self.log_in(&name, "a password")).await {
            Ok(Some(LoginAnswer::Ticket(ticket))) => Ok(ticket),
            Ok(Some(answer)) => Err(format!("login answered {answer:?}")),
            Ok(None) => Err("login closed the connection without an answer".to_owned()),
            Err(_) => Err(format!("login did not answer within {} s", PATIENCE.as_secs())),
        }
    }

    /// The body of a hello for a session with this proof.
    pub(super) fn hello(&self, session: SessionId, proof: Proof) -> Vec<u8> {
        let hello = Hello {
            protocol: protocol_hash(),
            schema: self.schema,
            owner: self.owner,
            epoch: Epoch(1),
            session,
            proof,
            reads: Reads::Plain,
        };
        let mut body = Vec::new();
        hello.write(&mut body);
        body
    }

    /// Connects to the base, and sends this as the first bytes.
    pub(super) async fn open(&self, bytes: &[u8]) -> Option<(Connection, SendStream, RecvStream)> {
        let connection = self.connect_to_base().await.ok()?;
        let (mut send, receive) = connection.open_bi().await.ok()?;
        send.write_all(bytes).await.ok()?;
        Some((connection, send, receive))
    }

    /// Presents a proof for a session; returns the answer.
    pub(super) async fn present(&self, session: SessionId, proof: Proof) -> Option<HelloAnswer> {
        let hello = frame(&self.hello(session, proof));
        let (_connection, _send, mut receive) = self.open(&hello).await?;
        HelloAnswer::read(&first_frame(&mut receive).await?).ok()
    }

    /// Logs in and enters with an account. The error is the reason.
    pub(super) async fn enter(&self, account: usize) -> Result<Session, String> {
        let ticket = self.ticket(account).await?;
        let at = Self {
            base: ticket.base.address,
            owner: ticket.base.owner,
            ..self.clone()
        };
        let proof = Proof::Ticket(Secret(ticket.secret.0));
        let hello = frame(&at.hello(ticket.session, proof));
        let opened = at.open(&hello).await;
        let (connection, send, mut receive) = opened.ok_or("the base accepted no connection")?;
        let answer = first_frame(&mut receive)
            .await
            .ok_or("the base closed without an answer")?;
        match HelloAnswer::read(&answer) {
            Ok(HelloAnswer::Welcome(welcome)) => Ok(Session {
                connection,
                send,
                receive,
                entity: welcome.entity,
                ticket,
            }),
            answer => Err(format!("the base answered {answer:?}")),
        }
    }
}

/// A frame with a call of a base method.
pub(super) fn call(entity: EntityId, number: u64, message: Vec<u8>) -> Vec<u8> {
    let call = Call {
        entity,
        part: Part::Base,
        number: CallNumber(number),
        is_oldest: false,
        message,
    };
    let mut body = Vec::new();
    ToServer::Call(call).write(&mut body);
    frame(&body)
}
