//! Pace at which the clients of an owner that moves are sent the address of its next holder. All at once would occupy
//! the processors with handshakes, and so interrupt those that still play.

use std::time::Duration;

/// Clients that are notified per second.
const PER_SECOND: f64 = 150.0;

/// Maximum time over which clients are notified: a client gives up a connection that leads to nothing after 5 s.
const WITHIN: Duration = Duration::from_secs(3);

/// Time over which this many clients are notified.
pub(crate) fn notification_time(clients: u64) -> Duration {
    Duration::from_secs_f64(clients as f64 / PER_SECOND).min(WITHIN)
}

/// When each of `clients` clients is notified, evenly over this time.
pub(crate) fn moments(clients: usize, over: Duration) -> impl Iterator<Item = Duration> {
    let clients = u32::try_from(clients).unwrap_or(u32::MAX);
    let step = over / clients.max(1);
    (0..clients).map(move |nth| step * nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notifications(clients: usize) -> Vec<Duration> {
        moments(clients, notification_time(clients as u64)).collect()
    }

    #[test]
    fn clients_are_notified_at_the_pace_and_all_in_time() {
        for clients in [0, 1, 2, 149, 200, 450, 451, 8_192] {
            let notifications = notifications(clients);
            assert_eq!(notifications.len(), clients);
            assert!(notifications.is_sorted());
            assert!(notifications.iter().all(|at| *at < WITHIN), "{clients} clients");
            let in_first = notifications.iter().filter(|at| **at < Duration::from_secs(1)).count();
            let pace = if clients <= 450 { 150 } else { clients.div_ceil(3) };
            assert!(in_first <= pace + 1, "{in_first} of {clients} clients in a second");
        }
    }

    #[test]
    fn all_are_notified_at_once_where_there_is_no_time() {
        assert_eq!(moments(3, Duration::ZERO).collect::<Vec<_>>(), [Duration::ZERO; 3]);
    }
}
