//! Replaces the processes of a running realm by those of a newer build.

use std::{
    fmt, io, mem,
    time::{Duration, Instant},
};

use annals_host::{
    config::Service,
    health::{DiscoveryError, Instance, Readiness, discover},
    nats::ConnectError,
    process::{Settings, connect},
    telemetry::Chain,
};
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use super::building::Build;
use crate::{
    definition_change::{Director, NotUpgraded, Prepared},
    up::{GameBuild, Realm, RealmOrder, UpError},
};

/// Timeout for new processes to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Timeout for the replaced processes to hand over what they hold and to end.
const END_WITHIN: Duration = Duration::from_secs(60);

/// Interval of looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The services that a game is built into.
const REPLACED: [Service; 2] = [Service::Base, Service::Cell];

/// Why the former build keeps running.
#[derive(Debug, Error)]
pub(super) enum NotReplaced {
    /// The definitions cannot change while the realm runs.
    #[error("the realm must be stopped: {0}")]
    NeedsStop(String),
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's processes cannot be found")]
    Discover(#[from] DiscoveryError),
    #[error(transparent)]
    Start(#[from] UpError),
    #[error("{name} has ended at once; see its log, logs/{name}.log in the realm's data folder")]
    Ended { name: String },
    #[error("the new processes are not ready after {} s; see their logs", READY_WITHIN.as_secs())]
    NotReady,
    #[error("the replaced processes cannot be asked to end")]
    Terminate(#[source] io::Error),
    #[error("the definitions are not changed")]
    Definitions(#[from] NotUpgraded),
    #[error("the realm is stopping")]
    Stopping,
}

/// What was done.
pub(super) enum Done {
    /// Nothing that the build is made of has changed.
    Nothing,
    /// Processes were replaced, in this time after the build.
    Replaced { build: Duration, took: Duration },
    /// So were the definitions. Says whether clients have to be updated.
    Changed {
        build: Duration,
        took: Duration,
        breaks_clients: bool,
    },
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Nothing => write!(f, "the base and cell processes are not affected"),
            Done::Replaced { build, took } => write!(
                f,
                "the new build runs (built in {:.1} s, replaced in {:.1} s); players stay connected",
                build.as_secs_f32(),
                took.as_secs_f32()
            ),
            Done::Changed {
                build,
                took,
                breaks_clients,
            } => {
                let (build, took) = (build.as_secs_f32(), took.as_secs_f32());
                write!(
                    f,
                    "the realm has the new definitions (built in {build:.1} s, changed in {took:.1} s); "
                )?;
                match breaks_clients {
                    true => write!(f, "clients of the former ones are disconnected until they are updated"),
                    false => write!(f, "players stay connected"),
                }
            }
        }
    }
}

/// Replaces the bases and cells of a realm, which executes its orders.
pub(super) struct Replacer {
    orders: mpsc::Sender<RealmOrder>,
    settings: Settings,
    running: Build,
    bases: usize,
    cells: usize,
    /// Number in the name of the newest process.
    number: usize,
    /// The processes of the newest build.
    started: Vec<String>,
}

impl Replacer {
    pub(super) fn new(realm: &Realm, running: Build, orders: mpsc::Sender<RealmOrder>) -> Self {
        let plan = realm.plan();
        Self {
            orders,
            settings: realm.settings(),
            running,
            bases: plan.bases,
            cells: plan.cells,
            number: plan.bases.max(plan.cells),
            started: Vec::new(),
        }
    }

    /// The build that runs.
    pub(super) fn running(&self) -> &Build {
        &self.running
    }

    /// Replaces the running build.
    ///
    /// # Errors
    /// When the former build keeps running, or has to be stopped for this one.
    pub(super) async fn replace(&mut self, build: &Build) -> Result<Done, NotReplaced> {
        let is_same_world = build.schema.fingerprint() == self.running.schema.fingerprint();
        let has_same_zones = build.schema.zones() == self.running.schema.zones();
        if is_same_world && has_same_zones && build.binaries == self.running.binaries {
            return Ok(Done::Nothing);
        }
        let began = Instant::now();
        self.started.clear();
        let done = match is_same_world {
            true => self.replace_processes(build).await.map(|()| None),
            false => self.change_definitions(build).await.map(Some),
        };
        let breaks_clients = match done {
            Ok(breaks_clients) => breaks_clients,
            Err(error) => {
                self.give_up().await?;
                return Err(error);
            }
        };
        self.running = build.clone();
        let (build, took) = (build.took, began.elapsed());
        Ok(match breaks_clients {
            None => Done::Replaced { build, took },
            Some(breaks_clients) => Done::Changed {
                build,
                took,
                breaks_clients,
            },
        })
    }

    /// Others of the same definitions take over from the present processes.
    async fn replace_processes(&mut self, build: &Build) -> Result<(), NotReplaced> {
        let former = self.listed(&REPLACED).await?;
        let wanted = self.bases_and_cells();
        self.start(&build.game, &wanted).await?;
        self.wait_until_ready(&wanted.map(|(service, count)| (service, 2 * count)))
            .await?;
        self.order(|answer| RealmOrder::SetBuild(build.game.clone(), answer))
            .await?;
        self.retire(former.clone()).await?;
        self.wait_until_ended(&former).await
    }

    /// The realm changes to the definitions of this build, and its present processes end by themselves. Returns whether
    /// clients cannot read the new ones.
    async fn change_definitions(&mut self, build: &Build) -> Result<bool, NotReplaced> {
        let director = Director::connect(&self.settings).await?;
        let compared = director.compare(&build.schema, &[]).await?;
        if let Some(obstacle) = &compared.obstacle {
            return Err(NotReplaced::NeedsStop(obstacle.clone()));
        }
        let former = self.listed(&REPLACED).await?;
        director.prepare(&build.schema, &[], &compared).await?;
        if let Err(error) = self.change(build, &director, &former).await {
            // The answer to the last step may be lost: whether it was made is the realm's to say.
            let stage = director.look().await;
            if !stage.is_ok_and(|stage| stage.present == build.schema.fingerprint().0) {
                // The error above is the one to report.
                let _ = director.roll_back().await;
                return Err(error);
            }
        }
        // There is no way back from here on.
        if let Err(error) = self.finish_change(&former).await {
            println!("dev: {}", Chain(&error));
        }
        Ok(compared.breaks_clients())
    }

    /// Waits until the processes of the former definitions have ended, and the login process serves on its port again.
    async fn finish_change(&mut self, former: &[String]) -> Result<(), NotReplaced> {
        self.wait_until_ended(former).await?;
        // The login process of the former definitions has ended too, and was restarted on its port. Until then, the one
        // of the change serves.
        self.wait_until_ready(&[(Service::Login, 2)]).await?;
        let interim = self.started.pop_if(|name| name.starts_with(Service::Login.name()));
        self.retire(interim.into_iter().collect()).await
    }

    /// Starts the processes of a change that is prepared, and makes the change.
    async fn change(&mut self, build: &Build, director: &Director, former: &[String]) -> Result<(), NotReplaced> {
        self.start(&build.game, &self.bases_and_cells()).await?;
        self.start(&build.game, &[(Service::Login, 1)]).await?;
        tokio::select! {
            ready = director.ready(&build.schema, |_| Ok(())) => match ready? {
                Prepared::Ready | Prepared::FinishedElsewhere(_) => {}
            },
            ended = self.until_ended() => return Err(ended),
            () = sleep(READY_WITHIN) => return Err(NotReplaced::NotReady),
        }
        self.order(|answer| RealmOrder::SetBuild(build.game.clone(), answer))
            .await?;
        self.order(|answer| RealmOrder::Retire(former.to_vec(), answer)).await?;
        director.finish().await?;
        Ok(())
    }

    /// The bases and cells that a build is to have.
    fn bases_and_cells(&self) -> [(Service, usize); 2] {
        [(Service::Base, self.bases), (Service::Cell, self.cells)]
    }

    /// Starts so many processes of these services, beside the present ones. Until others are retired, these are:
    /// what ends at once is not restarted.
    async fn start(&mut self, game: &GameBuild, wanted: &[(Service, usize)]) -> Result<(), NotReplaced> {
        for (service, count) in wanted {
            for _ in 0..*count {
                self.number += 1;
                let name = format!("{}-{}", service.name(), self.number);
                let order = |answer| RealmOrder::Start(*service, name.clone(), game.clone(), answer);
                self.order(order).await??;
                self.started.push(name);
            }
        }
        Ok(())
    }

    /// Waits until so many processes of these services serve, and all that were started are among them.
    async fn wait_until_ready(&self, wanted: &[(Service, usize)]) -> Result<(), NotReplaced> {
        let are_ready = |found: &[Instance]| {
            let ready = |instance: &&Instance| instance.report.readiness == Readiness::Ready;
            let count = |service: Service| {
                let of = found.iter().filter(|instance| instance.service == service.name());
                of.filter(ready).count()
            };
            wanted.iter().all(|(service, least)| count(*service) >= *least)
        };
        let (bus, _) = connect(&self.settings, "dev").await?;
        let until = Instant::now() + READY_WITHIN;
        while Instant::now() < until {
            if are_ready(&discover(&bus, &self.settings.realm, LOOK_EVERY, are_ready).await?) {
                return Ok(());
            }
            self.check_started().await?;
        }
        Err(NotReplaced::NotReady)
    }

    /// Completes when one of the started processes has ended, with the error.
    async fn until_ended(&self) -> NotReplaced {
        loop {
            if let Err(error) = self.check_started().await {
                return error;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Checks that none of the started processes has ended.
    async fn check_started(&self) -> Result<(), NotReplaced> {
        let listed = self.listed(&[Service::Base, Service::Cell, Service::Login]).await?;
        match self.started.iter().find(|name| !listed.contains(name)) {
            Some(name) => Err(NotReplaced::Ended { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// Waits until processes have handed over what they hold, and have ended. One that does not is killed: others take
    /// over from its logs.
    async fn wait_until_ended(&self, former: &[String]) -> Result<(), NotReplaced> {
        let until = Instant::now() + END_WITHIN;
        loop {
            let listed = self.listed(&REPLACED).await?;
            let left: Vec<&String> = former.iter().filter(|name| listed.contains(name)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                for name in left {
                    println!("dev: {name} has not ended and is killed; others take over from its logs");
                    // It may end meanwhile.
                    let _ = self.order(|answer| RealmOrder::Kill(name.clone(), answer)).await?;
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Ends the processes of a build that does not replace the running one.
    async fn give_up(&mut self) -> Result<(), NotReplaced> {
        let game = self.running.game.clone();
        self.order(|answer| RealmOrder::SetBuild(game, answer)).await?;
        let started = mem::take(&mut self.started);
        self.retire(started).await
    }

    /// Ends these processes, which others replace.
    async fn retire(&self, names: Vec<String>) -> Result<(), NotReplaced> {
        self.order(|answer| RealmOrder::Retire(names, answer)).await?;
        self.order(RealmOrder::TerminateRetiring)
            .await?
            .map_err(NotReplaced::Terminate)
    }

    /// The names of the running processes of these services.
    async fn listed(&self, services: &[Service]) -> Result<Vec<String>, NotReplaced> {
        let listed = self.order(RealmOrder::List).await?;
        let of = listed.into_iter().filter(|listed| services.contains(&listed.service));
        Ok(of.map(|listed| listed.name).collect())
    }

    /// Gives an order, and waits for the answer.
    async fn order<A>(&self, order: impl FnOnce(oneshot::Sender<A>) -> RealmOrder) -> Result<A, NotReplaced> {
        let (answer, answered) = oneshot::channel();
        let given = self.orders.send(order(answer)).await;
        given.map_err(|_| NotReplaced::Stopping)?;
        answered.await.map_err(|_| NotReplaced::Stopping)
    }
}
