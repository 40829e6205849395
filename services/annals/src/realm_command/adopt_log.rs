//! `annals realm adopt-log`: a store that is older than its log adopts what the log proves, or gives it up (rule F17).

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use annals_db::{
    adopting::{AdoptError, Adoption, Choice, Decision, LogPlan, Plan},
    comparison::{Beyond, Standing},
    read_cursor,
};
use annals_host::{
    clock,
    comparing::{CompareError, compare, compare_one, is_any_held},
    log::{ReadError, Reader},
    log_source::{About, KeptRealm, Source, SourceError},
    process::Settings,
    telemetry::Chain,
};
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_store::{StoreError, layout::shards};
use annals_wire::Subjects;
use thiserror::Error;

/// Maximum alarms that are printed individually; the rest are counted.
const PRINTED: usize = 20;

/// Take up what the log proves that an older store does not know, or give it up. The realm must not run.
#[derive(Debug, clap::Args)]
pub(super) struct AdoptLog {
    /// Execute the plan; without this it is only printed
    #[arg(long)]
    yes: bool,
    /// Give up all batches unknown to the store, and the missing end of logs that end too early
    #[arg(long, conflicts_with = "give_up_unprovable")]
    discard: bool,
    /// Adopt the batches that the chains prove, and discard those after a hole and those that are missing
    #[arg(long)]
    give_up_unprovable: bool,
    /// Name of the operator, recorded with the decision
    #[arg(long, value_name = "NAME", value_parser = short::<64>, required_if_eq("yes", "true"))]
    by: Option<String>,
    /// Reason, recorded with the decision
    #[arg(long, value_name = "TEXT", value_parser = short::<500>, required_if_eq("yes", "true"))]
    reason: Option<String>,
}

/// Parses a text that is not blank and has at most this many bytes.
fn short<const MOST: usize>(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > MOST {
        return Err(format!("write 1 to {MOST} bytes"));
    }
    Ok(text.to_owned())
}

/// Why nothing was adopted.
#[derive(Debug, Error)]
enum NotAdopted {
    #[error("the realm must be stopped to adopt a log: stop it, and give its data directory with --data")]
    NoData,
    #[error("the realm cannot be read")]
    Source(#[from] SourceError),
    #[error(
        "no log found: the data directory has no nats-server's store, and the server of --nats has no log of the realm"
    )]
    NoLog,
    #[error("no log of shard {0} found: its stream is missing, and the others cannot be adopted without it")]
    NoLogOf(Shard),
    #[error("a process holds owners of the realm: stop all of its processes first")]
    Held,
    #[error("the store holds no realm")]
    NoRealm,
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error("nothing was adopted")]
    Adopt(#[from] AdoptError),
    #[error("the log cannot be read")]
    Log(#[from] ReadError),
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
}

impl AdoptLog {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> ExitCode {
        match self.adopt(kept, settings).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                match error {
                    NotAdopted::Adopt(_) | NotAdopted::Held => ExitCode::FAILURE,
                    _ => ExitCode::from(2),
                }
            }
        }
    }

    async fn adopt(self, kept: &KeptRealm, settings: &Settings) -> Result<(), NotAdopted> {
        if kept.data.is_none() {
            return Err(NotAdopted::NoData);
        }
        let source = kept.source_with_log(settings).await?;
        let any = source.logs.values().next().ok_or(NotAdopted::NoLog)?;
        for shard in shards::all(source.shards().await?) {
            if !source.logs.contains_key(&shard) {
                return Err(NotAdopted::NoLogOf(shard));
            }
        }
        let subjects = Subjects::new(settings.realm.as_str());
        if is_any_held(any.bus(), &subjects, &source.store).await? {
            return Err(NotAdopted::Held);
        }
        let About { schema, .. } = source.about().await?.ok_or(NotAdopted::NoRealm)?;
        let schema = Arc::new(schema);
        if let Some(begun) = Adoption::unfinished(&source.store).await? {
            println!(
                "{} has begun to adopt this log ({:?}); the adoption continues",
                begun.adoption.operator, begun.adoption.reason
            );
            let adoption = Adoption::resume(source.store.clone(), schema).await?;
            let adoption = adoption.ok_or(NotAdopted::NoRealm)?;
            return fold(adoption, &source, &BTreeMap::new()).await;
        }
        let plan = self.plan(&source).await?;
        print(&plan);
        if plan.logs.is_empty() && plan.behind.is_empty() {
            return Err(AdoptError::Nothing.into());
        }
        let (true, Some(operator), Some(reason)) = (self.yes, self.by, self.reason) else {
            println!("nothing was changed; to do this, add --yes --by NAME --reason TEXT");
            return Ok(());
        };
        let decision = Decision {
            at: clock::wall(),
            operator,
            reason,
        };
        let adoption = Adoption::begin(source.store.clone(), schema, &plan, &decision).await?;
        fold(adoption, &source, &plan.ends()).await
    }

    async fn plan(&self, source: &Source) -> Result<Plan, NotAdopted> {
        let choice = match (self.discard, self.give_up_unprovable) {
            (true, _) => Choice::Discard,
            (_, true) => Choice::AdoptProvable,
            _ => Choice::Adopt,
        };
        let mut plan = Plan::default();
        for (shard, history) in &source.logs {
            let of_shard = BTreeMap::from([(*shard, history.clone())]);
            let comparison = compare(&of_shard, &source.store).await?;
            let apart = comparison.logs.values().filter(|log| log.standing != Standing::Agrees);
            for log in apart {
                let (log, reading) = compare_one(history, &source.store, log.owner).await?;
                plan.add((&source.store, *shard), log, &reading.batches, choice).await?;
            }
        }
        Ok(plan)
    }
}

