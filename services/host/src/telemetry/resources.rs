//! What this process uses of its machine, as Linux reports it.

use std::{fs, time::Duration};

/// Unit of the times in `/proc`: the kernel's interface has always had a hundredth of a second.
const TICK: Duration = Duration::from_millis(10);

/// Resources in use.
pub(super) struct Used {
    /// Time of the processors, in total.
    pub(super) processor: Duration,
    /// Resident memory, bytes.
    pub(super) memory: i64,
}

/// Reads them; `None` where there is no such report.
pub(super) fn used() -> Option<Used> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(Used {
        processor: processor(&stat)?,
        memory: memory(&status)?,
    })
}

/// User and system time: the 14th and 15th field. The second is the program's name in brackets, and may have spaces.
fn processor(stat: &str) -> Option<Duration> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (next()? + next()?))
}

fn memory(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_name_of_the_program() {
        let stat = "7 (an (odd) name) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(processor(stat), Some(Duration::from_secs(2)));
        assert_eq!(processor("7"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(used().is_some_and(|used| used.memory > 1 << 20));
    }
}
