//! A receipt for the parties of a trade: what was exchanged, between whom and when, with the proof, as text.
//!
//! ```text
//! receipt  = "annals trade receipt v1\n"
//!            "realm " name "\n"
//!            "trade " id ", settled " time "\n"
//!            "stored entity " id " gave stored entity " id ": " assets "\n"      the proposer's side
//!            "stored entity " id " gave stored entity " id ": " assets "\n"      the partner's side
//!            "signed by " verifier "\n"
//!            "\n" proof "\n" proof
//! ```
//! The proofs are C2SP tlog-proofs of two entries of the ledger, the proposal and the exchange, each with an
//! [`Excerpt`] as its `extra`; the lines above state only what follows from them. The only data of other entities in it
//! is in the headers of those two batches: the ids of entities that called the ledger's owner.

use std::collections::BTreeMap;

use annals_event::ledger::{Assets, Entry, Holder, Order, Outcome, Side};
use annals_ids::{DatabaseId, TradeId, WallTime};
use annals_proof::{SignedNote, VerifierKey, checkpoint::CheckpointError, key::KeyError};
use thiserror::Error;

use crate::{
    Anchors, BundleError, LEDGER_SHARD, Lineage, Proven, Terms, Verdict, Wrong,
    check::{Signed, included},
    verdict::{Believed, Subject},
    words,
};

/// Maximum size of a receipt that is read (bytes): some lines, and two proofs whose notes may have many signatures.
pub(crate) const RECEIPT_BYTES: usize = 4 << 20;

const FIRST_LINE: &str = "annals trade receipt v1\n";
const SIGNED: &str = "signed by ";
const PROOF: &str = "\nc2sp.org/tlog-proof@v1\n";

/// A receipt. Not verified until [`check_receipt`].
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The key that has signed the checkpoint.
    pub key: VerifierKey,
    /// The checkpoint whose tree contains both entries.
    pub checkpoint: SignedNote,
    /// The entry that proposed the trade.
    pub proposed: Proven,
    /// The entry that settled it.
    pub settled: Proven,
}

