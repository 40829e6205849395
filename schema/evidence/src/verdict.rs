//! What is proven and what is not, in plain words.

use std::collections::BTreeMap;

use annals_event::ledger::Stage;
use annals_ids::{Shard, WallTime};
use annals_proof::{LogEnd, TreeHead, Trusted};

use crate::{Answer, LEDGER_SHARD, Lexicon, Lineage, Question, ShardLeaf, Span, TradeStage, report, words};

/// What a bundle or a receipt proves to a verifier with the given anchors.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub(crate) subject: Subject,
    /// The realm's name, as in its batches.
    pub(crate) realm: String,
    /// The leaves of its events.
    pub(crate) leaves: Vec<ShardLeaf>,
    /// What is known of the checkpoint of each shard's log; the ledger's is always one of them.
    pub(crate) logs: BTreeMap<Shard, Believed>,
}

/// The subject of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    /// A bundle.
    Answer(Question, Answer, Lexicon),
    /// A receipt: the exchange, in words.
    Exchange(String),
}

/// What is known of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Believed {
    pub(crate) trusted: Trusted,
    /// The keys of the log, and of those that it continues; the last one has signed.
    pub(crate) lineage: Lineage,
    pub(crate) key_trust: KeyTrust,
    /// Checkpoints stored outside that it continues.
    pub(crate) kept: Vec<TreeHead>,
    /// Number of witness keys that were given.
    pub(crate) witnesses: usize,
    /// Number of signatures on it, by any key.
    pub(crate) signatures: usize,
}

/// Why a key is taken to be the log's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyTrust {
    /// Only because the evidence says so.
    Unknown,
    /// The verifier provided it.
    Given,
    /// A key that the verifier provided has named it, directly or through the keys between them.
    Named,
}

impl Verdict {
    /// The subject, in a line.
    #[must_use]
    pub fn subject(&self) -> String {
        let realm = words::text(&self.realm);
        match &self.subject {
            Subject::Answer(question, ..) => format!("evidence: {question} of the realm {realm}"),
            Subject::Exchange(_) => format!("receipt of a trade in the realm {realm}"),
        }
    }

    /// The statement, in a line or a few.
    #[must_use]
    pub fn statement(&self) -> String {
        match &self.subject {
            Subject::Answer(_, answer, lexicon) => report::said(answer, lexicon),
            Subject::Exchange(said) => said.clone(),
        }
    }

    /// What is proven, one sentence each.
    #[must_use]
    pub fn proven(&self) -> Vec<String> {
        let mut said = Vec::new();
        let events = self.leaves.len();
        said.push(match &self.subject {
            Subject::Answer(..) => format!(
                "The report follows from the {events} events in it and says nothing else: it was worked out from them again, and \
                 each entry of the ledger answers the order that is with it."
            ),
            Subject::Exchange(_) => format!(
                "What the receipt says follows from the {events} events in it: it was worked out from them again."
            ),
        });
        for (shard, believed) in &self.logs {
            said.extend(self.proven_of(*shard, believed));
        }
        said
    }

    /// What is proven by the log of a shard.
    fn proven_of(&self, shard: Shard, believed: &Believed) -> Vec<String> {
        let TreeHead { size, root } = believed.trusted.checkpoint.head;
        let origin = words::text(&believed.trusted.checkpoint.origin);
        let events = self.leaves.iter().filter(|leaf| leaf.shard == shard).count();
        let which = match self.logs.len() {
            1 => "Each of these events is".to_owned(),
            _ => format!("Each of the {events} of these events that are on shard {shard} is"),
        };
        let mut said = vec![format!(
            "{which}, byte for byte, in the log {origin} as it had {size} batches with the root {root}: nobody \
             can have changed one without that root being another."
        )];
        let key = believed.lineage.keys.last();
        let key = key.map(|key| words::text(&key.to_string())).unwrap_or_default();
        said.push(match believed.key_trust {
            KeyTrust::Unknown => format!("The holder of the key {key} has signed that root."),
            KeyTrust::Given => format!("The key {key}, which you gave, has signed that root."),
            KeyTrust::Named => format!(
                "The key {key} has signed that root; a key that you gave has named it to follow, itself or by way of those between \
                 them."
            ),
        });
        for (name, time) in &believed.trusted.cosigned {
            let date = words::date(WallTime(time.saturating_mul(1_000)));
            let name = words::text(name.as_str());
            said.push(format!(
                "The witness {name}, whose key you gave, has seen the same root, at the latest at {date} by its clock."
            ));
        }
        for TreeHead { size: kept, .. } in &believed.kept {
            said.push(format!(
                "The log as it had {size} batches begins with the {kept} of the checkpoint that you kept: nothing among those \
                 was changed, taken out or put in since."
            ));
        }
        said
    }

