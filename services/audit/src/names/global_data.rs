//! Global data and registrations in words.

use annals_event::{GlobalEntry, GlobalScope, Registration};

/// An entry in words.
pub(super) fn entry(scope: GlobalScope, entry: &GlobalEntry) -> String {
    let GlobalEntry { key, version, value } = entry;
    let data = match scope {
        GlobalScope::Realm => "global data",
        GlobalScope::Bases => "base data",
        GlobalScope::Cells => "cell data",
        GlobalScope::Registry => "global base",
    };
    let content = match value {
        Some(value) => format!("is {value}"),
        None => "is removed".to_owned(),
    };
    format!(
        "{data} {key:?} {content} (written by {} at {} ms)",
        version.by, version.stamp
    )
}

/// The result of a registration in words.
pub(super) fn registration(outcome: &Registration) -> String {
    match outcome {
        Registration::Done(entry) => format!("registered as global base {:?}", entry.key),
        Registration::Taken(by) => format!("not registered: entity {} has the key", by.entity),
        Registration::Refused(why) => format!("not registered: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use annals_def::Value;
    use annals_event::GlobalVersion;
    use annals_ids::{EntityId, Mailbox, OwnerId, Part, TypeId};

    use super::*;

    #[test]
    fn every_entry_is_described() {
        let said = |scope, value| {
            let (stamp, by) = (7, OwnerId(3));
            entry(
                scope,
                &GlobalEntry {
                    key: "season".to_owned(),
                    version: GlobalVersion { stamp, by },
                    value,
                },
            )
        };
        assert_eq!(
            said(GlobalScope::Realm, Some(Value::Int(4))),
            "global data \"season\" is 4 (written by 3 at 7 ms)"
        );
        assert_eq!(
            said(GlobalScope::Registry, None),
            "global base \"season\" is removed (written by 3 at 7 ms)"
        );
    }

    #[test]
    fn every_result_of_a_registration_is_described() {
        let by = Mailbox {
            entity: EntityId(9),
            home: OwnerId(3),
            type_id: TypeId(0),
            part: Part::Base,
        };
        assert_eq!(
            registration(&Registration::Taken(by)),
            "not registered: entity 9 has the key"
        );
        assert_eq!(
            registration(&Registration::Refused("full".to_owned())),
            "not registered: full"
        );
    }
}
