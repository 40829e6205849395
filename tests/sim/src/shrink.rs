//! Shrinking a failing list to a minimal one: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002), bounded.

/// A list that still fails, and the effort to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The indices that were kept, ascending.
    pub kept: Vec<usize>,
    /// Number of lists tried.
    pub tries: usize,
    /// Whether no element can be removed; false if the tries ran out first.
    pub is_minimal: bool,
}

/// Removes elements of `0..count` while `fails` still returns true, in at most `most` tries. The full list is known to
/// fail.
pub fn shrink(count: usize, most: usize, mut fails: impl FnMut(&[usize]) -> bool) -> Shrunk {
    let mut kept: Vec<usize> = (0..count).collect();
    let mut tries = 0;
    // Often a failure needs no fault at all.
    if !kept.is_empty() && most > 0 {
        tries += 1;
        if fails(&[]) {
            kept.clear();
        }
    }
    let mut parts = 2;
    while !kept.is_empty() {
        parts = parts.min(kept.len());
        let mut smaller = None;
        for part in 0..parts {
            if tries >= most {
                return Shrunk {
                    kept,
                    tries,
                    is_minimal: false,
                };
            }
            let (from, until) = (part * kept.len() / parts, (part + 1) * kept.len() / parts);
            let rest = [&kept[..from], &kept[until..]].concat();
            // The empty list was already tried.
            if rest.is_empty() {
                continue;
            }
            tries += 1;
            if fails(&rest) {
                smaller = Some(rest);
                break;
            }
        }
        match smaller {
            Some(rest) => {
                kept = rest;
                parts = (parts - 1).max(2);
            }
            None if parts >= kept.len() => break,
            None => parts *= 2,
        }
    }
    Shrunk {
        kept,
        tries,
        is_minimal: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIES: usize = 2_000;

    #[test]
    fn only_required_elements_remain() {
        let mut dice = annals_def::split_mix(0x5111);
        for case in 0..300 {
            let count = 1 + (dice() % 60) as usize;
            let mut needed: Vec<usize> = (0..dice() % 5).map(|_| (dice() % count as u64) as usize).collect();
            needed.sort_unstable();
            needed.dedup();
            let shrunk = shrink(count, TRIES, |kept| needed.iter().all(|one| kept.contains(one)));
            assert_eq!(shrunk.kept, needed, "case {case}");
            assert!(shrunk.is_minimal, "case {case}");
        }
    }

    #[test]
    fn the_shrunk_list_is_minimal() {
        let mut dice = annals_def::split_mix(0x5112);
        for case in 0..300 {
            let count = 2 + (dice() % 30) as usize;
            let odd = dice();
            // Two overlapping subsets, of several elements each, that fail.
            let fails = |kept: &[usize]| {
                let has = |way: u64| {
                    (0..count)
                        .filter(|at| (odd >> way) >> (at % 11) & 1 == 1)
                        .take(4)
                        .all(|at| kept.contains(&at))
                };
                has(0) || has(16)
            };
            let shrunk = shrink(count, TRIES, fails);
            assert!(shrunk.is_minimal && fails(&shrunk.kept), "case {case}: {shrunk:?}");
            for left_out in &shrunk.kept {
                let rest: Vec<usize> = shrunk.kept.iter().copied().filter(|at| at != left_out).collect();
                assert!(!fails(&rest), "case {case}: {shrunk:?} without {left_out}");
            }
        }
    }

    #[test]
    fn attempts_are_bounded() {
        let mut tried = 0;
        let shrunk = shrink(1_000, 25, |kept| {
            tried += 1;
            kept.contains(&3) && kept.contains(&997)
        });
        assert_eq!((shrunk.tries, tried), (25, 25));
        assert!(
            !shrunk.is_minimal && shrunk.kept.contains(&3) && shrunk.kept.contains(&997),
            "{shrunk:?}"
        );
    }
}
