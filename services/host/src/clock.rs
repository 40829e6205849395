//! The clock that cores measure by.

use annals_node::time::Mono;
use rustix::time::{ClockId, clock_gettime};

/// The time since the machine started, including the time it was suspended.
pub fn mono() -> Mono {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).expect("invariant: a machine has been up for no negative time");
    let nanoseconds = u64::try_from(now.tv_nsec).expect("invariant: a fraction of a second is not negative");
    Mono(seconds * 1_000_000 + nanoseconds / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_by_microseconds() {
        let earlier = mono();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let later = mono();
        assert!(
            later.since(earlier) >= std::time::Duration::from_millis(2),
            "{earlier} to {later}"
        );
    }
}
