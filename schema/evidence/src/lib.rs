//! Statements about the past with their evidence, and the files in which both are passed on to a reader who need not
//! trust the sender.
//!
//! Responsible for: the conclusions from ledger entries ([`Question`], [`Answer`]), each entry checked against the
//! order that it answers ([`Cited`]); the files that hold an answer with everything needed to check it ([`Bundle`],
//! [`Receipt`]); and that check, which lists what is proven and what is not ([`Verdict`]). Not responsible for: finding
//! entries and making proofs, which needs the archive. It depends on no store, bus or clock, so a program that checks a
//! file needs little else.
//!
//! Reading order: [`Cited`], then [`Question`] with [`Item`], [`Trade`] and [`Owned`]; [`Excerpt`], [`Bundle`],
//! [`check()`], [`Receipt`].

mod bundle;
mod check;
mod cited;
mod excerpt;
mod holdings;
mod item;
mod lineage;
mod order_words;
mod owned;
mod question;
mod receipt;
mod report;
mod span;
mod terms;
mod trade;
mod verdict;
pub mod words;
pub mod zip;

pub use bundle::{Bundle, BundleError, EVENTS, LEDGER_SHARD, MAX_ASSETS, Proven, ShardLog};
pub use check::{Anchors, Wrong, check};
pub use cited::{About, ArchivedEvent, Asked, Cited, Contradiction, asks, concerns};
pub use excerpt::{Excerpt, ExcerptError, TakeError};
pub use holdings::{Inventory, apply};
pub use item::{Item, ItemStep};
pub use lineage::{DeclaredLost, Lineage};
pub use owned::{Owned, OwnedStep};
pub use question::{Answer, NoQuestion, Question, Sieve, read_trade};
pub use receipt::{Receipt, ReceiptError, check_receipt};
pub use span::{Cut, ShardLeaf, Span, Until};
pub use terms::{Lexicon, Terms};
pub use trade::{Trade, TradeSide, TradeStage, TradeStep};
pub use verdict::Verdict;
