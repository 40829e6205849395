//! Trace context on the bus, by W3C: a header `traceparent` that names the trace of a message and the span that sent
//! it.
//!
//! ```text
//! traceparent = version "-" trace "-" span "-" flags
//! version     = "00"                 ; later versions may append "-" and more
//! trace       = 32 hex digits        ; lower case, not all zero
//! span        = 16 hex digits        ; lower case, not all zero
//! flags       = 2 hex digits         ; bit 0: sampled
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use annals_event::Trace;
use async_nats::HeaderMap;
use rustix::rand::{GetRandomFlags, getrandom};
use tracing::Span;

/// The header's name.
const HEADER: &str = "traceparent";

/// Length of a version 00 value, in characters.
const LENGTH: usize = 55;

/// The only defined flag.
const SAMPLED: u8 = 1;

/// The trace of a piece of work, and its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: Trace,
    span: u64,
    sampled: bool,
}

/// A header or text that is not a trace context; readers ignore it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a traceparent")]
pub struct NotATraceparent(String);

impl TraceContext {
    /// A new trace.
    pub fn root() -> Self {
        let mut trace = Trace::default();
        trace[..8].copy_from_slice(&fresh().to_be_bytes());
        trace[8..].copy_from_slice(&fresh().to_be_bytes());
        Self {
            trace,
            span: fresh(),
            sampled: true,
        }
    }

    /// A child span.
    pub fn child(&self) -> Self {
        Self { span: fresh(), ..*self }
    }

    /// A span of a trace that is known from a call or the log; `None` when that was not traced.
    pub fn joining(trace: Trace) -> Option<Self> {
        (trace != Trace::default()).then(|| Self {
            trace,
            span: fresh(),
            sampled: true,
        })
    }

    /// The trace, as in calls and the log.
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// Adds it to a message's headers.
    pub fn inject(&self, headers: &mut HeaderMap) {
        headers.insert(HEADER, self.to_string());
    }

    /// The context in a message's headers. `None` when it is missing or cannot be parsed: tracing is an aid, and never
    /// a reason to refuse a message.
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        headers.get(HEADER)?.as_str().parse().ok()
    }

    /// A span for the log, named `what`, with the ids as fields; disabled when the trace is not sampled. It takes about
    /// a microsecond: for messages and batches, not for entities.
    pub fn span(&self, what: &'static str) -> Span {
        if !self.sampled {
            return Span::none();
        }
        tracing::info_span!("work", what, trace_id = %Hex(&self.trace), span_id = %format_args!("{:016x}", self.span))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{:016x}-{:02x}",
            Hex(&self.trace),
            self.span,
            u8::from(self.sampled)
        )
    }
}

impl FromStr for TraceContext {
    type Err = NotATraceparent;

    fn from_str(text: &str) -> Result<Self, NotATraceparent> {
        read(text).ok_or_else(|| NotATraceparent(text.chars().take(LENGTH).collect()))
    }
}

fn read(text: &str) -> Option<TraceContext> {
    let (version, rest) = hex::<1>(text)?;
    let (trace, rest) = hex::<16>(rest.strip_prefix('-')?)?;
    let (span, rest) = hex::<8>(rest.strip_prefix('-')?)?;
    let (flags, rest) = hex::<1>(rest.strip_prefix('-')?)?;
    let ends = match version {
        [0] => rest.is_empty(),
        [0xff] => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let span = u64::from_be_bytes(span);
    let sampled = flags[0] & SAMPLED != 0;
    (ends && trace != Trace::default() && span != 0).then_some(TraceContext { trace, span, sampled })
}

/// Parses `N` bytes from twice as many lower-case hex digits; also returns the rest of the text.
fn hex<const N: usize>(text: &str) -> Option<([u8; N], &str)> {
    let (digits, rest) = text.split_at_checked(2 * N)?;
    if !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some((bytes, rest))
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A number that no other process draws, except by chance, and this one only once: a counter behind a bijective mixing
/// function (splitmix64), started at a random value. Never zero.
fn fresh() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let mut seed = [0; 8];
        // Without the kernel's randomness the process id distinguishes the processes of one machine.
        if getrandom(&mut seed, GetRandomFlags::empty()) != Ok(seed.len()) {
            seed = u64::from(std::process::id()).to_be_bytes();
        }
        AtomicU64::new(u64::from_be_bytes(seed))
    });
    let mut mixed = NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_example_of_the_standard_is_read_and_written() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(context.to_string(), EXAMPLE);
        assert_eq!(context.trace()[0], 0x0a);
        let unsampled: TraceContext = EXAMPLE.replace("-01", "-00").parse().unwrap();
        assert!(!unsampled.sampled && unsampled.span("quiet").is_none());
    }

    #[test]
    fn later_versions_may_have_more_fields() {
        let more = format!("{}-more", EXAMPLE.replacen("00", "cc", 1));
        assert!(more.parse::<TraceContext>().is_ok());
        assert!(format!("{EXAMPLE}-more").parse::<TraceContext>().is_err());
        assert!(EXAMPLE.replacen("00", "ff", 1).parse::<TraceContext>().is_err());
    }

    #[test]
    fn malformed_trace_contexts_are_rejected() {
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        let upper = EXAMPLE.to_uppercase();
        for bad in [
            "",
            "00",
            "00-",
            "ü",
            zero_trace.as_str(),
            &zero_span,
            &upper,
            &EXAMPLE[..54],
            &EXAMPLE.replace('-', "_"),
        ] {
            assert!(bad.parse::<TraceContext>().is_err(), "{bad}");
        }
        for cut in 0..EXAMPLE.len() {
            assert!(EXAMPLE[..cut].parse::<TraceContext>().is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn headers_carry_it() {
        let context = TraceContext::root();
        let mut headers = HeaderMap::new();
        assert_eq!(TraceContext::extract(&headers), None);
        context.inject(&mut headers);
        assert_eq!(TraceContext::extract(&headers), Some(context));
        headers.insert("traceparent", "nonsense");
        assert_eq!(TraceContext::extract(&headers), None);
    }

    #[test]
    fn children_stay_in_the_trace_and_ids_do_not_repeat() {
        let root = TraceContext::root();
        let mut spans = BTreeSet::from([root.span]);
        for _ in 0..1000 {
            let child = root.child();
            assert_eq!(child.trace(), root.trace());
            assert!(spans.insert(child.span));
        }
        assert_ne!(TraceContext::root().trace(), root.trace());
        assert_eq!(TraceContext::joining(root.trace()).unwrap().trace(), root.trace());
        assert_eq!(TraceContext::joining(Trace::default()), None);
    }
}
