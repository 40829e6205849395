//! Room in a realm with a limit of players.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use annals_director::{Admission, FRONT_KEPT, REPORTED_WITHIN, ROOM_KEPT, RoomRequest, SAME_TIME};
use annals_ids::{Epoch, OwnerId, ProcessId, SessionId};

const BASE: OwnerId = OwnerId(3);
const ONE: ProcessId = ProcessId(1);
const OTHER: ProcessId = ProcessId(2);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limited(to: u32) -> Admission {
    Admission::new(secs(100), NonZeroU32::new(to), BTreeSet::new())
}

/// A client that has just come.
fn fresh(process: ProcessId, room: u64) -> RoomRequest {
    RoomRequest {
        process,
        room,
        waits: true,
        waited: None,
        waiting: 0,
    }
}

/// The first client of a queue.
fn first(process: ProcessId, room: u64, waited: u64) -> RoomRequest {
    RoomRequest {
        waited: Some(secs(waited)),
        waiting: 1,
        ..fresh(process, room)
    }
}

#[test]
fn log_ins_under_way_count_until_their_sessions_are_reported() {
    let mut admission = limited(2);
    let now = secs(100);
    assert!(admission.ask(now, &fresh(ONE, 1)) && admission.ask(now, &fresh(ONE, 2)));
    assert!(
        !admission.ask(now, &fresh(OTHER, 1)),
        "a storm does not exceed the limit"
    );
    assert!(admission.ask(now, &fresh(ONE, 2)), "a repeated request has its room");
    // The first session is opened, and a report that does not have it yet is on its way.
    admission.settle(ONE, 1, Some((BASE, SessionId(70))));
    admission.reported(BASE, Epoch(4), 0, SessionId(60));
    assert_eq!(admission.players(), 2);
    admission.reported(BASE, Epoch(4), 1, SessionId(70));
    assert_eq!(admission.players(), 2);
    // The second log-in fails.
    admission.settle(ONE, 2, None);
    assert_eq!(admission.players(), 1);
    assert!(admission.ask(now, &fresh(OTHER, 1)));
}

#[test]
fn sessions_of_an_owner_count_while_nobody_holds_it() {
    let mut admission = limited(1);
    admission.reported(BASE, Epoch(4), 1, SessionId(70));
    // The holder dies; the next one takes over, and reports in its epoch.
    assert!(!admission.ask(secs(100), &fresh(ONE, 1)));
    admission.reported(BASE, Epoch(5), 0, SessionId(70));
    admission.reported(BASE, Epoch(4), 1, SessionId(70));
    assert!(
        admission.ask(secs(100), &fresh(ONE, 2)),
        "a late report of a former holder does not count"
    );
}

#[test]
fn a_room_without_a_report_expires() {
    let mut admission = limited(1);
    assert!(admission.ask(secs(100), &fresh(ONE, 1)));
    let later = secs(100) + ROOM_KEPT;
    assert!(!admission.ask(later - Duration::from_millis(1), &fresh(ONE, 2)));
    assert!(admission.ask(later, &fresh(ONE, 3)));
}

#[test]
fn a_new_director_waits_for_the_reports_of_all_bases() {
    let late = OwnerId(4);
    let mut admission = Admission::new(secs(100), NonZeroU32::new(2), BTreeSet::from([BASE, late]));
    assert!(!admission.ask(secs(100), &fresh(ONE, 1)));
    admission.reported(BASE, Epoch(4), 1, SessionId(70));
    // The process that held the other one has died, and another one takes it over.
    assert!(!admission.ask(secs(110), &fresh(ONE, 2)), "its players count");
    admission.reported(late, Epoch(5), 1, SessionId(90));
    assert!(!admission.ask(secs(111), &fresh(ONE, 3)), "the realm is full");
    admission.reported(late, Epoch(5), 0, SessionId(90));
    assert!(admission.ask(secs(112), &fresh(ONE, 4)));

    let mut alone = Admission::new(secs(100), NonZeroU32::new(2), BTreeSet::from([BASE, late]));
    alone.reported(BASE, Epoch(4), 1, SessionId(70));
    assert!(!alone.ask(secs(100) + REPORTED_WITHIN - secs(1), &fresh(ONE, 1)));
    assert!(
        alone.ask(secs(100) + REPORTED_WITHIN, &fresh(ONE, 2)),
        "nobody takes it over"
    );
}

#[test]
fn exempt_clients_and_realms_without_a_limit_have_room() {
    let mut admission = limited(1);
    assert!(admission.ask(secs(100), &fresh(ONE, 1)));
    let exempt = RoomRequest {
        waits: false,
        ..fresh(ONE, 2)
    };
    assert!(admission.ask(secs(100), &exempt));
    assert_eq!(admission.players(), 2, "it counts all the same");
    let mut open = Admission::new(secs(100), None, BTreeSet::from([BASE]));
    assert!((0..1_000).all(|room| open.ask(secs(100), &fresh(ONE, room))));
    assert_eq!(open.players(), 0);
}