/// Folds the streams to their ends, and completes the adoption.
async fn fold(
    mut adoption: Adoption,
    source: &Source,
    ends: &BTreeMap<OwnerId, BatchNumber>,
) -> Result<(), NotAdopted> {
    for (shard, history) in &source.logs {
        let end = history.end_of(&history.owners().await?).await?;
        let mut reader = Reader::new(history, 1);
        let mut read = 0;
        while read < end {
            let entry = reader.next().await;
            read = entry.sequence;
            adoption.take(*shard, entry.owner, entry.bytes.to_vec()).await?;
        }
    }
    let alarms = adoption.finish(ends).await?;
    alarms.iter().take(PRINTED).for_each(|alarm| println!("ALARM: {alarm}"));
    if alarms.len() > PRINTED {
        println!("ALARM: {} more", alarms.len() - PRINTED);
    }
    for owner in ends.keys() {
        println!(
            "owner {owner}: archived up to batch {}",
            read_cursor(&source.store, *owner).await?.batch
        );
    }
    println!("the store and the log belong together: the realm can be started");
    Ok(())
}

fn print(plan: &Plan) {
    for log in plan.logs.values() {
        print_log(log);
    }
    for log in &plan.behind {
        println!("{log}; what it held beyond that batch and was not archived is discarded");
    }
    let (adopted, discarded) = (plan.adopted(), plan.discarded());
    println!(
        "in all: {} batches with {} events of {} owners are adopted, {} batches with {} events are discarded",
        adopted.batches,
        adopted.events,
        plan.logs.len(),
        discarded.batches,
        discarded.events
    );
    println!(
        "not in any log, and so not restored: accounts and personal keys created, and persons forgotten, after this \
         store was backed up"
    );
}

fn print_log(log: &LogPlan) {
    println!("{}", log.log);
    let kind = log
        .kind
        .map_or("no kind recorded in the log".to_owned(), |kind| kind.to_string());
    let extent = |beyond: &Beyond| format!("{} batches, {} events", beyond.batches, beyond.events);
    println!(
        "  {kind}: {} adopted, {} discarded",
        extent(&log.adopted),
        extent(&log.discarded)
    );
}
