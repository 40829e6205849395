//! The director's shell: leads by a term in the store, hears beats, grants, and answers who is where.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_director::{Beat, Decision, Grant, GrantError, Grants, Roster, SILENCE, SpacePlan, divide};
use annals_ids::{Hash, OwnerId, OwnerKind, ProcessId};
use annals_store::{Store, layout::director::Realm};
use annals_wire::{
    SpaceMap, Subjects,
    control::{
        self, DirectorAsk, DirectorRequest, GrantOrder, IdBlock, Orders, Place, ProcessBeat, Register, Registered,
        WireMap,
    },
};
use futures::StreamExt;
use thiserror::Error;

use crate::{
    clock,
    health::{DiscoveryError, Readiness},
    nats::{Bus, ConnectError},
    process::{self, BEAT, SHARD, Settings},
    telemetry::{Chain, Metrics},
};

/// What the director wants the realm to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first space and how it is divided.
    pub space: SpacePlan,
    /// How many cell owners there must be before the space is divided: a controlled start waits for them.
    pub cells: usize,
}

/// Why the director ended.
#[derive(Debug, Error)]
pub enum DirectorError {
    /// No connection.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The bus does not let us listen.
    #[error("the bus does not let the director listen")]
    Listen(#[from] async_nats::SubscribeError),
    /// Service discovery.
    #[error("the director cannot make itself known")]
    Announce(#[from] DiscoveryError),
    /// The realm runs on another schema.
    #[error(transparent)]
    Grant(#[from] GrantError),
}

/// Runs a director until the process is asked to stop: leads, or stands by.
///
/// # Errors
/// When the bus cannot be joined, or the realm runs on another schema.
pub async fn run(settings: &Settings, schema: &Arc<Schema>, plan: &Plan) -> Result<(), DirectorError> {
    let stop = process::stop_signal();
    tokio::select! {
        ended = direct(settings, schema, plan) => ended,
        () = process::stopped(stop) => Ok(()),
    }
}

async fn direct(settings: &Settings, schema: &Arc<Schema>, plan: &Plan) -> Result<(), DirectorError> {
    let (bus, subjects) = process::connect(settings, "director").await?;
    let store = process::remote_store(&bus, &subjects);
    let (_announcement, readiness) =
        process::announce(&bus, settings, "director", &Arc::new(Metrics::default())).await?;
    // Registered processes are numbered by the director; directors tell themselves apart by chance.
    let id = ProcessId(u64::from_le_bytes(process::random()) | 1 << 63);
    loop {
        readiness.send_replace(Readiness::Waiting {
            reason: "another director leads, or may do so".to_owned(),
        });
        let grants = stand_by(&store, id).await;
        readiness.send_replace(Readiness::Ready);
        match lead(&bus, &subjects, grants, schema, plan).await {
            Err(DirectorError::Grant(GrantError::Superseded { leader, term })) => {
                tracing::warn!(%leader, term, "another director leads; standing by");
            }
            Err(DirectorError::Grant(GrantError::Store(error))) => {
                tracing::warn!(%error, "the store was not reached; standing by");
            }
            ended => return ended,
        }
    }
}

/// Waits until the term has not changed for [`SILENCE`], then takes it (rule D1).
async fn stand_by(store: &Store, id: ProcessId) -> Grants {
    let mut seen = None;
    let mut since = clock::mono();
    loop {
        match Grants::watch(store).await {
            Err(error) => tracing::info!(%error, "waiting for the store"),
            Ok(term) if seen != Some(term) => (seen, since) = (Some(term), clock::mono()),
            // A realm that never had a director waits for nobody.
            Ok(term) if term.number == 0 || clock::mono().since(since) >= SILENCE => {
                match Grants::lead(store.clone(), id, term).await {
                    Ok(grants) => return grants,
                    Err(error) => tracing::info!(error = %Chain(&error), "not leading"),
                }
                seen = None;
            }
            Ok(_) => {}
        }
        tokio::time::sleep(BEAT / 2).await;
    }
}

/// A director that leads.
struct Leader {
    grants: Grants,
    plan: Plan,
    schema: Hash,
    realm: Realm,
    roster: Roster,
    /// What was granted in this term, with the ids that came with it; an older grant whose holder is silent about it is
    /// granted anew.
    orders: BTreeMap<OwnerId, (GrantOrder, ProcessId)>,
    /// Since when a holder that lives does not say that it holds an owner.
    unheld: BTreeMap<OwnerId, Duration>,
    loads: BTreeMap<OwnerId, u64>,
    map: SpaceMap,
}

async fn lead(
    bus: &Bus,
    subjects: &Subjects,
    grants: Grants,
    schema: &Arc<Schema>,
    plan: &Plan,
) -> Result<(), DirectorError> {
    let mut requests = bus.client().subscribe(subjects.service("director")).await?;
    let mut leader = Leader::begin(grants, schema, plan.clone()).await?;
    tracing::info!(began = %leader.realm.began, owners = leader.orders.len(), "leading");
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            request = requests.next() => {
                let Some(request) = request else { return Ok(()) };
                let Some(reply) = request.reply.clone() else { continue };
                if let Some(answer) = leader.answer(&request.payload).await?
                    && let Err(error) = bus.client().publish(reply, answer.into()).await
                {
                    tracing::warn!(%error, "an answer was not sent");
                }
            }
            _ = beat.tick() => leader.beat().await?,
        }
    }
}

impl Leader {
    async fn begin(grants: Grants, schema: &Arc<Schema>, plan: Plan) -> Result<Self, GrantError> {
        let realm = grants
            .begin_realm(clock::wall(), schema.fingerprint(), &schema.encode())
            .await?;
        let owners = grants.owners().await?;
        let held = owners
            .iter()
            .map(|(owner, record)| (*owner, (record.kind, record.process)))
            .collect();
        let map = match grants.read_map().await? {
            Some(bytes) => control::decode::<WireMap>(&bytes)
                .map(|wire| SpaceMap::from(&wire))
                .unwrap_or_else(|error| {
                    tracing::error!(%error, "the stored map cannot be read and is drawn anew");
                    SpaceMap::default()
                }),
            None => SpaceMap::default(),
        };
        let orders = owners.iter().map(|(owner, record)| {
            // Without ids: whoever holds it has them, and whoever does not is granted it anew.
            let grant = Grant {
                owner: *owner,
                kind: record.kind,
                shard: record.shard,
                epoch: record.epoch,
                ids: 0..0,
            };
            (*owner, (order(&grant), record.process))
        });
        Ok(Self {
            plan,
            schema: schema.fingerprint(),
            realm,
            roster: Roster::new(monotonic(), held),
            orders: orders.collect(),
            unheld: BTreeMap::new(),
            loads: BTreeMap::new(),
            map,
            grants,
        })
    }