    /// What is not proven, one sentence each, with what would prove it, where possible.
    #[must_use]
    pub fn open(&self) -> Vec<String> {
        let mut open = Vec::new();
        for (shard, believed) in &self.logs {
            open.extend(self.open_of(*shard, believed));
        }
        let ledger = self.logs.get(&LEDGER_SHARD);
        let size = ledger.map_or(0, |believed| believed.trusted.checkpoint.head.size);
        open.extend(match &self.subject {
            Subject::Answer(_, answer, _) => left_out(answer).map(|what| {
                format!(
                    "That nothing was left out. {what} So could what came at the end, or after the first {size} batches of the log."
                )
            }),
            Subject::Exchange(_) => {
                Some("What was done before that in the trade, and what became of the assets since.".to_owned())
            }
        });
        open.push(
            "That the realm wrote down what truly happened, and when. A log proves that nothing was changed after it was written; \
             times are those of the realm's own clocks."
                .to_owned(),
        );
        open
    }

    /// What the log of a shard leaves unproven.
    fn open_of(&self, shard: Shard, believed: &Believed) -> Vec<String> {
        let of_shard = match self.logs.len() {
            1 => String::new(),
            _ => format!(" of shard {shard}"),
        };
        let mut open = Vec::new();
        let Believed {
            key_trust,
            kept,
            trusted,
            witnesses,
            signatures,
            lineage,
        } = believed;
        if *key_trust == KeyTrust::Unknown {
            open.push(
                match self.logs.len() {
                    1 => "That this key is the realm's.".to_owned(),
                    _ => format!("That the key that has signed the log of shard {shard} is the realm's."),
                } + " Anybody can make a key and sign a history of their own with it. Compare the key with one that you have \
                     from elsewhere, with --key.",
            );
        }
        open.extend(lineage.ends.iter().map(declared_lost));
        let most = kept.iter().map(|head| head.size).max().unwrap_or(0);
        let behind = self
            .leaves
            .iter()
            .filter(|leaf| leaf.shard == shard && leaf.leaf.0 >= most)
            .count();
        if trusted.cosigned.is_empty() && behind > 0 {
            let which = match (most, behind) {
                (0, _) => String::new(),
                (_, 1) => {
                    format!(", beyond the {most} batches of the checkpoint that you kept: one of the events lies there")
                }
                _ => format!(
                    ", beyond the {most} batches of the checkpoint that you kept: {behind} of the events lie there"
                ),
            };
            let checkpoint = if most == 0 {
                "A checkpoint"
            } else {
                "A newer checkpoint"
            };
            open.push(format!(
                "That the realm shows everybody the same history{of_shard}{which}. Anyone with its key can sign another one. {checkpoint} that \
                 somebody else has kept (--checkpoint), or the key of a witness that has cosigned (--witness), would show that."
            ));
        }
        if *witnesses == 0 && *signatures > trusted.signed.len() {
            open.push(
                "What witnesses say: others have put their names to the checkpoint, and none of their keys was given (--witness)."
                    .to_owned(),
            );
        }
        open
    }
}

/// What the end of an earlier log leaves unproven.
fn declared_lost(end: &LogEnd) -> String {
    let [ended, operator, reason] = [end.ended.as_str(), &end.operator, &end.reason].map(words::text);
    let (signed, continued, when) = (end.signed.size, end.continued.size, words::date(end.at));
    format!(
        "What the earlier log {ended} had signed beyond its first {continued} of {signed} batches. {operator} declared it lost \
         at {when}, for the reason \"{reason}\", after the realm had adopted its log again. A checkpoint of that log with more \
         than {continued} batches shows what was signed, and that it was given up."
    )
}

/// What could be omitted from an answer without being noticed. Tests omit all of it, and show that any other omission
/// is found.
fn left_out(answer: &Answer) -> Option<&'static str> {
    let stage = match answer {
        Answer::Item(_) => {
            return Some(
                "Each step begins where the one before ended. But that the item went somewhere and came back to the same place \
                 could be left out unnoticed.",
            );
        }
        Answer::Account(_) => {
            return Some(
                "The account never gives what it does not have, and never gets an item that it has. But whatever it got, gave or \
                 asked for in vain without which that is still so could be left out unnoticed: it may have had more, or less, than \
                 shown here.",
            );
        }
        Answer::Trade(trade) => trade.stage_within(&Span::default())?,
    };
    match stage {
        TradeStage::Begun(Stage::Settled) => Some(
            "Each change of what lay on the tables is here, for both have accepted a version that counts them. But an acceptance \
             that another offer undid, or an order that was refused, could be left out unnoticed.",
        ),
        TradeStage::Begun(_) => Some(
            "Whatever left a table had come to it. But other offers, what was offered and withdrawn again, acceptances, and orders \
             that were refused could be left out unnoticed.",
        ),
        // It has only this one step.
        TradeStage::Refused(_) => None,
    }
}
