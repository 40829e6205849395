//! Handling of what has arrived, before outputs are sent: what leaves together shares packets.

/// Size of a burst, in messages and inputs: a holder that has more to handle sends outputs in between.
const BURST: usize = 64;

/// Handles `first` and what has arrived after it, until the sizes that `handle` returns reach [`BURST`]. `arrived` takes
/// an item only when it will be handled, so that the rest stays in its queue.
pub(super) fn handle_burst<T>(first: T, mut arrived: impl FnMut() -> Option<T>, mut handle: impl FnMut(T) -> usize) {
    let mut handled = handle(first);
    while handled < BURST
        && let Some(next) = arrived()
    {
        handled += handle(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn bursts_end_at_their_size_and_lose_nothing() {
        for size in [1, 3, BURST - 1, BURST, 2 * BURST] {
            let sent: Vec<usize> = (0..5 * BURST).collect();
            let mut queue: VecDeque<usize> = sent.iter().copied().collect();
            let (mut handled, mut most) = (Vec::new(), 0);
            while let Some(first) = queue.pop_front() {
                let before = handled.len();
                handle_burst(
                    first,
                    || queue.pop_front(),
                    |item| {
                        handled.push(item);
                        size
                    },
                );
                most = most.max(handled.len() - before);
            }
            assert_eq!(handled, sent, "items of size {size}");
            assert_eq!(most, BURST.div_ceil(size), "items of size {size}");
        }
    }
}
