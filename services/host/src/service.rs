//! Start of a service: settings, log output, the world's definitions; then the service itself until it ends. The
//! binaries are one line each.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;

use annals_def::Schema;
use annals_director::{Desired, SpacePlan};
use annals_ids::{Hash, SpaceId};
use annals_node::{Behaviour, typed::OtherSchema, writer::Durability};
use clap::{Arg, ArgMatches, Command, value_parser};
use tokio::runtime::{Builder, Runtime};

use crate::{
    base::{self, DownloadSettings},
    cell,
    certificates::Certificates,
    config::{Acknowledged, Config, FIRST, Flags, Service, SpaceSetting, Spaces},
    db,
    director::{self, Plan},
    front::Front,
    health::Health,
    login,
    monitoring::Monitoring,
    process::Settings,
    signer,
    telemetry::{self, Chain, ProcessLog, otlp::Otlp},
    world::compile,
};

/// The space that every realm starts with.
pub const FIRST_SPACE: SpaceId = SpaceId(FIRST);

/// The flags that a service was started with. A wrong command line, or a request for help, ends the process.
fn flags(service: Service) -> Flags {
    Flags::of(&matches(&Flags::command(service)))
}

fn matches(command: &Command) -> ArgMatches {
    // The help names the program as it was called: a game names its binaries freely.
    Flags::matched(command, std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// The command lines of all services.
pub fn commands() -> [Command; 6] {
    use Service::{Base, Cell, Db, Login, Signer};
    let [base, cell, db, login, signer] = [Base, Cell, Db, Login, Signer].map(Flags::command);
    [base, cell, db, director_command(), login, signer]
}

/// The director's command line: the settings, and the number of processes that a start waits for.
fn director_command() -> Command {
    let count = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("COUNT")
            .value_parser(value_parser!(usize))
            .default_value("1")
            .help(help)
    };
    Flags::command(Service::Director)
        .arg(count("bases", "Number of base processes that a start waits for"))
        .arg(count(
            "cells",
            "Number of cell processes that a start waits for, shared by the spaces without a setting of cells",
        ))
}

/// The director's flags, and how many processes its start waits for.
fn director_flags() -> (Flags, Desired) {
    let matches = matches(&director_command());
    let given = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or(1);
    let desired = Desired {
        bases: given("bases"),
        cells: given("cells"),
    };
    (Flags::of(&matches), desired)
}

/// Common state of a service that has started.
struct Begun {
    config: Config,
    settings: Settings,
    schema: Arc<Schema>,
    log: ProcessLog,
}

impl Begun {
    /// What it reports of itself: its settings, its log, and the fingerprint of its definitions.
    fn known(&self) -> (&Config, ProcessLog, Option<Hash>) {
        (&self.config, self.log.clone(), Some(self.schema.fingerprint()))
    }
}

/// The director's process.
pub fn director() -> ExitCode {
    let (flags, desired) = director_flags();
    run(Service::Director, &flags, async |begun, health| {
        let spaces = plans(&begun.config.spaces, desired.cells);
        let max_players = begun.config.max_players;
        let plan = Plan {
            spaces,
            desired,
            max_players,
        };
        let reports = begun.config.nats_system.as_deref();
        director::run((&begun.settings, health), &begun.schema, &plan, reports).await
    })
}

/// Plans for the realm's spaces, for `cells` cells. Spaces that do not set a number share them.
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

/// Runs the db process.
pub fn db() -> ExitCode {
    let flags = flags(Service::Db);
    run(Service::Db, &flags, async |begun, health| {
        db::run((&begun.settings, health), &begun.schema, &begun.config).await
    })
}

/// Runs the login process.
pub fn login() -> ExitCode {
    let flags = flags(Service::Login);
    run(Service::Login, &flags, async |begun, health| {
        let front = Front::of(&begun.config);
        let schema = Arc::clone(&begun.schema);
        login::run((&begun.settings, health), schema, &front, &begun.config).await
    })
}

/// Runs the signer process. It does not need the world's definitions.
pub fn signer() -> ExitCode {
    let flags = flags(Service::Signer);
    match prepare(&flags) {
        Ok((config, settings, log)) => run_service(Service::Signer, (&config, log, None), async |health| {
            signer::run((&settings, health), &config).await
        }),
        Err(text) => cannot_begin(&text),
    }
}

/// Makes a game for the world's definitions, or refuses those that it was not generated from. Not a type parameter: the
/// services would be compiled once more in each program that runs one.
pub type Game = fn(&Arc<Schema>) -> Result<Arc<dyn Behaviour>, OtherSchema>;

/// A cell process of the game that `game` gives for the world's definitions.
pub fn cell(game: Game) -> ExitCode {
    let flags = flags(Service::Cell);
    run_game(Service::Cell, (&flags, game), async |begun, game, health| {
        let schema = Arc::clone(&begun.schema);
        let Config { client_bandwidth, .. } = begun.config;
        cell::run(
            (&begun.settings, health),
            schema,
            game,
            durability(&begun.config),
            client_bandwidth,
            begun.config.outbound.as_deref(),
        )
        .await
    })
}

/// A base process of the game that `game` gives for the world's definitions.
pub fn base(game: Game) -> ExitCode {
    let flags = flags(Service::Base);
    run_game(Service::Base, (&flags, game), async |begun, game, health| {
        let (schema, front) = (Arc::clone(&begun.schema), Front::of(&begun.config));
        base::run(
            (&begun.settings, health),
            schema,
            game,
            durability(&begun.config),
            &front,
            (
                begun.config.outbound.as_deref(),
                DownloadSettings {
                    folder: begun.config.downloads.clone(),
                    bits: begun.config.download_bandwidth,
                },
            ),
        )
        .await
    })
}

/// Starts, and runs a service to its end.
fn run<E: std::error::Error + 'static>(
    service: Service,
    flags: &Flags,
    work: impl AsyncFnOnce(&Begun, &Health) -> Result<(), E>,
) -> ExitCode {
    match begin(flags) {
        Ok(begun) => {
            let known = begun.known();
            run_service(service, known, async |health| work(&begun, health).await)
        }
        Err(text) => cannot_begin(&text),
    }
}

