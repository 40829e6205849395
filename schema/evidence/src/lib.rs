//! What a statement about the past rests on, and how both are handed on to somebody who trusts nobody.
//!
//! Responsible for: what follows from entries of the ledger ([`Question`], [`Answer`]), each held against the order that asked
//! for it ([`Cited`]); the files in which an answer is handed on with all that is needed to check it ([`Bundle`], [`Receipt`]);
//! and that check, which says what is proven and what is not ([`Verdict`]). Not responsible for: where entries are found and
//! proofs are made, which is the business of whoever has the archive. It knows no store, no bus and no clock, so that whoever
//! checks a file needs little else.
//!
//! Reading order: [`Cited`], then [`Question`] with [`Item`], [`Trade`] and [`Owned`]; [`Excerpt`], [`Bundle`], [`check()`],
//! [`Receipt`].

mod bundle;
mod check;
mod cited;
mod excerpt;
mod holdings;
mod item;
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

pub use bundle::{Bundle, BundleError, EVENTS, Proven, TOLD};
pub use check::{Anchors, Wrong, check};
pub use cited::{About, Asked, Cited, Contradiction, Found, asks, concerns};
pub use excerpt::{Excerpt, ExcerptError, TakeError};
pub use holdings::{Inventory, apply};
pub use item::{Item, ItemStep};
pub use owned::{Owned, OwnedStep};
pub use question::{Answer, NoQuestion, Question, Sieve, read_trade};
pub use receipt::{Receipt, ReceiptError, check_receipt};
pub use span::{Span, Until};
pub use terms::{Lexicon, Terms};
pub use trade::{Trade, TradeSide, TradeStage, TradeStep};
pub use verdict::Verdict;
