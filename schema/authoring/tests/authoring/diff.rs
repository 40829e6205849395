//! The reported class of a change is right: data of a random schema is read under an edited schema.

mod living;
mod oracle;
mod renamed;
mod stored;
mod worlds;

use annals_authoring::{Audience, ChangeKind, Class, Diff, Subject, diff};
use annals_def::{Form, MethodKind, MigrationError, Value, check, decode_all, encode, split_mix};
use annals_ids::{Part, TypeId};
use living::held;
use renamed::property_now;
use worlds::{Pair, pair, sample};

/// Number of schema pairs tried.
const PAIRS: u64 = 600;

/// Maximum edits between the two schemas of a pair.
const EDITS: u64 = 6;

/// Values tried to find one that must exist according to a class.
const TRIES: usize = 400;

/// Runs a test on many pairs.
fn with_pairs(test: impl Fn(&str, &Pair, &Diff, &mut dyn FnMut() -> u64)) {
    for seed in 0..PAIRS {
        let mut dice = split_mix(seed);
        let pair = pair(EDITS, &mut dice);
        let found = diff(&pair.old, &pair.new, &pair.renames);
        let about = format!("seed {seed}\n{}", found.to_text());
        test(&about, &pair, &found, &mut dice);
    }
}

/// Maps old types to new ones without using the plan.
fn numbers<'a>(pair: &'a Pair, found: &'a Diff) -> impl Fn(TypeId) -> Option<TypeId> + 'a {
    move |old| {
        let name = &pair.old.entity_type(old)?.name;
        let renamed = found
            .changes
            .iter()
            .find_map(|change| match (&change.subject, &change.kind) {
                (Subject::Type(to), ChangeKind::TypeRenamed { from }) if from == name => Some(to),
                _ => None,
            });
        pair.new.type_named(renamed.unwrap_or(name)).map(|found| found.id)
    }
}

/// The most severe class among the changes for which `on` holds.
fn class_of(found: &Diff, audience: Audience, on: impl Fn(&Subject, &ChangeKind) -> bool) -> Class {
    let changes = found.changes.iter().filter(|change| on(&change.subject, &change.kind));
    let classes = changes.map(|change| change.effects.of(audience).class);
    classes.max().unwrap_or(Class::Unaffected)
}

#[test]
fn no_changes_are_reported_exactly_if_the_meaning_is_equal() {
    with_pairs(|about, pair, found, _| {
        let same = pair.old.fingerprint() == pair.new.fingerprint();
        assert_eq!(found.changes.is_empty(), same, "{about}");
        for audience in Audience::ALL {
            assert!(!same || found.verdict(audience) == Class::Unaffected, "{about}");
        }
    });
}

#[test]
fn a_call_in_flight_is_read_according_to_the_change_class() {
    with_pairs(|about, pair, found, dice| {
        let numbers = numbers(pair, found);
        for old in pair.old.types() {
            let Some(new) = numbers(old.id).and_then(|id| pair.new.entity_type(id)) else {
                continue;
            };
            for (kind, before, after) in [
                (MethodKind::Base, &old.base_methods, &new.base_methods),
                (MethodKind::Cell, &old.cell_methods, &new.cell_methods),
            ] {
                for method in before {
                    let class = class_of(found, Audience::Log, |subject, change| match subject {
                        Subject::Types => true,
                        Subject::Type(name) => {
                            *name == new.name
                                && matches!(change, ChangeKind::MethodsRenumbered { kind: of, .. } if *of == kind)
                        }
                        Subject::Method(on, of, name) => *on == new.name && *of == kind && *name == method.name,
                        _ => false,
                    });
                    let mut refused = false;
                    for _ in 0..TRIES {
                        let args: Vec<Value> = method.args.iter().map(|arg| sample(&arg.data_type, dice)).collect();
                        match found.plan.convert_call(old.id, kind, method.index, &args) {
                            Ok((id, converted)) => {
                                let to = &after[usize::from(id.0)];
                                assert_eq!(to.name, method.name, "{about}");
                                let fits = to.args.iter().zip(&converted);
                                assert!(
                                    fits.clone().all(|(to, arg)| check(&to.data_type, arg).is_ok()),
                                    "{about}"
                                );
                                if class <= Class::Compatible {
                                    assert_eq!((id, &converted), (method.index, &args), "{about}");
                                }
                            }
                            Err(MigrationError::MethodRemoved { .. }) => {
                                assert!(after.iter().all(|to| to.name != method.name), "{about}");
                            }
                            Err(_) => refused = true,
                        }
                        if class < Class::Breaking || refused {
                            break;
                        }
                    }
                    assert_eq!(refused, class == Class::Breaking, "{}: {about}", method.name);
                }
            }
        }
    });
}