/// As `run`, for a service with a game, which must have been generated from the world's definitions.
fn run_game<E: std::error::Error + 'static>(
    service: Service,
    (flags, game): (&Flags, Game),
    work: impl AsyncFnOnce(&Begun, Arc<dyn Behaviour>, &Health) -> Result<(), E>,
) -> ExitCode {
    let begun = match begin(flags) {
        Ok(begun) => begun,
        Err(text) => return cannot_begin(&text),
    };
    match game(&begun.schema) {
        Ok(game) => {
            let known = begun.known();
            run_service(service, known, async |health| work(&begun, game, health).await)
        }
        Err(other) => cannot_begin(&other.to_string()),
    }
}

fn cannot_begin(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(2)
}

/// Runs a service to its end, and reports its health over HTTP from the start on if the settings name an address.
fn run_service<E: std::error::Error + 'static>(
    service: Service,
    (config, log, schema): (&Config, ProcessLog, Option<Hash>),
    work: impl AsyncFnOnce(&Health) -> Result<(), E>,
) -> ExitCode {
    let runtime = match runtime(service, config.threads) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(async {
        let mut health = Health {
            log,
            schema,
            certificates: Certificates::of(config),
            ..Health::default()
        };
        let otlp = Otlp::start(&config.telemetry, (&config.realm, service), &health);
        let otlp = otlp.map_err(|error| Chain(&error).to_string())?;
        if let Some(otlp) = &otlp {
            health.traces = otlp.traces.clone();
        }
        let _monitoring = match config.http {
            Some(address) => Some(Monitoring::start(address, (&config.realm, service), health.clone()).await),
            None => None,
        }
        .transpose()
        .map_err(|error| Chain(&error).to_string())?;
        work(&health).await.map_err(|error| Chain(&error).to_string())
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            tracing::error!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// A runtime with as many threads as the settings say for a base or cell: a task that wakes another one on the same thread
/// costs no call of the operating system. Other services have one for each core, since some of their work takes long.
fn runtime(service: Service, threads: NonZeroUsize) -> std::io::Result<Runtime> {
    let mut builder = match (service, threads.get()) {
        (Service::Base | Service::Cell, 1) => Builder::new_current_thread(),
        (Service::Base | Service::Cell, threads) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
        (Service::Db | Service::Director | Service::Login | Service::Signer, _) => Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}

/// Loads and checks the settings, and sets up the log output.
fn prepare(flags: &Flags) -> Result<(Config, Settings, ProcessLog), String> {
    let config = Config::load(flags).map_err(|mistakes| mistakes.to_string())?;
    let log = telemetry::init(&config.log, config.log_format).map_err(|error| error.to_string())?;
    annals_node::panics::report_places();
    let settings = Settings {
        realm: config.realm.clone(),
        nats: config.nats.clone(),
        access: config.access.clone(),
        replicas: config.replicas,
    };
    Ok((config, settings, log))
}

fn begin(flags: &Flags) -> Result<Begun, String> {
    let (config, settings, log) = prepare(flags)?;
    let schema = compile(&config.world).map_err(|error| Chain(&error).to_string())?;
    Ok(Begun {
        config,
        settings,
        schema,
        log,
    })
}

fn durability(config: &Config) -> Durability {
    match config.acknowledged {
        Acknowledged::Log => Durability::Log,
        Acknowledged::Archive => Durability::Archive,
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::RuntimeFlavor;

    use super::*;

    #[test]
    fn a_base_or_cell_runs_on_as_many_threads_as_its_setting_says() {
        let flavor_of = |service, threads| {
            let threads = NonZeroUsize::new(threads).expect("some");
            let runtime = runtime(service, threads).expect("threads can be started");
            let handle = runtime.handle();
            (handle.runtime_flavor(), handle.metrics().num_workers())
        };
        for service in [Service::Base, Service::Cell] {
            assert_eq!(flavor_of(service, 1), (RuntimeFlavor::CurrentThread, 1));
            assert_eq!(flavor_of(service, 3), (RuntimeFlavor::MultiThread, 3));
        }
        assert_eq!(flavor_of(Service::Login, 1).0, RuntimeFlavor::MultiThread);
    }
}
