//! The calls of a bot and their arguments: every exposed method of any world, from its schema alone.

use annals_def::{DataType, Dice, EntityType, Exposure, Form, Method, Schema, Value, encode, generate};
use annals_ids::{MemberId, Part, TypeId};
use annals_wire::client::MAX_UPSTREAM_FRAME;

use super::{coverage::Coverage, report::Driven};

/// Things that players say.
const SPEECH: [&str; 8] = [
    "hello",
    "anybody for the north gate?",
    "buying seven hats",
    "brb",
    "who has seen the blacksmith?",
    "thank you!",
    "wait for me at the bridge",
    "龙 🐉 over there",
];

/// Methods with which players log off: called when a bot leaves, not before.
const FAREWELLS: [&str; 5] = ["logOff", "logoff", "logOut", "logout", "reqLogout"];

/// Methods with which players speak.
const SAYINGS: [&str; 2] = ["say", "chat"];

/// A method that answers its caller with the number in the call, and the client method of the answer.
const ECHOES: [(&str, &str); 2] = [("ping", "onPong"), ("echo", "onEcho")];

/// Retries for arguments that are too long for a frame.
const THROWS: usize = 8;

/// A planned call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned<'s> {
    pub(super) part: Part,
    pub(super) method: &'s Method,
    pub(super) args: Vec<Value>,
    /// Size of the arguments in bytes.
    pub(super) bytes: usize,
}

