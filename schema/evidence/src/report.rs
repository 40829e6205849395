//! The answer in words, for a reader who has to decide and does not know the system.

use std::{collections::BTreeMap, fmt::Write as _};

use annals_event::ledger::Order;
use annals_ids::Shard;
use annals_proof::Checkpoint;

use crate::{Answer, Bundle, Cited, Lexicon, ShardLeaf, Span, Terms, bundle::checkpoint_name, words};

/// Maximum line length (columns).
const WIDTH: usize = 100;

/// Explanations of the terms in it.
const MEANINGS: &[&str] = &[
    "An entry is a line of the realm's ledger: what moves assets, or was asked to and was refused. Times are those of the clock \
     of the process that was asked, in UTC.",
    "A stored entity is an account or a character, by its number in the realm's database, through all its lives. What it holds \
     is in slots; slot 0 is the inventory. Kinds of assets are the game's: a kind is either counted, or made of items, each of \
     which has a number of its own that is never used again.",
    "The line \"asked by\" names the call that led to the entry, and then the batch and event of the log in which that was \
     written down before anything came of it.",
    "What is on the table of a trade has left its owner and belongs to nobody until the trade ends: then it goes to the other \
     party, or back. Whoever accepts a trade accepts one version of it; each change of what is on the tables makes another \
     version, which nobody has accepted yet.",
];

/// Explanation of operators, added if the answer has an action of one.
const OF_OPERATORS: &str = "An operator is somebody who looks after the realm, under the name that they gave. What they grant \
     or take is written down with that name, the command they used, the number of the action, and their reason; it is an \
     order of the account whose it was, and the ledger executes one action once.";

/// Explanation of the names of kinds and slots, added if there are any.
const OF_NAMES: &str = "Names of kinds and slots are those that the world gave them when the entry was made; they stand in the \
     definitions that are with it, in the folder schemas, and what they are called at another time is not said here. The numbers \
     never change their meaning.";

/// The report; deterministic for a bundle.
pub(crate) fn render(
    (answer, lexicon): (&Answer, &Lexicon),
    bundle: &Bundle,
    logs: &BTreeMap<Shard, Checkpoint>,
    mut files: impl Iterator<Item = String>,
) -> String {
    let (question, realm) = (bundle.question, words::text(bundle.realm()));
    let mut out = format!(
        "EVIDENCE: {question} of the realm {realm}\n\n{}\n",
        said(answer, lexicon)
    );
    for (number, (cited, lines)) in (1..).zip(steps(answer, lexicon)) {
        let place = |at, event, leaf: ShardLeaf, file: Option<String>| {
            let shard = match logs.len() {
                1 => String::new(),
                _ => format!(" of shard {}", leaf.shard),
            };
            let leaf = leaf.leaf;
            format!("{}: batch {at} #{event}, leaf {leaf}{shard}", file.unwrap_or_default())
        };
        let of_entry = place(cited.at, cited.event, cited.leaf, files.next());
        let asked = cited.asked.as_ref();
        let asked = asked.map(|asked| place(asked.at, asked.event, asked.leaf, files.next()));
        let mut all = vec![
            ("when", words::date(cited.entry.wall)),
            ("entry", cited.entry.number.to_string()),
            ("what", lexicon.under(cited.schema).order(cited)),
            ("outcome", words::outcome(cited.entry.outcome)),
            ("asked by", words::asker(cited)),
        ];
        all.extend(lines);
        all.push(("proof of the entry", of_entry));
        all.extend(asked.map(|asked| ("proof of the asking", asked)));
        put(&mut out, format_args!("\nStep {number}\n"));
        for (name, value) in all {
            put(&mut out, format_args!("  {name:<20}{value}\n"));
        }
    }
    put(&mut out, format_args!("\nWHAT THIS RESTS ON\n"));
    rests_on(&mut out, logs);
    paragraph(
        &mut out,
        "annals-verify checks all of this without the realm and without a network, works this report out from the events again, \
         and says what is proven and what is not: annals-verify FILE --key KEY, where KEY is the log's key as you know it from \
         elsewhere. This report is worth nothing without that.",
    );
    put(&mut out, format_args!("\nWHAT THE WORDS MEAN\n"));
    MEANINGS.iter().for_each(|meaning| paragraph(&mut out, meaning));
    if !lexicon.schemas().is_empty() {
        paragraph(&mut out, OF_NAMES);
    }
    let orders = answer
        .cited()
        .into_iter()
        .filter_map(|cited| cited.entry.order.as_ref());
    if orders.filter_map(Order::warrant).next().is_some() {
        paragraph(&mut out, OF_OPERATORS);
    }
    out
}

