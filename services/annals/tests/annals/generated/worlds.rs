//! Worlds whose code must compile: published games, the sample, and artificial schemas.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use annals_authoring::codegen::Model;
use annals_def::{
    AccountView, Argument, DataType, Dice, Distribution, EntityType, Exposure, Field, FixedDict, Holding, Method,
    Property, PythonKind, Schema, Sequence, Tree, Value, generate, split_mix,
};
use annals_ids::{AssetKind, Slot};

/// Number of random schemas.
const ROLLED: u64 = 6;

/// Every world with the name of its module.
pub(crate) fn all() -> Vec<(String, Model)> {
    let mut worlds = vec![("sample".to_owned(), game(&repository().join("defs")))];
    match corpus() {
        Some(games) => worlds.extend(games.iter().map(|dir| (module_name(dir), game(dir)))),
        None => println!("SKIPPED: no games beside the repository, and ANNALS_CORPUS names no folder"),
    }
    worlds.push(("names".to_owned(), names()));
    worlds.push(("empty".to_owned(), model(vec![EntityType::new("Nothing")])));
    worlds.push(("nobody".to_owned(), model(Vec::new())));
    worlds.extend((0..ROLLED).map(|seed| (format!("rolled_{seed}"), rolled(seed))));
    worlds
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The published games, if they are available.
fn corpus() -> Option<Vec<PathBuf>> {
    let beside = repository().join("../shared/corpus");
    let folder = std::env::var("ANNALS_CORPUS").map_or(beside, PathBuf::from);
    let entries = folder.read_dir().ok()?;
    let mut games: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    games.retain(|path| path.is_dir());
    games.sort();
    Some(games)
}

fn module_name(dir: &Path) -> String {
    dir.file_name().expect("a folder").to_string_lossy().replace('-', "_")
}

fn game(dir: &Path) -> Model {
    Model::compile(&Tree::read(dir)).unwrap_or_else(|problems| panic!("{}: {problems:?}", dir.display()))
}

fn model(types: Vec<EntityType>) -> Model {
    Model {
        schema: Schema::new(types, Vec::new(), Vec::new()),
        aliases: BTreeMap::new(),
    }
}

/// Reserved words of Rust or TypeScript, and names that collide after conversion.
const NAMES: [&str; 39] = [
    "type",
    "self",
    "Self",
    "super",
    "crate",
    "match",
    "async",
    "own",
    "caller",
    "context",
    "game",
    "args",
    "method",
    "from",
    "wait",
    "of",
    "new",
    "create",
    "created",
    "timer",
    "set_x",
    "x",
    "X",
    "setX",
    "hp_max",
    "hpMax",
    "HPMax",
    "金币",
    "left.count",
    "left.Count",
    "constructor",
    "default",
    "function",
    "toString",
    "id",
    "position",
    "direction",
    "spaceID",
    "databaseID",
];

/// Types with the names of types in the generated code.
const TYPE_NAMES: [&str; 14] = [
    "Cell",
    "Base",
    "Value",
    "Vec",
    "Option",
    "Game",
    "Dispatcher",
    "typed",
    "node",
    "Node",
    "龙",
    "mod",
    "String",
    "Client",
];

/// Every name for everything that can have one, and a dictionary of all names.
fn names() -> Model {
    let fields = NAMES.iter().map(|name| Field::of(*name, DataType::UInt16)).collect();
    let dict = DataType::FixedDict(Arc::new(FixedDict::of(fields)));
    let optional = DataType::FixedDict(Arc::new(FixedDict {
        allow_none: true,
        ..FixedDict::of(vec![Field::of("value", dict.clone())])
    }));
    let types = [
        DataType::Unicode,
        DataType::Blob,
        dict.clone(),
        optional.clone(),
        DataType::Int8,
    ];
    let arguments = |count: usize| -> Vec<Argument> {
        let named = NAMES.iter().zip(types.iter().cycle()).take(count);
        named
            .map(|(name, data_type)| Argument::new(*name, data_type.clone()))
            .collect()
    };
    // One method has arguments of all names, and one as many return values.
    let method = |(at, name): (usize, &&str)| Method {
        returns: arguments(if at == 0 { NAMES.len() } else { at % 2 }),
        exposed: Exposure::OwnClient,
        ..Method::new(*name, arguments(if at == 1 { NAMES.len() } else { at % 3 }))
    };
    let of = |distribution: Distribution| {
        let property = move |(at, name): (usize, &&str)| {
            Property::new(format!("{name}{}", "_".repeat(at % 2)), types_at(at), distribution)
        };
        NAMES.iter().enumerate().map(property)
    };
    let entity_type = |name: &&str| {
        let mut made = EntityType::new(*name);
        if *name == TYPE_NAMES[0] {
            made.properties = of(Distribution::AllClients)
                .chain(of(Distribution::BaseAndClient))
                .collect();
            made.base_methods = NAMES.iter().enumerate().map(method).collect();
            made.cell_methods = NAMES.iter().enumerate().map(method).collect();
            let shown = |(at, name)| Method {
                returns: Vec::new(),
                exposed: Exposure::No,
                ..method((at, name))
            };
            made.client_methods = NAMES.iter().enumerate().map(shown).collect();
        }
        made
    };
    let schema = Schema::new(TYPE_NAMES.iter().map(entity_type).collect(), Vec::new(), Vec::new());
    let aliases = BTreeMap::from([("VALUE".to_owned(), dict), ("Value_Edit".to_owned(), optional)]);
    Model { schema, aliases }
}

fn types_at(at: usize) -> DataType {
    let simple = [DataType::Int8, DataType::Unicode, DataType::Vector3, DataType::Float64];
    let of = simple[at % simple.len()].clone();
    match at % 3 {
        0 => of,
        1 => DataType::Array(Arc::new(Sequence::of(of))),
        _ => DataType::Array(Arc::new(Sequence::sized(of, 40))),
    }
}

/// A random schema.
fn rolled(seed: u64) -> Model {
    let mut dice = split_mix(seed);
    let dice = &mut dice;
    let types = (0..3).map(|at| {
        let mut made = EntityType::new(format!("Thing{at}"));
        made.properties = (0..dice() % 12).map(|at| rolled_property(at, dice)).collect();
        made.base_methods = (0..dice() % 5).map(|at| rolled_method(at, dice)).collect();
        made.cell_methods = (0..dice() % 5).map(|at| rolled_method(at, dice)).collect();
        let shown = |at| Method {
            returns: Vec::new(),
            exposed: Exposure::No,
            ..rolled_method(at, dice)
        };
        made.client_methods = (0..4).map(shown).collect();
        made
    });
    model(types.collect())
}

fn rolled_property(at: u64, dice: &mut Dice<'_>) -> Property {
    let distributions = Distribution::ALL;
    if dice().is_multiple_of(6) {
        let shows = Holding::Units(AssetKind(1));
        let account = Some(AccountView { slot: Slot(0), shows });
        return Property {
            account,
            ..Property::new(format!("property{at}"), DataType::UInt64, Distribution::BaseAndClient)
        };
    }
    let data_type = rolled_type(5, dice);
    if dice().is_multiple_of(6) {
        let mut property = Property::new(format!("property{at}"), DataType::Blob, Distribution::Base);
        property.persistent = true;
        return property.sealed(data_type).expect("nothing stands against it");
    }
    let default = generate(&data_type, dice);
    Property {
        default,
        ..Property::new(
            format!("property{at}"),
            data_type,
            distributions[dice() as usize % distributions.len()],
        )
    }
}

fn rolled_method(at: u64, dice: &mut Dice<'_>) -> Method {
    let arguments = |dice: &mut Dice<'_>| -> Vec<Argument> {
        (0..dice() % 4)
            .map(|at| Argument::new(format!("arg{at}"), rolled_type(4, dice)))
            .collect()
    };
    let exposures = [Exposure::No, Exposure::OwnClient, Exposure::AllClients];
    Method {
        returns: arguments(dice),
        exposed: exposures[dice() as usize % exposures.len()],
        ..Method::new(format!("method{at}"), arguments(dice))
    }
}

