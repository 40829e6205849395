//! The client SDK: log in, see entities, call methods, resume.
//!
//! Responsible for: the client's side of `docs/client-protocol.md`. [`ClientCore`] decides everything and does no I/O,
//! so that a model or a simulation can drive it; [`Client`] is that core on a QUIC endpoint. Not responsible for: the
//! game's reaction to what it sees.

mod callbacks;
mod calls;
mod downloads;
mod event;
mod held_ack;
mod link;
mod moving;
mod playing;
mod probe;
mod sent_moves;
mod session;
mod shell;
mod trust;
pub mod typed;
mod update_gaps;
mod view;
pub mod walk;

pub use annals_event::CallError as AnswerError;
pub use annals_wire::client::{Credentials, DownloadId, Password, Reads, Token};
pub use callbacks::{Callbacks, Changed, NoSuchProperty};
pub use calls::{CallError, MAX_KEPT_BYTES, MAX_KEPT_CALLS, MAX_LINKS};
pub use event::{Attempt, Counters, EndReason, Event, Input, Millis, Output, Showing, What};
pub use session::ClientCore;
pub use shell::{Client, Config, client_endpoint};
pub use trust::Trust;
pub use update_gaps::{GAP, SILENCE, Silence};
pub use view::{EntityView, View};
