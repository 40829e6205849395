//! Starting again what has ended although nobody asked it to.

use std::time::{Duration, Instant};

use super::{Realm, UpError};

/// Whatever ends more often than that within [`WITHIN`] is not started again.
const MOST: usize = 5;

const WITHIN: Duration = Duration::from_secs(60);

/// When something was started again.
#[derive(Debug, Default)]
pub(super) struct Restarts(Vec<Instant>);

impl Restarts {
    /// Whether one more is worth it; it is counted.
    fn allow(&mut self, now: Instant) -> bool {
        self.0.retain(|at| now.duration_since(*at) < WITHIN);
        self.0.push(now);
        self.0.len() <= MOST
    }
}

impl Realm {
    /// Starts again what has ended, and says what that was, a line each.
    ///
    /// # Errors
    /// When something ends again and again, with the end of its log; when it cannot be started.
    pub async fn mend(&mut self) -> Result<Vec<String>, UpError> {
        let mut mended = Vec::new();
        if let Err(ended) = self.nats.check() {
            if !self.nats_restarts.allow(Instant::now()) {
                return Err(ended.into());
            }
            let restarted = self.nats.restart_ended().await?;
            mended.extend((0..restarted).map(|_| "the nats-server ended, and was started again".to_owned()));
        }
        for index in 0..self.members.len() {
            let Some(ended) = self.how_ended(index)? else { continue };
            if !self.members[index].restarts.allow(Instant::now()) {
                return Err(ended);
            }
            if let UpError::Ended { service, status, .. } = &ended {
                mended.push(format!("{service} ended with {status}, and was started again"));
            }
            let name = self.members[index].name.clone();
            self.start_again(&name)?;
        }
        Ok(mended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_again_and_again_is_left_alone() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut restarts = Restarts::default();
        assert!((0..5).all(|nth| restarts.allow(at(nth * 5))));
        assert!(!restarts.allow(at(30)));
        assert!(restarts.allow(at(85)), "those are long ago");
    }
}