    async fn beat(&mut self) -> Result<(), GrantError> {
        self.grants.beat().await?;
        self.decide().await?;
        self.grant_unheld().await?;
        self.draw().await
    }

    /// Founds and grants what the roster says.
    async fn decide(&mut self) -> Result<(), GrantError> {
        for decision in self.roster.decide(monotonic()) {
            let (grant, process) = match decision {
                Decision::Found { kind, process } => (self.grants.found(kind, SHARD, process).await?, process),
                Decision::Grant { owner, process } => (self.grants.grant(owner, process).await?, process),
            };
            self.granted(&grant, process);
        }
        Ok(())
    }

    /// Grants anew what its holder, though it lives, has not held for too long.
    async fn grant_unheld(&mut self) -> Result<(), GrantError> {
        let now = monotonic();
        let due = self
            .unheld
            .iter()
            .filter(|(_, since)| now.saturating_sub(**since) >= SILENCE);
        let due: Vec<OwnerId> = due.map(|(owner, _)| *owner).collect();
        for owner in due {
            let Some((_, process)) = self.orders.get(&owner) else {
                continue;
            };
            let process = *process;
            let grant = self.grants.grant(owner, process).await?;
            self.granted(&grant, process);
        }
        Ok(())
    }

    fn granted(&mut self, grant: &Grant, process: ProcessId) {
        tracing::info!(owner = %grant.owner, epoch = %grant.epoch, kind = %grant.kind, %process, "granted");
        self.roster.granted(grant.owner, grant.kind, process);
        self.orders.insert(grant.owner, (order(grant), process));
        self.unheld.insert(grant.owner, monotonic());
    }

    /// Divides the space once there are enough cells, and again whenever one has none of it. Says on the same map on which
    /// base owner the realm begins, as soon as there is one.
    async fn draw(&mut self) -> Result<(), GrantError> {
        let cells: Vec<OwnerId> = self.roster.live_owners(OwnerKind::Cell).collect();
        let drawn = self.map.spaces.get(&self.plan.space.space);
        let mapped = |owner: &OwnerId| drawn.is_some_and(|space| space.cells.iter().any(|cell| cell.owner == *owner));
        let bootstrap = self.map.bootstrap.or_else(|| self.roster.first_owner(OwnerKind::Base));
        let is_drawn = cells.iter().all(mapped) && bootstrap == self.map.bootstrap;
        if cells.len() < self.plan.cells || is_drawn {
            return Ok(());
        }
        // An owner whose holder has just died keeps its area: it will be granted to another.
        let mut owners: Vec<OwnerId> = drawn
            .map(|space| space.cells.iter().map(|cell| cell.owner).collect())
            .unwrap_or_default();
        owners.extend(cells.iter().filter(|owner| !mapped(owner)));
        let map = SpaceMap {
            bootstrap,
            ..divide(self.plan.space, &owners, &self.map)
        };
        self.grants.write_map(&control::encode(&WireMap::from(&map))).await?;
        tracing::info!(space = %self.plan.space.space, cells = owners.len(), version = map.version, "divided");
        self.map = map;
        Ok(())
    }

