//! Log-in sessions of this process.

use std::{collections::BTreeMap, time::Duration};

use annals_ids::Hash;
use annals_node::time::Mono;
use sha2::{Digest, Sha256};

use crate::people::Person;

/// Idle time after which a session expires.
pub const IDLE: Duration = Duration::from_secs(30 * 60);

/// Age at which any session expires: a working day.
pub const AGE: Duration = Duration::from_secs(12 * 3600);

/// Maximum sessions. Beyond that the session that was idle longest is evicted.
pub const SESSIONS: usize = 1_000;

/// Characters of a token.
pub(crate) const TOKEN_CHARS: usize = 64;

/// A secret that a browser stores.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// A session of a person.
#[derive(Clone, Debug)]
pub struct Session {
    /// The person, as of the log-in.
    pub person: Person,
    /// Token that forms of this session contain, so that other sites cannot send one.
    pub form: String,
    began: Mono,
    seen: Mono,
}

/// All sessions, by a hash of their tokens: the duration of a comparison reveals nothing about a token.
#[derive(Default)]
pub struct Sessions {
    sessions: BTreeMap<Hash, Session>,
}

impl Token {
    /// Encodes random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Hash(random).to_string())
    }

    /// Text for a cookie or a form.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Hash of a token's text, under which it is kept: the duration of a search for it reveals nothing.
    pub(crate) fn key(text: &str) -> Hash {
        Hash(Sha256::digest(text.as_bytes()).into())
    }
}

/// Compares two texts by their hashes.
#[must_use]
pub fn same(one: &str, other: &str) -> bool {
    Token::key(one) == Token::key(other)
}

impl Sessions {
    /// Creates a session.
    pub fn begin(&mut self, now: Mono, person: Person, (token, form): (&Token, &Token)) {
        self.sessions.retain(|_, session| session.lives(now));
        while self.sessions.len() >= SESSIONS {
            let idle = self.sessions.iter().min_by_key(|(_, session)| session.seen);
            let Some(idle) = idle.map(|(key, _)| *key) else { break };
            self.sessions.remove(&idle);
        }
        let session = Session {
            person,
            form: form.text().to_owned(),
            began: now,
            seen: now,
        };
        self.sessions.insert(Token::key(token.text()), session);
    }

    /// Looks up the session of a token, and marks it as used.
    pub fn find(&mut self, now: Mono, token: &str) -> Option<Session> {
        let session = self.sessions.get_mut(&Token::key(token))?;
        if !session.lives(now) {
            self.sessions.remove(&Token::key(token));
            return None;
        }
        session.seen = now;
        Some(session.clone())
    }

    /// Removes a session.
    pub fn end(&mut self, token: &str) {
        self.sessions.remove(&Token::key(token));
    }
}

impl Session {
    fn lives(&self, now: Mono) -> bool {
        now.since(self.seen) < IDLE && now.since(self.began) < AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::{People, Role};

    fn iris() -> Person {
        let mut people = People::default();
        people.add("iris", Role::Auditor, "a good password").expect("new");
        people.named("iris").expect("added").clone()
    }

    fn tokens(number: u64) -> (Token, Token) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        (Token::new(bytes), Token::new([7; 32]))
    }

    #[test]
    fn a_session_ends_when_idle_or_at_its_maximum_age() {
        let mut sessions = Sessions::default();
        let (token, form) = tokens(1);
        let begin = Mono(5_000_000);
        sessions.begin(begin, iris(), (&token, &form));
        let mut now = begin;
        while now.since(begin) + IDLE / 2 < AGE {
            now = now.after(IDLE / 2);
            assert!(sessions.find(now, token.text()).is_some());
        }
        assert!(
            sessions.find(now.after(IDLE / 2), token.text()).is_none(),
            "maximum age reached"
        );
        sessions.begin(begin, iris(), (&token, &form));
        assert!(sessions.find(begin.after(IDLE), token.text()).is_none(), "idle timeout");
        sessions.begin(begin, iris(), (&token, &form));
        sessions.end(token.text());
        assert!(sessions.find(begin, token.text()).is_none(), "it was ended");
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (mut sessions, iris) = (Sessions::default(), iris());
        for number in 0..SESSIONS as u64 + 3 {
            let (token, form) = tokens(number);
            sessions.begin(Mono(number), iris.clone(), (&token, &form));
        }
        let now = Mono(SESSIONS as u64 + 3);
        assert!(
            sessions.find(now, tokens(2).0.text()).is_none(),
            "the longest idle sessions have ended"
        );
        assert!(sessions.find(now, tokens(3).0.text()).is_some());
    }
}
