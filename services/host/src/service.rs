//! How a service begins: settings, log output, the world's definitions; then the service itself until it ends. The binaries
//! are one line each.

use std::process::ExitCode;
use std::sync::Arc;

use annals_def::Schema;
use annals_director::{Desired, SpacePlan};
use annals_ids::SpaceId;
use annals_node::{Behaviour, typed::OtherSchema, writer::Durability};
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::{
    base, cell,
    config::{Acknowledged, Config, FIRST, Flags, Service, SpaceSetting, Spaces},
    db,
    director::{self, Plan},
    front::Front,
    login,
    process::Settings,
    signer,
    telemetry::{self, Chain},
    world::compile,
};

/// The space that every realm begins with.
pub const FIRST_SPACE: SpaceId = SpaceId(FIRST);

/// The flags with which a service was started. A command line that is wrong, or asks for help, ends the process.
fn flags(service: Service) -> Flags {
    Flags::of(&matches(&Flags::command(service)))
}

fn matches(command: &Command) -> ArgMatches {
    // The program's own name is in its help: a game's binaries are called as they like.
    Flags::matched(command, std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// The director's flags: those of settings, and for how many processes a start waits.
fn director_flags() -> (Flags, Desired) {
    let count = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("COUNT")
            .value_parser(value_parser!(usize))
            .default_value("1")
            .help(help)
    };
    let command = Flags::command(Service::Director)
        .arg(count("bases", "How many base processes a start waits for"))
        .arg(count(
            "cells",
            "How many cell processes a start waits for; spaces that do not say how many cells they have share so many",
        ));
    let matches = matches(&command);
    let given = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or(1);
    let desired = Desired {
        bases: given("bases"),
        cells: given("cells"),
    };
    (Flags::of(&matches), desired)
}

/// What every service has once it has begun.
struct Begun {
    config: Config,
    settings: Settings,
    schema: Arc<Schema>,
}

/// The director's process.
pub fn director() -> ExitCode {
    let (flags, desired) = director_flags();
    run(&flags, async |begun| {
        let spaces = plans(&begun.config.spaces, desired.cells);
        let plan = Plan { spaces, desired };
        director::run(&begun.settings, &begun.schema, &plan).await
    })
}

/// What the director makes of the realm's spaces, where so many cells are there. Those that do not say how many they are to
/// have share them.
fn plans(spaces: &Spaces, cells: usize) -> Vec<SpacePlan> {
    let share = (cells / spaces.0.len().max(1)).max(1);
    let plan = |setting: &SpaceSetting| SpacePlan {
        space: SpaceId(setting.space),
        extent: setting.extent,
        aoi_radius: setting.radius,
        aoi_hysteresis: setting.hysteresis,
        horizon: setting.horizon,
        cells: setting.cells.unwrap_or(share),
    };
    spaces.0.iter().map(plan).collect()
}

/// db's process.
pub fn db() -> ExitCode {
    let flags = flags(Service::Db);
    run(&flags, async |begun| {
        db::run(&begun.settings, &begun.schema, &begun.config).await
    })
}

/// The login service's process.
pub fn login() -> ExitCode {
    let flags = flags(Service::Login);
    run(&flags, async |begun| {
        let front = Front::of(&begun.config);
        let duplicate = begun.config.duplicate_login;
        login::run(&begun.settings, Arc::clone(&begun.schema), &front, duplicate).await
    })
}

/// The signer's process. It has no use for the world's definitions.
pub fn signer() -> ExitCode {
    let flags = flags(Service::Signer);
    match prepare(&flags) {
        Ok((config, settings)) => run_service(async || signer::run(&settings, &config).await),
        Err(text) => cannot_begin(&text),
    }
}

/// Makes a game for the world's definitions, or says that it was generated from others. Not a type parameter: the services
/// would be compiled once more in each program that runs one.
pub type Game = fn(&Arc<Schema>) -> Result<Arc<dyn Behaviour>, OtherSchema>;

/// A cell process of the game that `game` gives for the world's definitions.
pub fn cell(game: Game) -> ExitCode {
    let flags = flags(Service::Cell);
    run_game(&flags, game, async |begun, game| {
        let schema = Arc::clone(&begun.schema);
        let Config { client_bandwidth, .. } = begun.config;
        cell::run(
            &begun.settings,
            schema,
            game,
            durability(&begun.config),
            client_bandwidth,
        )
        .await
    })
}

/// A base process of the game that `game` gives for the world's definitions.
pub fn base(game: Game) -> ExitCode {
    let flags = flags(Service::Base);
    run_game(&flags, game, async |begun, game| {
        let (schema, front) = (Arc::clone(&begun.schema), Front::of(&begun.config));
        base::run(&begun.settings, schema, game, durability(&begun.config), &front).await
    })
}

/// Begins, and runs a service to its end.
fn run<E: std::error::Error + 'static>(flags: &Flags, service: impl AsyncFnOnce(&Begun) -> Result<(), E>) -> ExitCode {
    match begin(flags) {
        Ok(begun) => run_begun(&begun, service),
        Err(text) => cannot_begin(&text),
    }
}

/// The same for a service with a game inside, which must be one of the world's definitions.
fn run_game<E: std::error::Error + 'static>(
    flags: &Flags,
    game: Game,
    service: impl AsyncFnOnce(&Begun, Arc<dyn Behaviour>) -> Result<(), E>,
) -> ExitCode {
    let begun = match begin(flags) {
        Ok(begun) => begun,
        Err(text) => return cannot_begin(&text),
    };
    match game(&begun.schema) {
        Ok(game) => run_begun(&begun, async |begun| service(begun, game).await),
        Err(other) => cannot_begin(&other.to_string()),
    }
}

fn cannot_begin(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(2)
}

fn run_begun<E: std::error::Error + 'static>(
    begun: &Begun,
    service: impl AsyncFnOnce(&Begun) -> Result<(), E>,
) -> ExitCode {
    run_service(async || service(begun).await)
}

fn run_service<E: std::error::Error + 'static>(service: impl AsyncFnOnce() -> Result<(), E>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(service()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", Chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// The settings, checked, and the log output set up.
fn prepare(flags: &Flags) -> Result<(Config, Settings), String> {
    let config = Config::load(flags).map_err(|mistakes| mistakes.to_string())?;
    telemetry::init(&config.log, config.log_format).map_err(|error| error.to_string())?;
    let settings = Settings {
        realm: config.realm.clone(),
        nats: config.nats.clone(),
        replicas: config.replicas,
    };
    Ok((config, settings))
}

fn begin(flags: &Flags) -> Result<Begun, String> {
    let (config, settings) = prepare(flags)?;
    let schema = compile(&config.world).map_err(|error| Chain(&error).to_string())?;
    Ok(Begun {
        config,
        settings,
        schema,
    })
}

fn durability(config: &Config) -> Durability {
    match config.acknowledged {
        Acknowledged::Log => Durability::Log,
        Acknowledged::Archive => Durability::Archive,
    }
}
