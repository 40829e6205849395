//! What a client in a crowd is sent, by kind: observers read every frame, among bots that walk, call and trade.

use std::{path::Path, sync::Arc, time::Duration};

use annals_client::ClientCore;
use annals_def::{Value, apply, check_dir};
use annals_ids::{EntityId, HistoryNumber, Part};
use annals_wire::client::{ClientMember, Shown, ShownReader, ToClient, ViewFrame, ViewItem};
use quinn::ConnectionStats;
use tokio::time::{Instant, timeout_at};

use crate::{
    Figure,
    lean::{Means, Received, Session, Transport},
    realm::{Realm, Shape, WORLD},
};

/// Bots, and sessions that watch them.
const BOTS: usize = 60;
const OBSERVERS: u64 = 3;

/// AoI radius, metres: all bots are in view of the observers, which stand where bots begin.
const RADIUS: u32 = 200;

/// Time until all bots play as they do later, and the measured time.
const SETTLING: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(15);

/// Bytes of the headers of IPv4 and UDP around each datagram of QUIC.
const UDP_HEADERS: u64 = 28;

/// Measures it.
///
/// # Panics
/// If the realm's binaries are not built, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    measure(BOTS, (SETTLING, MEASURED))
}

/// The same with this number of bots, and these times to settle and to measure.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn measure(bots: usize, times: (Duration, Duration)) -> Vec<Figure> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = crate::scratch();
    runtime.block_on(async {
        let shape = Shape {
            each: 1,
            settings: vec![("ANNALS_SPACES".to_owned(), format!("1 radius={RADIUS} cells=1"))],
            ..Shape::default()
        };
        let realm = Realm::start(directory.path(), &shape).await;
        let observed = observe(&realm, bots, times, directory.path()).await;
        realm.stop().await;
        figures(&observed, bots)
    })
}

/// Bytes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams of movements.
    pub movements: u64,
    /// Changes of properties.
    pub changes: u64,
    /// Calls of client methods.
    pub calls: u64,
    /// Whole states of entities that enter the view or change their level of detail.
    pub states: u64,
    /// What frames have around that: lengths, numbers of frames and entities, empty frames.
    pub framing: u64,
    /// Frames that are not of a view: answers to calls and so on.
    pub answers: u64,
}

impl Sent {
    /// Everything that was written to streams and datagrams.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.movements + self.changes + self.calls + self.states + self.framing + self.answers
    }

    /// Counts the body of a frame to this client, which has not been given it yet.
    ///
    /// # Panics
    /// If it is malformed.
    pub fn frame(&mut self, core: &ClientCore, body: &[u8]) {
        // The length in front of it: 7 bits to a byte.
        let length = (usize::BITS - body.len().leading_zeros()).div_ceil(7).max(1);
        self.framing += u64::from(length);
        let bytes = body.len() as u64;
        match ToClient::read(body).expect("the server's frames can be read") {
            ToClient::View(frame) => {
                let before = self.total();
                self.view(core, &frame);
                self.framing += bytes - (self.total() - before);
            }
            _ => self.answers += bytes,
        }
    }

    fn view(&mut self, core: &ClientCore, frame: &ViewFrame) {
        for item in &frame.items {
            match item {
                ViewItem::Update {
                    entity,
                    from,
                    upto,
                    events,
                } => self.update(core, (frame.source, *entity), (*from, *upto), events),
                ViewItem::Refresh { properties, .. } | ViewItem::Level { properties, .. } => {
                    self.states += properties.len() as u64;
                }
                _ => {}
            }
        }
    }

    /// Counts the events of an entity. Those of an entity that enters with the same frame begin with its defaults, which
    /// the core has once it has the frame; they are counted as its state.
    fn update(
        &mut self,
        core: &ClientCore,
        (part, entity): (Part, EntityId),
        span: (HistoryNumber, HistoryNumber),
        events: &[u8],
    ) {
        let seen = core.view(part).entities().get(&entity);
        let known = seen.and_then(|seen| Some((seen, core.schema().entity_type(seen.type_id)?)));
        let Some((seen, entity_type)) = known.filter(|(seen, _)| seen.upto == span.0) else {
            self.states += events.len() as u64;
            return;
        };
        let mut held: Vec<Value> = (0..)
            .map_while(|member| seen.property(ClientMember(member)).cloned())
            .collect();
        let properties = entity_type.client_properties();
        let mut reader = ShownReader::new(entity_type, span, events);
        loop {
            let before = reader.remaining();
            let Some((_, shown)) = reader.next_event(&held).expect("the server's events can be read") else {
                return;
            };
            let bytes = (before - reader.remaining()) as u64;
            match shown {
                Shown::Method { .. } | Shown::Reply(_) => self.calls += bytes,
                Shown::Property { member, change } => {
                    self.changes += bytes;
                    let at = usize::from(member.0);
                    let property = entity_type
                        .property(properties[at])
                        .expect("the type has its client properties");
                    apply(&property.data_type, &mut held[at], &change).expect("the server's changes fit");
                }
            }
        }
    }
}

