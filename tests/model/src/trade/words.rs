//! Steps of the trade model in words.

use super::{Ask, Items, Stage, TradeState, TradeStep};

pub(super) fn words(state: &TradeState, step: TradeStep, after: &TradeState) -> String {
    let name = |who: usize| ["A", "B"][who];
    match step {
        TradeStep::Ask(who, ask) => format!("{}'s base records: {}", name(who), asked(ask)),
        TradeStep::Log(who) => format!("{}'s log stores the order", name(who)),
        TradeStep::Crash(who) => format!("{}'s base crashes and loses what is not logged", name(who)),
        TradeStep::Execute(who) => {
            let ask = state.players[who].log[0];
            let what = ask.map_or_else(String::new, asked);
            format!("db executes {}'s order to {what}{}", name(who), came(state, after))
        }
        TradeStep::Receive(who) => format!("{}'s base receives a notice: {}", name(who), knows(after, who)),
        TradeStep::Expire => format!("the trade expires{}", came(state, after)),
    }
}

fn asked(ask: Ask) -> String {
    match ask {
        Ask::Offer(item) => format!("offer {}", items(item)),
        Ask::Withdraw(item) => format!("take back {}", items(item)),
        Ask::Accept(version, seen) => format!("accept version {version} ({} for {})", items(seen[0]), items(seen[1])),
        Ask::Cancel => "cancel".to_owned(),
        Ask::Spend(item) => format!("destroy {}", items(item)),
        Ask::Give(item) => format!("reserve {} for the other", items(item)),
        Ask::Post => "complete the gift".to_owned(),
        Ask::Delete => "be deleted".to_owned(),
    }
}

fn came(state: &TradeState, after: &TradeState) -> String {
    if state.ledger == after.ledger {
        return ": nothing changes".to_owned();
    }
    let ledger = &after.ledger;
    if ledger.deleted != state.ledger.deleted {
        return ": it is deleted".to_owned();
    }
    let stage = match ledger.stage {
        Stage::Open => "",
        Stage::Settled => ", settled",
        Stage::Ended => ", ended",
    };
    format!(
        ": A has {}, B has {}, on the table {} for {}{stage}",
        items(ledger.holds[0]),
        items(ledger.holds[1]),
        items(ledger.tables[0]),
        items(ledger.tables[1])
    )
}

fn knows(state: &TradeState, who: usize) -> String {
    let player = &state.players[who];
    format!(
        "it holds {}, version {}, on the table {} for {}",
        items(player.holds),
        player.version,
        items(player.tables[0]),
        items(player.tables[1])
    )
}

fn items(items: Items) -> &'static str {
    match items {
        0 => "nothing",
        1 => "a",
        2 => "b",
        _ => "a and b",
    }
}
