//! The web pages that may connect, by WebSocket and by WebTransport.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Bytes of a refused origin in the log.
const SHOWN_ORIGIN: usize = 128;

/// The web pages that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebOrigins {
    Any,
    /// Pages of these origins, `SCHEME://HOST` or `SCHEME://HOST:PORT`.
    Only(Vec<String>),
}

impl fmt::Display for WebOrigins {
    /// As in the settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Only(origins) => f.write_str(&origins.join(",")),
        }
    }
}

/// Checks the origins of requests. Clones share whether a refusal was reported.
#[derive(Clone, Debug)]
pub(super) struct OriginCheck {
    origins: Arc<WebOrigins>,
    /// Whether a refused origin was reported as a warning: one is enough, and anybody can cause more.
    has_warned: Arc<AtomicBool>,
}

impl OriginCheck {
    pub(super) fn new(origins: WebOrigins) -> Self {
        Self {
            origins: Arc::new(origins),
            has_warned: Arc::default(),
        }
    }

    /// Whether a page of this origin, or without one a program, may connect. A refusal is reported.
    pub(super) fn admits(&self, origin: Option<&[u8]>) -> bool {
        let Some(origin) = origin else {
            return true;
        };
        let admits = match &*self.origins {
            WebOrigins::Any => true,
            WebOrigins::Only(origins) => origins.iter().any(|known| known.as_bytes() == origin),
        };
        if !admits {
            self.report_refused(origin);
        }
        admits
    }

    fn report_refused(&self, origin: &[u8]) {
        let shown = &origin[..origin.len().min(SHOWN_ORIGIN)];
        let origin = String::from_utf8_lossy(shown);
        if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%origin, "a web page of another origin was refused");
        } else {
            tracing::warn!(%origin, "a web page of another origin was refused; see web_origins in the settings");
        }
    }
}
