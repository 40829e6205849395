//! Trading players of the sample world: the holdings that they were shown, and their wishes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use annals_client::{Client, Event, What};
use annals_def::{Edit, Schema, Value};
use annals_ids::{EntityId, Part, TypeId};
use annals_wire::client::property_hash;
use futures::FutureExt;
use tokio::task::JoinHandle;

use crate::{accounts::Shown, played::Played};

/// Maximum time for the realm to do what a player asked for, including a take-over.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Time without events after which nothing more is expected.
const QUIET: Duration = Duration::from_millis(1_500);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) type TradeId = (u64, u64);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assets {
    pub(crate) coins: u64,
    pub(crate) items: Vec<u64>,
}

impl Assets {
    pub(crate) fn coins(coins: u64) -> Self {
        Self {
            coins,
            items: Vec::new(),
        }
    }

    pub(crate) fn item(serial: u64) -> Self {
        Self {
            coins: 0,
            items: vec![serial],
        }
    }

    pub(crate) fn read(value: &Value) -> Self {
        let Value::Dict(fields) = value else {
            panic!("{value:?}")
        };
        let [Value::UInt(coins), Value::Sequence(items)] = &fields[..] else {
            panic!("{fields:?}")
        };
        let mut items: Vec<u64> = items.iter().map(number).collect();
        items.sort_unstable();
        Self { coins: *coins, items }
    }

    pub(crate) fn value(&self) -> Value {
        let items = self.items.iter().copied().map(Value::UInt).collect();
        Value::Dict(vec![Value::UInt(self.coins), Value::Sequence(items)])
    }
}

/// The newest state of a trade that a player was shown.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) stage: u64,
    pub(crate) version: u64,
    pub(crate) own: Assets,
    pub(crate) theirs: Assets,
    pub(crate) accepted: bool,
    pub(crate) they_accepted: bool,
}

/// A player, with everything it was shown.
pub(crate) struct Player {
    name: &'static str,
    schema: Arc<Schema>,
    pub(crate) client: Client,
    pub(crate) avatar: Option<(EntityId, TypeId)>,
    carried: Option<Assets>,
    pub(crate) worn: Assets,
    pub(crate) tables: BTreeMap<TradeId, Table>,
    /// Views of its account's holdings that it was shown, besides the reports to its avatar.
    pub(crate) views: Vec<Shown>,
    /// Outcomes of wishes: number, success, message.
    outcomes: Vec<(u64, bool, String)>,
}

impl Player {
    pub(crate) fn carried(&self) -> &Assets {
        self.carried.as_ref().expect("it was shown")
    }

    /// The number under which others trade with it.
    pub(crate) fn trader(&self) -> Option<u64> {
        let (entity, _) = self.avatar?;
        match self.client.core().property(entity, "trader") {
            Some(Value::UInt(trader)) if *trader > 0 => Some(*trader),
            _ => None,
        }
    }

    pub(crate) fn send_call(&mut self, method: &str, args: &[Value]) {
        let (entity, _) = self.avatar.expect("it is in the world");
        self.client
            .call(entity, Part::Base, method, args)
            .unwrap_or_else(|error| panic!("{} cannot call {method}: {error}", self.name));
    }

    pub(crate) fn take(&mut self, event: &Event) {
        if self.avatar.is_none() {
            self.record_account_views(event);
        }
        match event {
            Event::Connected { entity, type_id, .. } | Event::Controls { entity, type_id } => {
                let avatar = self.schema.type_named("Avatar").expect("the sample has avatars").id;
                self.avatar = (*type_id == avatar).then_some((*entity, *type_id));
            }
            Event::Shown(showing) => {
                let Some((_, type_id)) = self.avatar.filter(|(entity, _)| *entity == showing.entity) else {
                    return;
                };
                let What::Called { method, args } = &showing.what else {
                    return;
                };
                let entity_type = self.schema.entity_type(type_id).expect("it was shown");
                let called = entity_type.client_methods[usize::from(method.0)].name.clone();
                self.record_call(&called, args);
            }
            Event::Ended(reason) => panic!("{} is disconnected: {reason}", self.name),
            _ => {}
        }
    }

    /// Records the values of account views, from a change or a whole entity.
    fn record_account_views(&mut self, event: &Event) {
        let account = self.schema.type_named("Account").expect("the sample has accounts");
        let (entity, number, seen) = match event {
            Event::Shown(showing) if showing.part == Part::Base => {
                let What::Changed { property, change, .. } = &showing.what else {
                    return;
                };
                let found = account.property(*property);
                let hash = match (found, &change.edit) {
                    (Some(found), Edit::Set(value)) => property_hash(&found.data_type, value),
                    _ => None,
                };
                let seen = hash.map(|hash| (*property, hash));
                (showing.entity, showing.number, seen.into_iter().collect())
            }
            Event::Refreshed {
                part: Part::Base,
                entity,
                upto,
                properties,
                ..
            } => (*entity, *upto, properties.clone()),
            _ => return,
        };
        let is_view = |member| account.property(member).is_some_and(|found| found.account.is_some());
        let views = seen.into_iter().filter(|(member, _)| is_view(*member));
        self.views.extend(views.map(|(member, hash)| Shown {
            entity,
            number,
            member,
            hash,
        }));
    }

