//! Keeping what the director orders: a holder per owner, begun and ended as grants come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use annals_event::OwnerState;
use annals_ids::{Epoch, OwnerId};
use annals_node::{
    Behaviour, Input, Role,
    time::Mono,
    writer::{self, Durability, Tip},
};
use annals_wire::{
    SpaceMap,
    control::{self, CursorNews, GrantOrder, Holding, Want},
};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::holder::{COMMANDS, Command, Others, Terms, Wires, hold};
use crate::process::{BEAT, Process};

/// What is the same for all owners of a service.
pub struct Trade<R: Role> {
    /// The game.
    pub behaviour: Arc<dyn Behaviour>,
    /// When a batch counts as acknowledged.
    pub durability: Durability,
    /// Makes the role of an owner in this state, at this moment.
    pub make: fn(&OwnerState, Mono) -> R,
    /// Makes the role's input of a map.
    pub map: fn(SpaceMap) -> R::Input,
    /// Where clients reach this process, if they do.
    pub address: String,
}

/// See the module.
pub struct Keeper<R: Role> {
    process: Arc<Process>,
    trade: Trade<R>,
    others: Others,
    held: BTreeMap<OwnerId, Held<R::Input>>,
    /// Grants that were held and ended by themselves: only a new epoch begins them again.
    ended: BTreeSet<(OwnerId, Epoch)>,
    map: SpaceMap,
}

struct Held<I> {
    epoch: Epoch,
    commands: mpsc::Sender<Command<I>>,
    entities: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl<R> Keeper<R>
where
    R: Role + Send + 'static,
    R::Input: Clone + Send + 'static,
{
    /// Keeps nothing yet. Outputs that are not for other owners go to `others`.
    pub fn new(process: Arc<Process>, trade: Trade<R>, others: Others) -> Self {
        Self {
            process,
            trade,
            others,
            held: BTreeMap::new(),
            ended: BTreeSet::new(),
            map: SpaceMap::default(),
        }
    }

    /// Tells the holder of an owner something; `false` if it is not held.
    pub async fn tell(&self, owner: OwnerId, input: R::Input) -> bool {
        match self.held.get(&owner) {
            Some(held) => held.commands.send(Command::Core(Input::Role(input))).await.is_ok(),
            None => false,
        }
    }

    /// One beat: tells the director, and does what it orders. To be called every [`BEAT`].
    pub async fn beat(&mut self) {
        self.sweep();
        let holds: BTreeMap<OwnerId, Holding> = self
            .held
            .iter()
            .map(|(owner, held)| (*owner, held.holding(*owner)))
            .collect();
        let orders = match self.process.beat(&holds, &self.trade.address, self.map.version).await {
            Ok(orders) => orders,
            Err(error) => {
                // Owners run on; epochs and the gate see to it that nothing wrong is shown.
                tracing::warn!(%error, "the director was not heard");
                return;
            }
        };
        if let Some(map) = &orders.map {
            self.map = SpaceMap::from(map);
            for held in self.held.values() {
                let input = Input::Role((self.trade.map)(self.map.clone()));
                let _ = held.commands.send(Command::Core(input)).await;
            }
        }
        let granted: BTreeMap<OwnerId, &GrantOrder> = orders
            .grants
            .iter()
            .map(|grant| (OwnerId(grant.owner), grant))
            .collect();
        self.held.retain(|owner, held| {
            let keep = granted.get(owner).is_some_and(|grant| Epoch(grant.epoch) == held.epoch);
            if !keep {
                tracing::info!(%owner, epoch = %held.epoch, "given up");
                held.task.abort();
            }
            keep
        });
        for (owner, grant) in granted {
            let begun = self.held.contains_key(&owner) || self.ended.contains(&(owner, Epoch(grant.epoch)));
            if !begun && grant.ids_to > grant.ids_from {
                self.begin(owner, grant.clone()).await;
            }
        }
    }

    /// Runs beats and db's news until `stop`.
    pub async fn listen(&mut self, news: &mut News) {
        tokio::select! {
            () = tokio::time::sleep(BEAT) => self.beat().await,
            item = news.next() => self.spread(item).await,
        }
    }

    /// Passes db's news on to those they concern.
    pub async fn spread(&mut self, item: NewsItem) {
        match item {
            NewsItem::Cursors(news) => {
                for (owner, number, hash, epoch) in news.cursors.iter().filter_map(control::CursorMoved::position) {
                    if let Some(held) = self.held.get(&owner) {
                        let input = writer::Input::Archived {
                            upto: Tip { number, hash },
                            epoch,
                        };
                        let _ = held.commands.send(Command::Core(Input::Log(input))).await;
                    }
                }
            }
            NewsItem::Want(want) => {
                if let Some(held) = self.held.get(&OwnerId(want.owner)) {
                    let _ = held.commands.send(Command::Refill(want.first..want.until)).await;
                }
            }
        }
    }

    async fn begin(&mut self, owner: OwnerId, grant: GrantOrder) {
        let epoch = Epoch(grant.epoch);
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let entities = Arc::new(AtomicU64::new(0));
        let (behaviour, durability) = (Arc::clone(&self.trade.behaviour), self.trade.durability);
        let terms = Terms {
            grant,
            behaviour,
            durability,
        };
        let wires = Wires {
            commands: receiver,
            own: commands.clone(),
            others: self.others.clone(),
            entities: Arc::clone(&entities),
        };
        let task = tokio::spawn(hold(Arc::clone(&self.process), terms, self.trade.make, wires));
        if self.map.version > 0 {
            let input = Input::Role((self.trade.map)(self.map.clone()));
            let _ = commands.send(Command::Core(input)).await;
        }
        self.held.insert(
            owner,
            Held {
                epoch,
                commands,
                entities,
                task,
            },
        );
    }

    /// Takes away what ended by itself.
    fn sweep(&mut self) {
        let ended = &mut self.ended;
        self.held.retain(|owner, held| {
            let runs = !held.task.is_finished();
            if !runs {
                ended.insert((*owner, held.epoch));
            }
            runs
        });
    }
}

impl<I> Held<I> {
    fn holding(&self, owner: OwnerId) -> Holding {
        Holding {
            owner: owner.0,
            epoch: self.epoch.0,
            entities: self.entities.load(Ordering::Relaxed),
        }
    }
}

/// What db announces to everybody.
pub struct News {
    cursors: async_nats::Subscriber,
    wants: async_nats::Subscriber,
}

/// One announcement.
pub enum NewsItem {
    /// Logs are archived further (rule F6).
    Cursors(CursorNews),
    /// Batches are missing (rule F4).
    Want(Want),
}

impl News {
    /// Listens.
    ///
    /// # Errors
    /// When the bus does not let us.
    pub async fn listen(process: &Process) -> Result<Self, async_nats::SubscribeError> {
        let client = process.bus.client();
        Ok(Self {
            cursors: client.subscribe(process.subjects.news("cursors")).await?,
            wants: client.subscribe(process.subjects.news("wants")).await?,
        })
    }

    /// The next announcement.
    pub async fn next(&mut self) -> NewsItem {
        loop {
            let item = tokio::select! {
                Some(message) = self.cursors.next() => control::decode(&message.payload).map(NewsItem::Cursors),
                Some(message) = self.wants.next() => control::decode(&message.payload).map(NewsItem::Want),
                else => std::future::pending().await,
            };
            match item {
                Ok(item) => return item,
                Err(error) => tracing::warn!(%error, "news that were not understood"),
            }
        }
    }
}