/// Why bytes are not a receipt, or a receipt contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReceiptError {
    /// They are of another kind.
    #[error("not a receipt of a trade: wrong first line")]
    Kind,
    /// They are longer than a receipt can be.
    #[error("a receipt has at most {RECEIPT_BYTES} bytes; this has {bytes}")]
    Size {
        /// Number of bytes.
        bytes: usize,
    },
    /// Parts are missing.
    #[error("the receipt was truncated or changed: {0} is missing")]
    Missing(&'static str),
    /// The key cannot be read.
    #[error("the key that the receipt names cannot be read")]
    Key(#[from] KeyError),
    /// A proof cannot be read.
    #[error("a proof in the receipt cannot be read")]
    Proof(#[source] Box<BundleError>),
    /// The checkpoint cannot be read.
    #[error("the checkpoint in the receipt cannot be read")]
    Checkpoint(#[from] CheckpointError),
    /// The two proofs have different checkpoints.
    #[error("the two proofs in the receipt are of different checkpoints")]
    OtherCheckpoint,
    /// The entries are not an exchange.
    #[error("the two entries in the receipt are not the proposal and the settlement of one trade")]
    NoExchange,
    /// The statement differs from what follows from the entries.
    #[error("the receipt's text does not follow from its proofs: one of the two was changed")]
    Words,
}

/// The exchange.
struct Exchange {
    trade: TradeId,
    parties: [DatabaseId; 2],
    given: [Assets; 2],
    settled: WallTime,
}

impl Receipt {
    /// Encodes the text.
    ///
    /// # Errors
    /// When its entries are not those of an exchange.
    pub fn write(&self) -> Result<String, ReceiptError> {
        let realm = words::text(&self.settled.excerpt.header().realm);
        let (said, key) = (self.exchange()?.said(), &self.key);
        let [proposed, settled] = [&self.proposed, &self.settled].map(|event| event.file(&self.checkpoint));
        Ok(format!(
            "{FIRST_LINE}realm {realm}\n{said}\n{SIGNED}{key}\n\n{proposed}\n{settled}"
        ))
    }

    /// Reads the text: checks that it is complete and that its statement follows from the entries. Proofs and
    /// signatures are not checked.
    ///
    /// # Errors
    /// The first error found.
    pub fn read(bytes: &[u8]) -> Result<Self, ReceiptError> {
        if bytes.len() > RECEIPT_BYTES {
            return Err(ReceiptError::Size { bytes: bytes.len() });
        }
        if !bytes.starts_with(FIRST_LINE.as_bytes()) {
            return Err(ReceiptError::Kind);
        }
        let text = str::from_utf8(bytes).map_err(|_| ReceiptError::Words)?;
        let mut parts = text.split(PROOF);
        let said = parts.next().unwrap_or_default();
        let key = said.trim_end().rsplit_once('\n').map_or("", |(_, last)| last);
        let key = key
            .strip_prefix(SIGNED)
            .ok_or(ReceiptError::Missing("the key"))?
            .parse()?;
        let mut proof = || {
            let part = parts.next().ok_or(ReceiptError::Missing("a proof"))?;
            let file = format!("{}{part}", &PROOF[1..]);
            Proven::read("it", file.as_bytes()).map_err(|error| ReceiptError::Proof(Box::new(error)))
        };
        let ((proposed, checkpoint), (settled, other)) = (proof()?, proof()?);
        if checkpoint != other {
            return Err(ReceiptError::OtherCheckpoint);
        }
        let receipt = Self {
            key,
            checkpoint,
            proposed,
            settled,
        };
        match receipt.write()? == text {
            true => Ok(receipt),
            false => Err(ReceiptError::Words),
        }
    }

    fn exchange(&self) -> Result<Exchange, ReceiptError> {
        let (first, second) = (self.proposed.excerpt.header(), self.settled.excerpt.header());
        let is_one_log = (&first.realm, first.owner) == (&second.realm, second.owner);
        let entries = [&self.proposed, &self.settled].map(|event| event.found().entry());
        let exchange = match entries {
            [Ok(proposed), Ok(settled)] if is_one_log => Exchange::of(proposed, settled),
            _ => None,
        };
        exchange.ok_or(ReceiptError::NoExchange)
    }
}

impl Exchange {
    /// The exchange; `None` if the one entry does not propose a trade, or the other does not settle it.
    fn of(proposed: &Entry, settled: &Entry) -> Option<Self> {
        let trade = TradeId(proposed.of);
        let Some(Order::Propose { with, .. }) = proposed.order else {
            return None;
        };
        let is_accepted = matches!(settled.order, Some(Order::Accept { trade: id, .. }) if id == trade);
        let parties = [proposed.holder, with];
        let is_in_order = proposed.number < settled.number && parties.contains(&settled.holder);
        let is_done = proposed.outcome == Outcome::Pending && settled.outcome == Outcome::Posted;
        if !is_accepted || !is_in_order || !is_done || parties[0] == parties[1] {
            return None;
        }
        let given = [Side::Proposer, Side::Partner].map(|side| moved(settled, Holder::Trade(trade, side), -1));
        let taken = parties.map(|party| moved(settled, Holder::Stored(party), 1));
        let [given, taken] = [given, taken].map(|[first, second]| Some([first?, second?]));
        let (given, [first, second]) = (given?, taken?);
        let all = settled.postings.len() + settled.passages.len();
        let (of_proposer, of_partner) = (&given[0], &given[1]);
        let is_whole = [&second, &first] == [of_proposer, of_partner] && all > 0;
        let is_alone = settled
            .postings
            .iter()
            .map(|posting| posting.account.place.holder)
            .chain(
                settled
                    .passages
                    .iter()
                    .flat_map(|passage| [passage.from.holder, passage.to.holder]),
            )
            .all(|holder| match holder {
                Holder::Trade(id, _) => id == trade,
                Holder::Stored(party) => parties.contains(&party),
                Holder::World | Holder::Pending(_) => false,
            });
        (is_whole && is_alone).then_some(Self {
            trade,
            parties,
            given,
            settled: settled.wall,
        })
    }

    /// The exchange in words, without the last line end. Kinds are given by number: a receipt does not prove their
    /// names.
    fn said(&self) -> String {
        let [proposer, partner] = self.parties;
        let (trade, when) = (self.trade, words::date(self.settled));
        let [first, second] = [&self.given[0], &self.given[1]].map(|given| Terms::default().assets(given));
        format!(
            "trade {trade}, settled {when}\nstored entity {proposer} gave stored entity {partner}: {first}\n\
             stored entity {partner} gave stored entity {proposer}: {second}"
        )
    }
}

/// The assets that an entry takes from a holder, or with `sign` 1 adds; `None` if it does both.
fn moved(entry: &Entry, holder: Holder, sign: i64) -> Option<Assets> {
    let mut assets = Assets::default();
    for posting in entry
        .postings
        .iter()
        .filter(|posting| posting.account.place.holder == holder)
    {
        if posting.amount.signum() != sign {
            return None;
        }
        let units = Assets::units(posting.account.kind, posting.amount.unsigned_abs());
        assets.add(&units).ok()?;
    }
    for passage in &entry.passages {
        let (here, there) = match sign {
            1 => (passage.to, passage.from),
            _ => (passage.from, passage.to),
        };
        if there.holder == holder {
            return None;
        }
        if here.holder == holder {
            assets.add(&Assets::item(passage.serial, passage.kind)).ok()?;
        }
    }
    Some(assets)
}

/// Verifies a receipt, and returns what it proves.
///
/// # Errors
/// The first error found.
pub fn check_receipt(bytes: &[u8], anchors: &Anchors) -> Result<Verdict, Wrong> {
    let receipt = Receipt::read(bytes)?;
    let lineage = Lineage::of(receipt.key.clone());
    let checkpoint = Signed {
        shard: LEDGER_SHARD,
        note: &receipt.checkpoint,
        lineage: &lineage,
    };
    let (trusted, key_trust) = checkpoint.check(anchors)?;
    let head = trusted.checkpoint.head;
    for (name, event) in [("the proposal", &receipt.proposed), ("the exchange", &receipt.settled)] {
        let name = format!("the receipt ({name})");
        included(event, head).map_err(|source| Wrong::Event { name, source })?;
    }
    let kept = checkpoint.compare(anchors, head, |_| None)?;
    let exchange = receipt.exchange()?;
    let believed = Believed {
        trusted,
        kept,
        key_trust,
        witnesses: anchors.witnesses.len(),
        signatures: receipt.checkpoint.signatures().len(),
        lineage,
    };
    Ok(Verdict {
        subject: Subject::Exchange(exchange.said()),
        realm: receipt.settled.excerpt.header().realm.clone(),
        leaves: vec![receipt.proposed.leaf, receipt.settled.leaf],
        logs: BTreeMap::from([(LEDGER_SHARD, believed)]),
    })
}