/// The exposed methods of one entity type, sorted by how a bot uses them.
#[derive(Clone, Debug)]
pub(super) struct Repertoire<'s> {
    /// Methods called on the bot's own entity, and the keys under which they are counted.
    own: Vec<(Part, &'s Method)>,
    own_counted: Vec<Driven>,
    /// Methods called on others.
    others: Vec<&'s Method>,
    others_counted: Vec<Driven>,
    farewell: Option<(Part, &'s Method)>,
    speech: Option<&'s Method>,
    /// The method that echoes, and the client method of the echo.
    echo: Option<(Part, &'s Method, MemberId)>,
}

impl<'s> Repertoire<'s> {
    /// The methods of a type; empty if there is no such type.
    pub(super) fn new(schema: &'s Schema, type_id: TypeId) -> Self {
        let entity_type = schema.entity_type(type_id);
        let exposed: Vec<(Part, &Method)> = entity_type.map(exposed).unwrap_or_default();
        let farewell = exposed
            .iter()
            .find(|(_, method)| FAREWELLS.contains(&method.name.as_str()))
            .copied();
        let speech = exposed.iter().find(|(part, method)| {
            let speaks = SAYINGS.contains(&method.name.as_str());
            speaks
                && *part == Part::Cell
                && matches!(method.args[..], [ref text] if text.data_type == DataType::Unicode)
        });
        let echo = entity_type.and_then(|entity_type| find_echo(entity_type, &exposed));
        let others: Vec<&Method> = exposed
            .iter()
            .filter(|(part, method)| *part == Part::Cell && method.exposed == Exposure::AllClients)
            .map(|(_, method)| *method)
            .collect();
        let own: Vec<(Part, &Method)> = exposed
            .iter()
            .copied()
            .filter(|&own| Some(own) != farewell)
            .filter(|own| echo.is_none_or(|(part, method, _)| *own != (part, method)))
            .collect();
        let counted = |part, method: &Method| Driven {
            entity_type: type_id,
            part,
            method: method.index,
        };
        Self {
            own_counted: own.iter().map(|(part, method)| counted(*part, method)).collect(),
            own,
            others_counted: others.iter().map(|method| counted(Part::Cell, method)).collect(),
            others,
            farewell,
            speech: speech.map(|(_, method)| *method),
            echo,
        }
    }

    /// The least called method of the bot's own entity, of whose parts it sees `seen`.
    pub(super) fn on_own(
        &self,
        coverage: &Coverage,
        seen: impl Fn(Part) -> bool,
        turn: usize,
        dice: &mut Dice<'_>,
    ) -> Option<Planned<'s>> {
        let seen: Vec<usize> = (0..self.own.len()).filter(|index| seen(self.own[*index].0)).collect();
        let counted: Vec<Driven> = seen.iter().map(|index| self.own_counted[*index]).collect();
        let (part, method) = self.own[seen[coverage.least_called(&counted, turn)?]];
        if Some(method) == self.speech && part == Part::Cell {
            return self.saying(dice);
        }
        planned(part, method, dice)
    }

    /// The methods that can be called on others of this type, as they are counted.
    pub(super) fn for_others(&self) -> &[Driven] {
        &self.others_counted
    }

    /// A call on another entity of this type: the method with this index in [`Self::for_others`].
    pub(super) fn on_other(&self, number: usize, dice: &mut Dice<'_>) -> Option<Planned<'s>> {
        planned(Part::Cell, self.others.get(number)?, dice)
    }

    /// A chat message to those nearby.
    pub(super) fn saying(&self, dice: &mut Dice<'_>) -> Option<Planned<'s>> {
        let text = SPEECH[dice() as usize % SPEECH.len()].to_owned();
        fixed(Part::Cell, self.speech?, vec![Value::Unicode(text)])
    }

    /// The call to make when the bot leaves.
    pub(super) fn farewell(&self, dice: &mut Dice<'_>) -> Option<Planned<'s>> {
        let (part, method) = self.farewell?;
        planned(part, method, dice)
    }

    /// A call that is echoed with this number.
    pub(super) fn echo(&self, number: u32) -> Option<Planned<'s>> {
        let (part, method, _) = self.echo?;
        fixed(part, method, vec![Value::UInt(number.into())])
    }

    /// The number of an echo, if this call of a client method is one.
    pub(super) fn echoed(&self, method: MemberId, args: &[Value]) -> Option<u32> {
        match (self.echo, args) {
            (Some((_, _, reply)), [Value::UInt(number)]) if reply == method => u32::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// The exposed methods of a type that can be called, those of the base first. An entity without a base part never has a
/// client of its own.
pub(super) fn exposed(entity_type: &EntityType) -> Vec<(Part, &Method)> {
    let base = entity_type.base_methods.iter().map(|method| (Part::Base, method));
    let cell = entity_type.cell_methods.iter().map(|method| (Part::Cell, method));
    base.chain(cell)
        .filter(|(_, method)| match method.exposed {
            Exposure::No => false,
            Exposure::OwnClient => entity_type.parts.base,
            Exposure::AllClients => true,
        })
        .collect()
}

fn find_echo<'s>(entity_type: &'s EntityType, exposed: &[(Part, &'s Method)]) -> Option<(Part, &'s Method, MemberId)> {
    let takes_number = |method: &Method| matches!(&method.args[..], [arg] if arg.data_type == DataType::UInt32);
    ECHOES.iter().find_map(|(call, reply)| {
        let (part, method) = exposed
            .iter()
            .find(|(_, method)| method.name == *call && takes_number(method))?;
        let reply = entity_type
            .client_method_named(reply)
            .filter(|reply| takes_number(reply))?;
        Some((*part, *method, reply.index))
    })
}

/// A call with arguments that fit a frame; `None` if none were found.
fn planned<'s>(part: Part, method: &'s Method, dice: &mut Dice<'_>) -> Option<Planned<'s>> {
    (0..THROWS).find_map(|_| {
        let args = method.args.iter().map(|arg| generate(&arg.data_type, dice)).collect();
        fixed(part, method, args)
    })
}

fn fixed(part: Part, method: &Method, args: Vec<Value>) -> Option<Planned<'_>> {
    let mut encoded = Vec::new();
    for (arg, value) in method.args.iter().zip(&args) {
        encode(&arg.data_type, value, Form::Shown, &mut encoded).ok()?;
    }
    let bytes = encoded.len();
    (bytes < MAX_UPSTREAM_FRAME / 2).then_some(Planned {
        part,
        method,
        args,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        path::{Path, PathBuf},
    };

    use annals_def::{check_dir, split_mix};

    use super::*;

    /// The sample world, and the games beside the repository or in the folder that `ANNALS_CORPUS` names.
    fn worlds() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let corpus = std::env::var("ANNALS_CORPUS").map_or(root.join("../shared/corpus"), PathBuf::from);
        let mut worlds = vec![root.join("defs")];
        match corpus.read_dir() {
            Ok(games) => {
                let games = games.map(|game| game.unwrap().path());
                worlds.extend(games.filter(|game| game.is_dir()));
            }
            Err(_) => println!("games skipped: none beside the repository, and ANNALS_CORPUS names no folder"),
        }
        worlds
    }

    /// The calls that one bot needs to make each once, with their numbers, from 1.
    fn calls<'s>(repertoire: &Repertoire<'s>, dice: &mut Dice<'_>) -> Vec<(Planned<'s>, usize)> {
        let coverage = Coverage::default();
        let mut made = Vec::new();
        // Some turns are for others.
        let turns = (0..).filter(|turn| !crate::bots::session::is_for_others(*turn));
        for turn in turns.take(repertoire.own.len()) {
            let call = repertoire
                .on_own(&coverage, |_| true, turn, dice)
                .expect("arguments are found");
            let index = repertoire
                .own
                .iter()
                .position(|own| *own == (call.part, call.method))
                .expect("it is its own");
            coverage.count(repertoire.own_counted[index]);
            made.push((call, made.len() + 1));
        }
        made
    }

    /// Regression: a bot that used every eighth turn for others never called the eighth of eight methods.
    #[test]
    fn all_methods_of_a_large_type_are_included() {
        for count in 1..=64_usize {
            let mut found = EntityType::new("Avatar");
            found.parts.base = true;
            for number in 0..count {
                let mut method = Method::new(format!("m{number}"), Vec::new());
                method.index = MemberId(u16::try_from(number).unwrap());
                method.exposed = Exposure::OwnClient;
                found.base_methods.push(method);
            }
            let schema = Schema::new(vec![found], Vec::new(), Vec::new());
            let repertoire = Repertoire::new(&schema, schema.types()[0].id);
            let made = calls(&repertoire, &mut split_mix(1));
            let driven: BTreeSet<&str> = made.iter().map(|(call, _)| call.method.name.as_str()).collect();
            assert_eq!(driven.len(), count);
        }
    }

    #[test]
    fn every_exposed_method_of_every_world_is_called_with_valid_arguments() {
        for world in worlds() {
            let (schema, _) = check_dir(&world);
            let schema = schema.expect("the world compiles");
            for entity_type in schema.types() {
                let repertoire = Repertoire::new(&schema, entity_type.id);
                let mut dice = split_mix(u64::from(entity_type.id.0));
                let mut driven = BTreeSet::new();
                let mut note = |call: Planned<'_>| {
                    driven.insert((call.part, call.method.name.clone()));
                };
                for (call, number) in calls(&repertoire, &mut dice) {
                    assert!(
                        number <= repertoire.own.len(),
                        "no call is made twice before all were made"
                    );
                    note(call);
                }
                repertoire.farewell(&mut dice).into_iter().for_each(&mut note);
                repertoire.echo(7).into_iter().for_each(&mut note);
                let wanted: BTreeSet<(Part, String)> = exposed(entity_type)
                    .into_iter()
                    .map(|(part, method)| (part, method.name.clone()))
                    .collect();
                assert_eq!(driven, wanted, "{} in {}", entity_type.name, world.display());
            }
        }
    }

    #[test]
    fn sample_methods_get_sample_arguments() {
        let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
        let schema = check_dir(&defs).0.expect("the sample compiles");
        let avatar = schema.type_named("Avatar").expect("the sample has avatars");
        let repertoire = Repertoire::new(&schema, avatar.id);
        let mut dice = split_mix(3);

        let said = repertoire.saying(&mut dice).expect("avatars speak");
        assert_eq!((said.part, said.method.name.as_str()), (Part::Cell, "say"));
        assert!(matches!(&said.args[..], [Value::Unicode(text)] if SPEECH.contains(&text.as_str())));

        let ping = repertoire.echo(41).expect("avatars echo");
        assert_eq!((ping.part, ping.method.name.as_str()), (Part::Base, "ping"));
        let pong = avatar.client_method_named("onPong").expect("which comes back").index;
        assert_eq!(repertoire.echoed(pong, &ping.args), Some(41));
        assert_eq!(repertoire.echoed(MemberId(pong.0 + 1), &ping.args), None);

        let made = calls(&repertoire, &mut split_mix(1));
        let turns: BTreeSet<String> = made.iter().map(|(call, _)| call.method.name.clone()).collect();
        assert!(!turns.contains("logOff") && !turns.contains("ping"), "{turns:?}");
        assert_eq!(
            repertoire.farewell(&mut dice).expect("avatars go").method.name,
            "logOff"
        );
        assert_eq!(
            repertoire.on_other(0, &mut dice).expect("avatars wave").method.exposed,
            Exposure::AllClients
        );
    }

    #[test]
    fn a_type_without_exposed_methods_is_not_called() {
        let schema = Schema::new(vec![EntityType::new("Stone")], Vec::new(), Vec::new());
        let repertoire = Repertoire::new(&schema, TypeId(0));
        let mut dice = split_mix(1);
        let coverage = Coverage::default();
        assert_eq!(repertoire.on_own(&coverage, |_| true, 5, &mut dice), None);
        assert_eq!(repertoire.on_other(5, &mut dice), None);
        let none = Repertoire::new(&schema, TypeId(9));
        assert_eq!(none.on_own(&coverage, |_| true, 0, &mut dice), None);
    }
}