    pub(crate) fn record_call(&mut self, called: &str, args: &[Value]) {
        match (called, args) {
            ("onHoldings", [Value::Dict(holdings)]) => {
                self.carried = Some(Assets::read(&holdings[1]));
                self.worn = Assets::read(&holdings[2]);
            }
            ("onTrade", [Value::Dict(table)]) => {
                let Value::Dict(trade) = &table[0] else {
                    panic!("{table:?}")
                };
                let shown = Table {
                    stage: number(&table[1]),
                    version: number(&table[2]),
                    own: Assets::read(&table[4]),
                    theirs: Assets::read(&table[5]),
                    accepted: number(&table[6]) != 0,
                    they_accepted: number(&table[7]) != 0,
                };
                self.tables.insert((number(&trade[0]), number(&trade[1])), shown);
            }
            ("onOutcome", [what, done, Value::Unicode(said)]) => {
                self.outcomes.push((number(what), number(done) != 0, said.clone()));
            }
            _ => {}
        }
    }

    pub(crate) fn refusals(&self) -> usize {
        self.outcomes.iter().filter(|(_, done, _)| !done).count()
    }

    /// Processes received events, and sends what is due.
    pub(crate) fn drive(&mut self) {
        while let Some(Some(event)) = self.client.next().now_or_never() {
            self.take(&event);
        }
    }
}

/// A player whose client is driven continuously.
pub(crate) struct Hand {
    player: Arc<Mutex<Player>>,
    driving: JoinHandle<()>,
}

impl Hand {
    pub(crate) async fn log_in(realm: &Played, name: &'static str) -> Self {
        let player = Player {
            name,
            schema: Arc::clone(&realm.schema),
            client: realm.client(name, "the password"),
            avatar: None,
            carried: None,
            worn: Assets::default(),
            tables: BTreeMap::new(),
            views: Vec::new(),
            outcomes: Vec::new(),
        };
        let player = Arc::new(Mutex::new(player));
        let driven = Arc::clone(&player);
        let driving = tokio::spawn(async move {
            loop {
                driven.lock().expect("the lock is not poisoned").drive();
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        let hand = Self { player, driving };
        hand.until("to hold something", |player| {
            player.carried.as_ref().is_some_and(|held| *held != Assets::default()) && player.trader().is_some()
        })
        .await;
        hand
    }

    /// Leaves the world and returns.
    pub(crate) async fn relog(self, realm: &Played) -> Self {
        let name = self.leave().await;
        Self::log_in(realm, name).await
    }

    pub(crate) async fn leave(self) -> &'static str {
        self.send_call("logOff", &[]);
        self.driving.abort();
        let mut player = self.look();
        player.client.leave();
        player.name
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Player> {
        self.player.lock().expect("the lock is not poisoned")
    }

    pub(crate) fn carried(&self) -> Assets {
        self.look().carried().clone()
    }

    pub(crate) fn table(&self, trade: TradeId) -> Table {
        self.look().tables[&trade].clone()
    }

    pub(crate) fn refusals(&self) -> usize {
        self.look().refusals()
    }

    pub(crate) fn id(&self) -> u64 {
        self.look().trader().expect("it is in the world")
    }

    pub(crate) fn send_call(&self, method: &str, args: &[Value]) {
        self.look().send_call(method, args);
    }

    pub(crate) fn offer(&self, trade: TradeId, assets: &Assets) {
        self.send_call("offer", &[written(trade), assets.value()]);
    }

    pub(crate) fn accept(&self, trade: TradeId, version: u64) {
        self.send_call("acceptTrade", &[written(trade), Value::UInt(version)]);
    }

    /// Accepts the current contents of the table.
    pub(crate) fn accept_now(&self, trade: TradeId) {
        let version = self.table(trade).version;
        self.accept(trade, version);
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Player) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so(&self.look()) {
            {
                let player = self.look();
                assert!(
                    Instant::now() < deadline,
                    "{} waits in vain {what}: carries {:?}, wears {:?}, {:?}, {:?}",
                    player.name,
                    player.carried,
                    player.worn,
                    player.tables,
                    player.outcomes
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until there are no more outcomes of earlier wishes.
    pub(crate) async fn settle(&self) {
        let (mut seen, mut since) = (self.look().outcomes.len(), Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = self.look().outcomes.len();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Proposes a trade and waits until both players see it.
    pub(crate) async fn propose(&self, other: &Hand) -> TradeId {
        let known: Vec<TradeId> = self.look().tables.keys().copied().collect();
        self.send_call("proposeTrade", &[Value::UInt(other.id())]);
        let new = |player: &Player| player.tables.keys().copied().find(|trade| !known.contains(trade));
        self.until("for its proposal", |player| new(player).is_some()).await;
        let trade = new(&self.look()).expect("it was waited for");
        other
            .until("for a proposal", |player| player.tables.contains_key(&trade))
            .await;
        trade
    }
}

pub(crate) fn number(value: &Value) -> u64 {
    match value {
        Value::UInt(number) => *number,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn written((asker, number): TradeId) -> Value {
    Value::Dict(vec![Value::UInt(asker), Value::UInt(number)])
}
