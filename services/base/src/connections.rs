//! The connections of a base process, and which of them receive the announcement that their owner moves.

use std::collections::BTreeMap;

use annals_ids::OwnerId;
use annals_node::ConnectionId;

/// The connections over which clients have sent a hello.
///
/// A client reads the first frame as the answer to its hello. So an announcement of a move is sent after the welcome: at
/// once to the connections that are welcomed, and to the others when they are.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    open: BTreeMap<ConnectionId, Open>,
    /// The announcement for the clients of each owner that is about to move.
    moving: BTreeMap<OwnerId, Vec<u8>>,
}

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Open {
    owner: OwnerId,
    is_welcomed: bool,
}

impl Connections {
    /// Adds a connection, whose hello names this owner. Another hello over the same connection names the owner of what
    /// follows.
    pub fn greet(&mut self, connection: ConnectionId, owner: OwnerId) {
        let known = self.open.entry(connection).or_insert(Open {
            owner,
            is_welcomed: false,
        });
        known.owner = owner;
    }

    /// The owner of a connection's session.
    #[must_use]
    pub fn owner(&self, connection: ConnectionId) -> Option<OwnerId> {
        self.open.get(&connection).map(|open| open.owner)
    }

    /// Removes a connection; returns the owner of its session.
    pub fn close(&mut self, connection: ConnectionId) -> Option<OwnerId> {
        self.open.remove(&connection).map(|open| open.owner)
    }

    /// The connections to an owner.
    pub fn of(&self, owner: OwnerId) -> impl Iterator<Item = ConnectionId> {
        let of_it = self.open.iter().filter(move |(_, open)| open.owner == owner);
        of_it.map(|(connection, _)| *connection)
    }

    /// A frame of the owner was sent over a connection. Returns an announcement that is to follow it.
    pub fn sent(&mut self, connection: ConnectionId) -> Option<&[u8]> {
        let open = self.open.get_mut(&connection)?;
        let is_first = !std::mem::replace(&mut open.is_welcomed, true);
        let announcement = self.moving.get(&open.owner).filter(|_| is_first)?;
        Some(announcement)
    }

    /// Another process is about to hold an owner. Returns the connections to which the announcement is sent now.
    pub fn announce(&mut self, owner: OwnerId, announcement: Vec<u8>) -> Vec<ConnectionId> {
        self.moving.insert(owner, announcement);
        let welcomed = self
            .open
            .iter()
            .filter(|(_, open)| open.owner == owner && open.is_welcomed);
        welcomed.map(|(connection, _)| *connection).collect()
    }

    /// This process begins or ceases to hold an owner, or keeps it after all: what was announced is past.
    pub fn forget_move(&mut self, owner: OwnerId) {
        self.moving.remove(&owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: OwnerId = OwnerId(7);

    #[test]
    fn a_move_is_announced_after_the_welcome_and_once() {
        let mut connections = Connections::default();
        let (welcomed, greeted, other) = (ConnectionId(1), ConnectionId(2), ConnectionId(3));
        connections.greet(welcomed, OWNER);
        assert_eq!(connections.sent(welcomed), None, "nothing moves yet");
        connections.greet(greeted, OWNER);
        connections.greet(other, OwnerId(8));
        assert_eq!(connections.announce(OWNER, vec![9]), [welcomed]);
        assert_eq!(connections.sent(greeted), Some(&[9][..]), "after its welcome");
        assert_eq!(connections.sent(greeted), None);
        assert_eq!(connections.sent(other), None);
        connections.forget_move(OWNER);
        connections.greet(ConnectionId(4), OWNER);
        assert_eq!(connections.sent(ConnectionId(4)), None, "the move is past");
    }

    #[test]
    fn closed_connections_are_not_notified() {
        let mut connections = Connections::default();
        let connection = ConnectionId(1);
        connections.greet(connection, OWNER);
        connections.sent(connection);
        assert_eq!(connections.of(OWNER).collect::<Vec<_>>(), [connection]);
        assert_eq!(connections.close(connection), Some(OWNER));
        assert_eq!(connections.announce(OWNER, vec![9]), []);
        assert_eq!(connections.sent(connection), None);
        assert_eq!(connections.owner(connection), None);
    }
}
