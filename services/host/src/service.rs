//! How a service begins: settings, log output, the world's definitions; then the service itself until it ends. The binaries
//! are one line each.

use std::process::ExitCode;
use std::sync::Arc;

use annals_def::Schema;
use annals_director::SpacePlan;
use annals_ids::SpaceId;
use annals_node::{Behaviour, writer::Durability};
use clap::Parser;

use crate::{
    base, cell,
    config::{Acknowledged, Config, Flags},
    db,
    director::{self, Plan},
    front::Front,
    login,
    process::Settings,
    telemetry::{self, Chain},
    world::compile,
};

/// The space that every realm begins with.
pub const FIRST_SPACE: SpaceId = SpaceId(1);

/// Strips of the first space are cut within so many metres of the origin.
const EXTENT: f32 = 200.0;

/// How far a witness sees, metres: what KBEngine takes when nobody says.
const AOI_RADIUS: f32 = 80.0;

/// How much further out somebody must be to leave a view, metres: the same.
const AOI_HYSTERESIS: f32 = 5.0;

/// A service's command line.
#[derive(Debug, Parser)]
struct Plain {
    #[command(flatten)]
    flags: Flags,
}

/// The director's command line.
#[derive(Debug, Parser)]
struct ForDirector {
    #[command(flatten)]
    flags: Flags,
    /// How many cells there must be before the first space is divided among them
    #[arg(long, default_value_t = 1)]
    cells: usize,
}

/// What every service has once it has begun.
struct Begun {
    config: Config,
    settings: Settings,
    schema: Arc<Schema>,
}

/// The director's process.
pub fn director() -> ExitCode {
    let ForDirector { flags, cells } = ForDirector::parse();
    run(&flags, async |begun| {
        let space = SpacePlan {
            space: FIRST_SPACE,
            extent: EXTENT,
            aoi_radius: AOI_RADIUS,
            aoi_hysteresis: AOI_HYSTERESIS,
        };
        director::run(&begun.settings, &begun.schema, &Plan { space, cells }).await
    })
}

/// db's process.
pub fn db() -> ExitCode {
    let Plain { flags } = Plain::parse();
    run(&flags, async |begun| {
        db::run(&begun.settings, &begun.schema, &begun.config.data.join("store")).await
    })
}

/// The login service's process.
pub fn login() -> ExitCode {
    let Plain { flags } = Plain::parse();
    run(&flags, async |begun| {
        let front = Front::of(&begun.config);
        login::run(&begun.settings, Arc::clone(&begun.schema), &front).await
    })
}

/// A cell process of the game that `game` gives for the world's definitions.
pub fn cell(game: impl FnOnce(&Arc<Schema>) -> Arc<dyn Behaviour>) -> ExitCode {
    let Plain { flags } = Plain::parse();
    run(&flags, async |begun| {
        cell::run(
            &begun.settings,
            Arc::clone(&begun.schema),
            game(&begun.schema),
            durability(&begun.config),
        )
        .await
    })
}

/// A base process of the game that `game` gives for the world's definitions.
pub fn base(game: impl FnOnce(&Arc<Schema>) -> Arc<dyn Behaviour>) -> ExitCode {
    let Plain { flags } = Plain::parse();
    run(&flags, async |begun| {
        base::run(
            &begun.settings,
            Arc::clone(&begun.schema),
            game(&begun.schema),
            durability(&begun.config),
            &Front::of(&begun.config),
        )
        .await
    })
}

/// Begins, and runs a service to its end.
fn run<E: std::error::Error + 'static>(flags: &Flags, service: impl AsyncFnOnce(&Begun) -> Result<(), E>) -> ExitCode {
    let begun = match begin(flags) {
        Ok(begun) => begun,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(service(&begun)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", Chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn begin(flags: &Flags) -> Result<Begun, String> {
    let config = Config::load(flags).map_err(|mistakes| mistakes.to_string())?;
    telemetry::init(&config.log, config.log_format).map_err(|error| error.to_string())?;
    let schema = compile(&config.world).map_err(|error| error.to_string())?;
    let settings = Settings {
        realm: config.realm.clone(),
        nats: config.nats.clone(),
        replicas: config.replicas,
    };
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