#[test]
fn the_client_that_has_waited_longest_is_first_whichever_process_it_waits_at() {
    let mut admission = limited(1);
    let now = secs(100);
    assert!(admission.ask(now, &fresh(ONE, 1)));
    assert!(!admission.ask(now, &first(ONE, 2, 5)) && !admission.ask(now, &first(OTHER, 1, 9)));
    assert_eq!(admission.waiting(), 2);
    admission.settle(ONE, 1, None);
    assert!(!admission.ask(now, &fresh(OTHER, 7)), "nobody overtakes those who wait");
    assert!(!admission.ask(now, &first(ONE, 3, 5)));
    assert!(admission.ask(now, &first(OTHER, 2, 9)));
    admission.settle(OTHER, 2, None);
    assert!(admission.ask(now, &first(ONE, 4, 5)));
    admission.settle(ONE, 4, None);
    assert_eq!(admission.waiting(), 0);
    // The next client of the same queue may have waited longer than others, and asks first.
    let several = RoomRequest {
        waiting: 2,
        ..first(OTHER, 4, 9)
    };
    assert!(admission.ask(now, &several));
    admission.settle(OTHER, 4, None);
    assert!(!admission.ask(now, &first(ONE, 8, 5)));
    assert!(!admission.ask(now, &first(OTHER, 5, 1)) && admission.ask(now, &first(ONE, 9, 5)));
    admission.settle(ONE, 9, None);
    assert!(admission.ask(now, &first(OTHER, 6, 1)));
    admission.settle(OTHER, 6, None);
    // A process that has died holds up the others for a moment only.
    assert!(admission.ask(now, &fresh(ONE, 5)));
    assert!(!admission.ask(now, &first(OTHER, 3, 9)));
    admission.settle(ONE, 5, None);
    assert!(!admission.ask(now, &first(ONE, 6, 1)));
    assert!(admission.ask(now + FRONT_KEPT, &first(ONE, 7, 4)));
}

/// Steele, Lea and Flood, 2014.
fn split_mix(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Login processes with queues, and bases whose sessions end and whose reports are late.
struct Realm {
    admission: Admission,
    now: Duration,
    /// The queues: since when each client waits.
    queues: BTreeMap<ProcessId, VecDeque<Duration>>,
    last_room: u64,
    /// Rooms whose sessions the bases have not opened yet.
    under_way: VecDeque<(ProcessId, u64)>,
    /// Sessions per owner.
    sessions: BTreeMap<OwnerId, BTreeSet<SessionId>>,
    last_session: u64,
    /// Reports on their way.
    reports: VecDeque<(OwnerId, u64, SessionId)>,
}

impl Realm {
    fn asks(&mut self, process: ProcessId) {
        let Some(since) = self.queues[&process].front().copied() else {
            return;
        };
        self.last_room += 1;
        let request = RoomRequest {
            process,
            room: self.last_room,
            waits: true,
            waited: Some(self.now - since),
            waiting: self.queues[&process].len() as u64,
        };
        if self.admission.ask(self.now, &request) {
            let longest = self.queues.values().filter_map(|queue| queue.front()).min();
            let longest = *longest.expect("one waits");
            assert!(since <= longest + SAME_TIME, "{since:?} comes before {longest:?}");
            self.queues.entry(process).or_default().pop_front();
            self.under_way.push_back((process, self.last_room));
        }
    }

    fn opens(&mut self, owner: OwnerId, fails: bool) {
        let Some((process, room)) = self.under_way.pop_front() else {
            return;
        };
        if fails {
            return self.admission.settle(process, room, None);
        }
        self.last_session += 1;
        let session = SessionId(self.last_session);
        self.sessions.entry(owner).or_default().insert(session);
        self.admission.settle(process, room, Some((owner, session)));
    }
}

#[test]
fn the_limit_holds_and_everybody_comes_in_in_order() {
    const LIMIT: u32 = 5;
    for seed in 0..200 {
        println!("seed {seed}");
        let mut dice = split_mix(seed);
        let owners = [OwnerId(3), OwnerId(4)];
        let mut realm = Realm {
            admission: limited(LIMIT),
            now: secs(100),
            queues: [ONE, OTHER, ProcessId(9)]
                .map(|process| (process, VecDeque::new()))
                .into(),
            last_room: 0,
            under_way: VecDeque::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            reports: VecDeque::new(),
        };
        let (mut came, mut newest) = (0, BTreeMap::new());
        for step in 0_u64.. {
            assert!(step < 100_000, "somebody starves: {:?}", realm.queues);
            realm.now += Duration::from_millis(50);
            let pick = ProcessId([1, 2, 9][(dice() % 3) as usize]);
            if came < 60 && dice().is_multiple_of(2) {
                let now = realm.now;
                realm.queues.entry(pick).or_default().push_back(now);
                came += 1;
            }
            // Each first client asks at every step, so that nobody's turn is forgotten.
            [ONE, OTHER, ProcessId(9)]
                .into_iter()
                .for_each(|process| realm.asks(process));
            let owner = owners[(dice() % 2) as usize];
            if dice().is_multiple_of(2) {
                realm.opens(owner, dice().is_multiple_of(5));
                newest.insert(owner, SessionId(realm.last_session));
            }
            if dice().is_multiple_of(6) {
                realm.sessions.entry(owner).or_default().pop_first();
            }
            let known = realm.sessions.get(&owner).map_or(0, |sessions| sessions.len() as u64);
            let last = realm.sessions.get(&owner).and_then(|sessions| sessions.last().copied());
            realm.reports.push_back((owner, known, last.unwrap_or(SessionId(0))));
            if realm.reports.len() > 4 {
                let (owner, sessions, newest) = realm.reports.pop_front().expect("there are five");
                realm.admission.reported(owner, Epoch(1), sessions, newest);
            }
            let playing: usize = realm.sessions.values().map(BTreeSet::len).sum();
            assert!(playing <= LIMIT as usize, "{playing} players in a realm for {LIMIT}");
            if came == 60 && realm.queues.values().all(VecDeque::is_empty) && realm.under_way.is_empty() {
                break;
            }
        }
    }
}
