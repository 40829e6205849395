//! How long the entities of an owner stand still when it is handed over, by the messages of the processes' logs.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use annals_ids::OwnerId;

/// The message of the process that is drained, before its last batch of the owner.
const HANDING: &str = "handing the owner over";

/// The message of the next process, when the owner's entities go on.
const TOOK: &str = "took over the owner";

/// The hand-overs of a realm's processes, by their service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HandOvers(BTreeMap<String, Vec<Duration>>);

impl HandOvers {
    /// Reads the logs of a realm's processes, `SERVICE.log` and `SERVICE-NUMBER.log` in a folder.
    ///
    /// # Errors
    /// When the folder or a log cannot be read.
    pub(crate) fn read(logs: &Path) -> io::Result<Self> {
        let mut messages = Vec::new();
        for file in fs::read_dir(logs)? {
            let path = file?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let service = name.split('-').next().unwrap_or_default().to_owned();
            let text = fs::read(&path)?;
            let text = String::from_utf8_lossy(&text);
            messages.extend(text.lines().filter_map(|line| message(&service, line)));
        }
        Ok(Self::of(messages))
    }

    fn of(mut messages: Vec<Message>) -> Self {
        messages.sort_by_key(|message| message.at);
        let mut under_way = BTreeMap::new();
        let mut found: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for Message { at, owner, handing } in messages {
            match handing {
                Some(service) => drop(under_way.insert(owner, (service, at))),
                None => {
                    if let Some((service, began)) = under_way.remove(&owner) {
                        let took = at.duration_since(began).unwrap_or_default();
                        found.entry(service).or_default().push(took);
                    }
                }
            }
        }
        found.values_mut().for_each(|times| times.sort_unstable());
        Self(found)
    }
}

impl fmt::Display for HandOvers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (service, times) in &self.0 {
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_millis();
            writeln!(
                f,
                "  entities of a {service} stood still at {} hand-overs: p50 {} ms, p99 {} ms, max {} ms",
                times.len(),
                at(50),
                at(99),
                at(100)
            )?;
        }
        Ok(())
    }
}

/// A message about an owner.
#[derive(Debug)]
struct Message {
    at: SystemTime,
    owner: OwnerId,
    /// The service of the process that hands it over; `None` if the process has taken it over.
    handing: Option<String>,
}

fn message(service: &str, line: &str) -> Option<Message> {
    let handing = match (line.contains(HANDING), line.contains(TOOK)) {
        (true, _) => Some(service.to_owned()),
        (_, true) => None,
        _ => return None,
    };
    let at = humantime::parse_rfc3339(line.split_whitespace().next()?).ok()?;
    let owner = line.split_whitespace().find_map(|word| word.strip_prefix("owner="))?;
    let owner = OwnerId(owner.parse().ok()?);
    Some(Message { at, owner, handing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hand_over_ends_when_another_process_has_the_owner() {
        let drained = "\
2026-11-28T03:43:11.425402Z  INFO annals_host::holder: took over the owner owner=1 epoch=1 entities=0
2026-11-28T03:50:00.000000Z  INFO annals_host::holder_set::moving: handing the owner over owner=1
2026-11-28T03:50:01.000000Z  INFO annals_host::holder_set::moving: handing the owner over owner=3
2026-11-28T03:50:02.000000Z  INFO annals_host::edge: something else owner=3";
        let next = "\
2026-11-28T03:50:00.034000Z  INFO annals_host::holder: took over the owner owner=1 epoch=2 entities=203
2026-11-28T03:50:01.050000Z  INFO annals_host::holder: took over the owner owner=3 epoch=2 entities=9
a line that is cut 2026";
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("base-1.log"), drained).unwrap();
        fs::write(folder.path().join("base-2.log"), next).unwrap();
        let found = HandOvers::read(folder.path()).unwrap();
        assert_eq!(
            found.to_string(),
            "  entities of a base stood still at 2 hand-overs: p50 50 ms, p99 50 ms, max 50 ms\n"
        );
        let next_first = next.lines().chain(drained.lines());
        let messages = next_first.filter_map(|line| message("base", line)).collect();
        assert_eq!(HandOvers::of(messages), found, "logs are read in any order");
        assert_eq!(HandOvers::of(Vec::new()).to_string(), "");
    }
}
