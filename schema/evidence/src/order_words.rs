//! Orders in words: what was asked for, and what was done.

use std::collections::BTreeMap;

use annals_event::ledger::{Assets, Goods, Order};
use annals_ids::{AssetKind, Serial};

use crate::{
    Cited, Terms,
    words::{self, text},
};

impl Terms<'_> {
    /// What was done with an order. The texts are part of the reports in evidence, which a verifier derives again: a
    /// changed text makes earlier evidence fail.
    #[must_use]
    pub fn order(&self, cited: &Cited) -> String {
        let Some(order) = &cited.entry.order else {
            return format!("time was over for {}", cited.entry.of);
        };
        match order {
            Order::Mint { reason, .. } => format!("made: {}", text(reason)),
            Order::Burn { reason, .. } => format!("destroyed: {}", text(reason)),
            Order::Move { from, to, .. } => format!("moved from {} to {}", self.slot(*from), self.slot(*to)),
            Order::Give { to, .. } => format!("given to {}, transfer {}", self.stored(*to), cited.entry.of),
            Order::Post { of } => format!("transfer {of} completed"),
            Order::Void { of } => format!("transfer {of} taken back"),
            Order::Propose { with, .. } => format!("trade proposed to {}", self.stored(*with)),
            Order::Offer {
                assets: offered, trade, ..
            } => format!("offered in trade {trade}: {}", self.assets(offered)),
            Order::Withdraw {
                assets: taken, trade, ..
            } => format!("withdrawn from trade {trade}: {}", self.assets(taken)),
            Order::Accept { trade, version } => format!("version {version} of trade {trade} accepted"),
            Order::Cancel { trade } => format!("trade {trade} cancelled"),
            Order::Grant {
                goods,
                restored,
                warrant,
                ..
            } => {
                let what = match (goods.count(), restored.len()) {
                    (_, 0) => "granted",
                    (0, _) => "given back",
                    _ => "granted and given back",
                };
                format!("{what} by an operator: {}", text(&warrant.reason))
            }
            Order::Take { warrant, .. } => format!("taken by an operator: {}", text(&warrant.reason)),
            Order::Delete => "deleted from the database".to_owned(),
        }
    }

    /// What an order asks for.
    #[must_use]
    pub fn request(&self, order: &Order) -> String {
        match order {
            Order::Mint { slot, goods, reason } => {
                format!("make {} in {}, for {reason:?}", self.goods(goods), self.slot(*slot))
            }
            Order::Burn { slot, assets, reason } => {
                format!("destroy {} of {}, for {reason:?}", self.named(assets), self.slot(*slot))
            }
            Order::Move { from, to, assets } => format!(
                "move {} from {} to {}",
                self.named(assets),
                self.slot(*from),
                self.slot(*to)
            ),
            Order::Give { slot, to, assets, .. } => {
                format!(
                    "reserve {} of {} for entity {to} of the database",
                    self.named(assets),
                    self.slot(*slot)
                )
            }
            Order::Post { of } => format!("complete transfer {of}"),
            Order::Void { of } => format!("void transfer {of}"),
            Order::Propose { with, .. } => format!("open a trade with entity {with} of the database"),
            Order::Offer { trade, slot, assets } => {
                format!("offer {} of {} in trade {trade}", self.named(assets), self.slot(*slot))
            }
            Order::Withdraw { trade, assets, .. } => format!("take back {} from trade {trade}", self.named(assets)),
            Order::Accept { trade, version } => format!("accept version {version} of trade {trade}"),
            Order::Cancel { trade } => format!("cancel trade {trade}"),
            Order::Grant {
                slot,
                goods,
                restored,
                warrant,
            } => format!(
                "{} in {}, {}",
                self.granted(goods, restored),
                self.slot(*slot),
                words::warrant(warrant)
            ),
            Order::Take { slot, assets, warrant } => {
                format!(
                    "destroy {} of {}, {}",
                    self.named(assets),
                    self.slot(*slot),
                    words::warrant(warrant)
                )
            }
            Order::Delete => "delete the entity from the database".to_owned(),
        }
    }

    /// Goods that an operator created, or restored.
    fn granted(&self, goods: &Goods, restored: &BTreeMap<Serial, AssetKind>) -> String {
        let made = (goods.count() > 0).then(|| format!("make {}", self.goods(goods)));
        let back = (!restored.is_empty()).then(|| {
            let items = restored.clone();
            let back = Assets {
                items,
                ..Assets::default()
            };
            format!("give back {}", self.named(&back))
        });
        let granted: Vec<String> = made.into_iter().chain(back).collect();
        granted.join(" and ")
    }

    /// Assets, each with its name.
    #[must_use]
    pub fn named(&self, assets: &Assets) -> String {
        let units = assets.units.iter().map(|(kind, amount)| self.units(*amount, *kind));
        let items = assets.items.iter().map(|(serial, kind)| self.subject(*serial, *kind));
        listed(&units.chain(items).collect::<Vec<_>>())
    }

    /// Assets to be made.
    fn goods(&self, goods: &Goods) -> String {
        let units = goods.units.iter().map(|(kind, amount)| self.units(*amount, *kind));
        let items = goods
            .items
            .iter()
            .map(|(kind, count)| format!("{count} items of {}", self.kind(*kind)));
        listed(&units.chain(items).collect::<Vec<_>>())
    }
}

fn listed(parts: &[String]) -> String {
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}