    /// `None` if the request is not understood: whoever sent it hears nothing, and its reader is told why here.
    async fn answer(&mut self, payload: &[u8]) -> Result<Option<Vec<u8>>, GrantError> {
        let request: DirectorRequest = match control::decode(payload) {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, "a request that was not understood");
                return Ok(None);
            }
        };
        Ok(match request.ask {
            Some(DirectorAsk::Register(register)) => Some(control::encode(&self.register(&register).await?)),
            Some(DirectorAsk::Beat(beat)) if beat.leaving => {
                let process = ProcessId(beat.process);
                tracing::info!(%process, service = beat.service, "left");
                self.roster.leave(process);
                // Nobody need wait for it to be silent.
                self.decide().await?;
                Some(control::encode(&Orders::default()))
            }
            Some(DirectorAsk::Beat(beat)) => Some(control::encode(&self.hear(&beat))),
            Some(DirectorAsk::MoreIds(_)) => {
                let ids = self.grants.more_ids().await?;
                Some(control::encode(&IdBlock {
                    from: ids.start,
                    to: ids.end,
                }))
            }
            Some(DirectorAsk::PlaceSession(_)) => {
                let owner = self.roster.place(OwnerKind::Base, &self.loads);
                if let Some(owner) = owner {
                    // Until the next beat says it: a rush of log-ins is not to end up in one place.
                    *self.loads.entry(owner).or_default() += 1;
                }
                Some(control::encode(&self.locate(owner)))
            }
            Some(DirectorAsk::Locate(locate)) => Some(control::encode(&self.locate(Some(OwnerId(locate.owner))))),
            None => {
                tracing::warn!("a request of a newer kind was not answered: upgrade the director first");
                None
            }
        })
    }

    async fn register(&self, register: &Register) -> Result<Registered, GrantError> {
        if register.schema != self.schema.0 {
            let refused = format!(
                "the realm runs on schema {}, and this {} was started with another: start it with the same definitions",
                self.schema, register.service
            );
            return Ok(Registered {
                process: 0,
                began: 0,
                refused,
            });
        }
        let process = self.grants.register().await?;
        tracing::info!(%process, service = register.service, "registered");
        Ok(Registered {
            process: process.0,
            began: self.realm.began.0,
            refused: String::new(),
        })
    }

    fn hear(&mut self, beat: &ProcessBeat) -> Orders {
        let process = ProcessId(beat.process);
        let holds = match beat.service.as_str() {
            "base" => Some(OwnerKind::Base),
            "cell" => Some(OwnerKind::Cell),
            "db" => Some(OwnerKind::Ledger),
            _ => None,
        };
        let address = Some(beat.address.clone()).filter(|address| !address.is_empty());
        let owners = beat.holds.iter().map(|held| OwnerId(held.owner)).collect();
        self.roster.hear(
            monotonic(),
            Beat {
                process,
                holds,
                address,
                owners,
                draining: beat.draining,
            },
        );
        for held in &beat.holds {
            self.loads.insert(OwnerId(held.owner), held.entities);
        }
        let mut grants = Vec::new();
        for (owner, (order, _)) in self.orders.iter().filter(|(_, (_, holder))| *holder == process) {
            let held = beat
                .holds
                .iter()
                .any(|held| held.owner == owner.0 && held.epoch == order.epoch);
            if held {
                self.unheld.remove(owner);
            } else {
                self.unheld.entry(*owner).or_insert_with(monotonic);
            }
            grants.push(order.clone());
        }
        let map = (self.map.version > beat.map).then(|| WireMap::from(&self.map));
        Orders { grants, map }
    }

    fn locate(&self, owner: Option<OwnerId>) -> Place {
        let Some(owner) = owner else { return Place::default() };
        let epoch = self.orders.get(&owner).map_or(0, |(order, _)| order.epoch);
        let held = !self.unheld.contains_key(&owner);
        let address = self
            .roster
            .address(owner)
            .filter(|_| held)
            .unwrap_or_default()
            .to_owned();
        Place {
            owner: owner.0,
            epoch,
            address,
        }
    }
}

fn order(grant: &Grant) -> GrantOrder {
    GrantOrder {
        owner: grant.owner.0,
        kind: u32::from(grant.kind.number()),
        shard: u32::from(grant.shard.0),
        epoch: grant.epoch.0,
        ids_from: grant.ids.start,
        ids_to: grant.ids.end,
    }
}

fn monotonic() -> Duration {
    Duration::from_micros(clock::mono().0)
}