/// What one observer was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    sent: Sent,
    frames: u64,
    datagrams: u64,
    /// Payload of UDP, and packets.
    udp: (u64, u64),
    seconds: f64,
    in_view: usize,
}

/// Lets bots play, and observers watch them.
async fn observe(
    realm: &Realm,
    bots: usize,
    (settling, measured): (Duration, Duration),
    directory: &Path,
) -> Vec<Observed> {
    let schema = Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile"));
    let means = Means::new(realm, &schema, Transport::Quic, OBSERVERS);
    let observing = async {
        let watching: Vec<_> = (0..OBSERVERS)
            .map(|number| {
                let means = means.clone();
                tokio::spawn(async move {
                    let session = Session::open(&means, number, &mut |_| {}).await;
                    watch_crowd(session, (settling, measured)).await
                })
            })
            .collect();
        let mut observed = Vec::new();
        for one in watching {
            observed.push(one.await.expect("an observer watches to the end"));
        }
        observed
    };
    realm.among_bots(bots, directory, observing).await.1
}

/// Watches for some time after the crowd has settled.
async fn watch_crowd(mut session: Session, (settling, measured): (Duration, Duration)) -> Observed {
    let begins = Instant::now() + settling;
    while let Ok(received) = timeout_at(begins, session.receive()).await {
        session.take(received).await;
    }
    let (began, before) = (Instant::now(), session.stats().unwrap_or_default());
    let mut observed = Observed::default();
    while let Ok(received) = timeout_at(began + measured, session.receive()).await {
        match &received {
            Received::Frame(body) => {
                observed.frames += 1;
                observed.sent.frame(session.core(), body);
            }
            Received::Datagram(bytes) => {
                observed.datagrams += 1;
                observed.sent.movements += bytes.len() as u64;
            }
            Received::Answer(_) => {}
        }
        session.take(received).await;
    }
    let after: ConnectionStats = session.stats().unwrap_or_default();
    observed.udp = (
        after.udp_rx.bytes - before.udp_rx.bytes,
        after.udp_rx.datagrams - before.udp_rx.datagrams,
    );
    observed.seconds = began.elapsed().as_secs_f64();
    observed.in_view = session.core().view(Part::Cell).entities().len();
    observed
}

fn figures(observed: &[Observed], bots: usize) -> Vec<Figure> {
    let seconds: f64 = observed.iter().map(|one| one.seconds).sum();
    let rate = |of: fn(&Observed) -> u64| observed.iter().map(of).sum::<u64>() as f64 / seconds;
    let content = rate(|one| one.sent.total());
    let udp = rate(|one| one.udp.0);
    let packets = rate(|one| one.udp.1);
    let wire = udp + packets * UDP_HEADERS as f64;
    let in_view = observed.iter().map(|one| one.in_view).sum::<usize>() / observed.len().max(1);
    let note = format!(
        "to each client and second, with {in_view} entities in view, of which {bots} are bots that move ten times a second; \
         {:.1} frames, {:.1} datagrams, {packets:.1} packets; baseline: what the realm's processes write",
        rate(|one| one.frames),
        rate(|one| one.datagrams)
    );
    let mut figures = vec![Figure::against("client_traffic", wire, content, "bytes/s", note)];
    let kinds: [(&str, f64, &str); 8] = [
        ("movements", rate(|one| one.sent.movements), "datagrams of movements"),
        ("changes", rate(|one| one.sent.changes), "changes of properties"),
        ("calls", rate(|one| one.sent.calls), "calls of client methods"),
        ("states", rate(|one| one.sent.states), "whole states"),
        (
            "framing",
            rate(|one| one.sent.framing),
            "frames around changes, calls and states",
        ),
        ("answers", rate(|one| one.sent.answers), "frames that are not of a view"),
        (
            "quic",
            udp - content,
            "packets, acknowledgements and TLS, as counted by quinn",
        ),
        ("udp", wire - udp, "headers of IPv4 and UDP"),
    ];
    figures.extend(kinds.map(|(kind, value, what)| {
        let note = format!("of that: {what}; baseline: all");
        Figure::against(&format!("client_traffic_{kind}"), value, wire, "bytes/s", note)
    }));
    figures
}