#[test]
fn clients_are_refused_exactly_on_breaking_changes() {
    with_pairs(|about, pair, found, dice| {
        let same = pair.old.client_fingerprint() == pair.new.client_fingerprint();
        let class = found.verdict(Audience::Clients);
        assert_eq!(class == Class::Breaking, !same, "{about}");
        assert_ne!(class, Class::NeedsMigration, "{about}");
        if same {
            read_frames(about, pair, dice);
        }
    });
}

/// A client of the old schema reads what a realm of the new schema sends as the same values.
fn read_frames(about: &str, pair: &Pair, dice: &mut dyn FnMut() -> u64) {
    for new in pair
        .new
        .types()
        .iter()
        .filter(|new| new.parts.client && new.client_type.is_none())
    {
        let old = pair.old.entity_type(new.id).expect("the same number");
        assert_eq!(old.name, new.name, "{about}");
        assert_eq!(old.client_properties().len(), new.client_properties().len(), "{about}");
        for (at, id) in new.client_properties().iter().enumerate() {
            let sent = new.property(*id).expect("its own");
            let known = old.property(old.client_properties()[at]).expect("its own");
            assert_eq!((&known.name, &known.default), (&sent.name, &sent.default), "{about}");
            let value = sample(&sent.data_type, dice);
            let mut bytes = Vec::new();
            encode(&sent.data_type, &value, Form::Whole, &mut bytes).expect("it fits");
            assert_eq!(decode_all(&known.data_type, Form::Whole, &bytes), Ok(value), "{about}");
        }
        for (ids, known, sent, before) in [
            (
                new.client_method_ids(),
                &old.client_methods,
                &new.client_methods,
                old.client_method_ids(),
            ),
            (
                new.exposed_base_methods(),
                &old.base_methods,
                &new.base_methods,
                old.exposed_base_methods(),
            ),
            (
                new.exposed_cell_methods(),
                &old.cell_methods,
                &new.cell_methods,
                old.exposed_cell_methods(),
            ),
        ] {
            assert_eq!(ids.len(), before.len(), "{about}");
            for (now, then) in ids.iter().zip(before) {
                let (now, then) = (&sent[usize::from(now.0)], &known[usize::from(then.0)]);
                assert_eq!(now.name, then.name, "{about}");
                let sizes = [now, then].map(annals_def::Method::stream_size);
                assert_eq!(sizes[0], sizes[1], "{about}");
            }
        }
    }
}

#[test]
fn processes_reported_compatible_exchange_equal_messages() {
    with_pairs(|about, pair, found, _| {
        let effects = found.changes.iter().map(|change| &change.effects.peers);
        assert!(
            effects.clone().all(|effect| effect.class == Class::NeedsMigration),
            "{about}"
        );
        if effects
            .clone()
            .any(|effect| !effect.reason.starts_with("messages stay the same"))
        {
            return;
        }
        assert_eq!(pair.old.types().len(), pair.new.types().len(), "{about}");
        for (old, new) in pair.old.types().iter().zip(pair.new.types()) {
            for part in [Part::Base, Part::Cell] {
                let before = held(old, part);
                let after = held(new, part);
                assert_eq!(before.len(), after.len(), "{about}");
                for (from, to) in before.iter().zip(after) {
                    assert_eq!(from.index, to.index, "{about}");
                    assert_eq!(from.data_type.stream_size(), to.data_type.stream_size(), "{about}");
                    assert_eq!(from.distribution.to_ghosts(), to.distribution.to_ghosts(), "{about}");
                }
            }
            for (from, to) in [
                (&old.base_methods, &new.base_methods),
                (&old.cell_methods, &new.cell_methods),
                (&old.client_methods, &new.client_methods),
            ] {
                let sizes = |methods: &[annals_def::Method]| -> Vec<_> {
                    methods
                        .iter()
                        .map(|method| (method.args.len(), method.stream_size()))
                        .collect()
                };
                assert_eq!(sizes(from), sizes(to), "{about}");
            }
        }
    });
}
