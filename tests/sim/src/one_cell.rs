//! Reference model of one large cell: which entities are in which view, computed only from positions.
//!
//! However a space is divided, an observer must see what it would if the whole space were one cell: a body enters at
//! the radius plus its appeal, and leaves beyond the hysteresis. A body between the two is in view if it was before.
//! While entities move, the result depends on which one is evaluated first. Views are therefore compared when
//! everything is at rest, and nothing is claimed for a pair if positions since the last comparison would have given
//! different results.

use std::collections::BTreeMap;

use annals_ids::{EntityId, HistoryNumber, Position, SpaceId};

/// An observer's range, metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Distance at which bodies enter.
    pub radius: f32,
    /// Additional distance beyond which they leave.
    pub hysteresis: f32,
}

/// A space and a position in it.
pub type Spot = (SpaceId, Position);

/// Positions of one entity since everything was last at rest, in order; the last one is current.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its positions.
    pub places: Vec<Spot>,
    /// Additional distance at which it is visible, metres.
    pub appeal: f32,
    /// Its ranges in that time, in order; the last one is current.
    pub sights: Vec<Sight>,
}

impl Trace {
    /// Records a position.
    pub fn note(&mut self, spot: Spot) {
        if self.places.last() != Some(&spot) {
            self.places.push(spot);
        }
    }

    /// Records a range.
    pub fn look(&mut self, sight: Sight) {
        if self.sights.last() != Some(&sight) {
            self.sights.push(sight);
        }
    }

    /// Starts a new trace from the current position and range.
    pub fn rest(&mut self) {
        let count = self.places.len();
        self.places.drain(..count.saturating_sub(1));
        let count = self.sights.len();
        self.sights.drain(..count.saturating_sub(1));
    }
}

/// What one large cell would decide on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In range.
    Near,
    /// Out of range.
    Far,
    /// In the hysteresis band, and in view because it was before.
    Held,
    /// In the hysteresis band, and not in view because it was not before.
    Kept,
    /// In the hysteresis band, and dependent on the path.
    Open,
}

impl Verdict {
    /// Whether the body is in view, if that is determined.
    #[must_use]
    pub fn is_seen(self) -> Option<bool> {
        match self {
            Self::Near | Self::Held => Some(true),
            Self::Far | Self::Kept => Some(false),
            Self::Open => None,
        }
    }
}

/// Decides on a body, given whether it was in view when everything was last at rest.
#[must_use]
pub fn judge(observer: &Trace, body: &Trace, was_seen: bool) -> Verdict {
    let (Some(own), Some(other)) = (observer.places.last(), body.places.last()) else {
        return Verdict::Open;
    };
    let Some(sight) = observer.sights.last() else {
        return Verdict::Open;
    };
    let now = distance(*own, *other);
    if now <= sight.radius + body.appeal {
        return Verdict::Near;
    }
    if now > sight.radius + sight.hysteresis + body.appeal {
        return Verdict::Far;
    }
    let (enter, hold) = limits(observer, body);
    let pairs = observer
        .places
        .iter()
        .flat_map(|own| body.places.iter().map(|other| distance(*own, *other)));
    let (nearest, farthest) = pairs.fold((f32::INFINITY, 0.0f32), |(least, most), at| {
        (least.min(at), most.max(at))
    });
    match was_seen {
        true if farthest <= hold => Verdict::Held,
        false if nearest > enter => Verdict::Kept,
        _ => Verdict::Open,
    }
}

/// Whether one large cell would have had the body in view the whole time.
#[must_use]
pub fn stayed(observer: &Trace, body: &Trace) -> bool {
    let (_, hold) = limits(observer, body);
    let mut pairs = observer
        .places
        .iter()
        .flat_map(|own| body.places.iter().map(|other| distance(*own, *other)));
    pairs.all(|apart| apart <= hold)
}

/// Distances beyond which it would not have admitted the body, and within which it would not have dropped it, with any
/// of its ranges.
fn limits(observer: &Trace, body: &Trace) -> (f32, f32) {
    let sights = observer.sights.iter();
    sights.fold((0.0f32, f32::INFINITY), |(enter, hold), sight| {
        let radius = sight.radius + body.appeal;
        (enter.max(radius), hold.min(radius + sight.hysteresis))
    })
}

/// The metric of areas of interest: a square, ignoring height; infinite between spaces.
fn distance((space, one): Spot, (other_space, other): Spot) -> f32 {
    if space != other_space {
        return f32::INFINITY;
    }
    (one.x - other.x).abs().max((one.z - other.z).abs())
}

/// Entities in a view when everything was last at rest, with the history number up to which each was sent.
pub type View = BTreeMap<EntityId, HistoryNumber>;

#[cfg(test)]
mod tests {
    use super::*;

    const SIGHT: Sight = Sight {
        radius: 20.0,
        hysteresis: 5.0,
    };

    fn trace(places: &[f32], appeal: f32) -> Trace {
        let mut trace = Trace {
            appeal,
            ..Trace::default()
        };
        for x in places {
            let position = Position {
                x: *x,
                ..Position::default()
            };
            trace.note((SpaceId(1), position));
        }
        trace
    }

    #[test]
    fn an_entity_in_the_hysteresis_keeps_its_state_unless_it_crossed_a_radius() {
        let mut own = trace(&[0.0], 0.0);
        own.look(SIGHT);
        let of = |places: &[f32], appeal, was| judge(&own, &trace(places, appeal), was);
        assert_eq!(of(&[40.0, 20.0], 0.0, false), Verdict::Near);
        assert_eq!(of(&[3.0, 25.5], 0.0, true), Verdict::Far);
        assert_eq!(of(&[3.0, 25.0], 0.0, true), Verdict::Held);
        assert_eq!(of(&[30.0, 25.0], 0.0, false), Verdict::Kept);
        assert_eq!(of(&[3.0, 30.0, 25.0], 0.0, true), Verdict::Open);
        assert_eq!(of(&[30.0, 3.0, 25.0], 0.0, false), Verdict::Open);
        assert_eq!(of(&[30.0], 10.0, false), Verdict::Near);
        assert_eq!(of(&[], 10.0, false), Verdict::Open);
        let mut rested = trace(&[30.0, 3.0, 25.0], 0.0);
        rested.rest();
        assert_eq!(judge(&own, &rested, true), Verdict::Held);
        assert!(stayed(&own, &rested) && !stayed(&own, &trace(&[3.0, 30.0], 0.0)));
    }

    #[test]
    fn an_intermediate_view_decides_where_it_differs() {
        let mut own = trace(&[0.0], 0.0);
        let narrow = Sight {
            radius: 10.0,
            hysteresis: 2.0,
        };
        for sight in [SIGHT, narrow, SIGHT] {
            own.look(sight);
        }
        let of = |x: f32, was| judge(&own, &trace(&[x], 0.0), was);
        assert_eq!((of(19.0, false), of(26.0, true)), (Verdict::Near, Verdict::Far));
        assert_eq!((of(22.0, false), of(22.0, true)), (Verdict::Kept, Verdict::Open));
        assert!(stayed(&own, &trace(&[12.0], 0.0)) && !stayed(&own, &trace(&[13.0], 0.0)));
        own.rest();
        assert_eq!(of_rested(&own), Verdict::Held);
    }

    fn of_rested(own: &Trace) -> Verdict {
        judge(own, &trace(&[22.0], 0.0), true)
    }
}