fn rolled_type(depth: usize, dice: &mut Dice<'_>) -> DataType {
    let mut simple = DataType::SIMPLE.to_vec();
    simple.extend([
        DataType::Python(PythonKind::Any),
        DataType::UserType("module.instance".to_owned()),
    ]);
    if depth == 0 || dice().is_multiple_of(2) {
        return simple[dice() as usize % simple.len()].clone();
    }
    match dice() % 4 {
        0 => DataType::Array(Arc::new(rolled_sequence(depth, dice))),
        1 => DataType::Tuple(Arc::new(rolled_sequence(depth, dice))),
        _ => DataType::FixedDict(Arc::new(FixedDict {
            allow_none: dice().is_multiple_of(2),
            ..FixedDict::of((0..dice() % 5).map(|at| rolled_field(at, depth, dice)).collect())
        })),
    }
}

fn rolled_sequence(depth: usize, dice: &mut Dice<'_>) -> Sequence {
    let of = rolled_type(depth - 1, dice);
    let sizes = [None, None, Some(0), Some(1), Some(4), Some(33)];
    Sequence {
        size: sizes[dice() as usize % sizes.len()],
        element_default: generate(&of, dice),
        ..Sequence::of(of)
    }
}

fn rolled_field(at: u64, depth: usize, dice: &mut Dice<'_>) -> Field {
    let data_type = rolled_type(depth - 1, dice);
    // A declaration cannot give another default to a type that contains a mailbox.
    let has_mailbox = data_type.any(&mut |inner| *inner == DataType::Mailbox);
    let default: Value = if has_mailbox {
        data_type.default_value()
    } else {
        generate(&data_type, dice)
    };
    Field {
        default,
        ..Field::of(format!("field{at}"), data_type)
    }
}