/// The answer in one sentence.
pub(crate) fn said(answer: &Answer, lexicon: &Lexicon) -> String {
    let terms = |cited: Option<&Cited>| cited.map_or_else(Terms::default, |cited| lexicon.under(cited.schema));
    match answer {
        Answer::Item(item) => {
            let last = item.steps.last();
            let terms = terms(last.map(|step| &step.cited));
            let place = last.map_or_else(String::new, |step| terms.place(step.to));
            let subject = terms.subject(item.serial, item.kind);
            format!("{}: {place}.", subject.replacen("item", "Item", 1))
        }
        Answer::Trade(trade) => format!(
            "Trade {} of stored entity {} (the proposer) with stored entity {} (the partner): {}.",
            trade.id,
            trade.proposer,
            trade.partner,
            trade
                .stage_within(&Span::default())
                .map_or_else(String::new, words::stage)
        ),
        Answer::Account(owned) => {
            let last = owned.steps.last();
            let terms = terms(last.map(|step| &step.cited));
            let has = last.map_or_else(String::new, |step| terms.slots(&step.held.after));
            format!("Stored entity {} has {has}.", owned.holder)
        }
    }
}

type Lines = Vec<(&'static str, String)>;

/// The entry of each step, and further remarks on it.
fn steps<'a>(answer: &'a Answer, lexicon: &Lexicon) -> Vec<(&'a Cited, Lines)> {
    match answer {
        Answer::Item(item) => {
            let lines = |step: &crate::ItemStep| {
                let terms = lexicon.under(step.cited.schema);
                vec![("from", terms.place(step.from)), ("to", terms.place(step.to))]
            };
            item.steps.iter().map(|step| (&step.cited, lines(step))).collect()
        }
        Answer::Trade(trade) => {
            let lines = |step: &crate::TradeStep| of_trade(step, lexicon.under(step.cited.schema));
            trade.steps.iter().map(|step| (&step.cited, lines(step))).collect()
        }
        Answer::Account(owned) => {
            let lines = |step: &crate::OwnedStep| {
                let terms = lexicon.under(step.cited.schema);
                let (before, after) = (terms.slots(&step.held.before), terms.slots(&step.held.after));
                vec![("had before", before), ("had after", after)]
            };
            owned.steps.iter().map(|step| (&step.cited, lines(step))).collect()
        }
    }
}

fn of_trade(step: &crate::TradeStep, terms: Terms<'_>) -> Lines {
    let table = |side: &crate::TradeSide| {
        let accepted = if side.accepted { ", accepted" } else { "" };
        format!("{}{accepted}", terms.slots(&side.table))
    };
    vec![
        ("moved", terms.moved(&step.cited.entry)),
        ("the trade is then", words::stage(step.stage)),
        ("version", step.version.to_string()),
        ("proposer's table", table(&step.proposer)),
        ("partner's table", table(&step.partner)),
    ]
}

/// The logs in which the events are.
fn rests_on(out: &mut String, logs: &BTreeMap<Shard, Checkpoint>) {
    let log = |checkpoint: &Checkpoint| {
        let origin = words::text(&checkpoint.origin);
        let (size, root) = (checkpoint.head.size, checkpoint.head.root);
        format!("the log {origin}, as that was when it had {size} batches with the root {root}")
    };
    if let [only] = &logs.values().collect::<Vec<_>>()[..] {
        let log = log(only);
        let said = format!(
            "Each step is an event in {log}. That is signed in checkpoint.txt; the files named in a step prove that its event \
             is there, as it stands here."
        );
        return paragraph(out, &said);
    }
    paragraph(
        out,
        "Each step is an event in the log of the ledger's shard, and the asking of some steps one in the log of another \
         shard. The files named in a step prove that its events are there, as they stand here.",
    );
    for (shard, checkpoint) in logs {
        let (log, name) = (log(checkpoint), checkpoint_name(*shard));
        paragraph(out, &format!("Shard {shard} has {log}. That is signed in {name}."));
    }
}

/// Appends an empty line, and a text wrapped to a width that can be read and printed.
fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        match width {
            0 => {}
            _ if width + 1 + length > WIDTH => {
                out.push('\n');
                width = 0;
            }
            _ => {
                out.push(' ');
                width += 1;
            }
        }
        out.push_str(word);
        width += length;
    }
    out.push('\n');
}

fn put(out: &mut String, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words)
        .expect("invariant: a string takes what is written into it");
}
