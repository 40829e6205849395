//! Spatial queries of the census, against a scan of all entities.

use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Census, Spot};

type Bodies = Vec<(EntityId, Spot)>;

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// A number within `reach` of zero, in steps of a quarter, so that many hit an edge exactly.
    fn metres(&mut self, reach: u16) -> f32 {
        let quarters = self.below(u64::from(reach) * 8 + 1);
        f32::from(u16::try_from(quarters).expect("it is small")) / 4.0 - f32::from(reach)
    }

    fn spot(&mut self, reach: u16) -> Spot {
        let position = Position {
            x: self.metres(reach),
            y: self.metres(20),
            z: self.metres(reach),
        };
        let space = SpaceId(u32::try_from(self.below(2)).expect("it is small"));
        Spot { space, position }
    }
}

fn brute(bodies: &Bodies, space: SpaceId, is_in: impl Fn(Position) -> bool) -> Vec<EntityId> {
    let here = bodies.iter().filter(|(_, spot)| spot.space == space);
    let mut found: Vec<EntityId> = here
        .filter(|(_, spot)| is_in(spot.position))
        .map(|(entity, _)| *entity)
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn range_queries_equal_brute_force() {
    let mut hits = 0;
    let mut census = Census::default();
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let reach = [5, 60, 900][usize::try_from(seed % 3).expect("it is small")];
        let mut bodies: Bodies = (0..dice.below(200))
            .map(|entity| (EntityId(entity * 7), dice.spot(reach)))
            .collect();
        // The input has no order; results are ordered all the same.
        bodies.reverse();
        census.take(bodies.iter().copied());
        for _ in 0..20 {
            let (centre, range) = (dice.spot(reach), dice.metres(reach).abs());
            let at = centre.position;
            let mut found = Vec::new();
            census.square(centre, range, &mut found);
            let square = brute(&bodies, centre.space, |it| {
                (it.x - at.x).abs() <= range && (it.z - at.z).abs() <= range
            });
            assert_eq!(found, square, "seed {seed}: a square of {range} m around {centre:?}");
            hits += found.len();
            found.clear();
            census.ball(centre, range, &mut found);
            let ball = brute(&bodies, centre.space, |it| {
                let (x, y, z) = (it.x - at.x, it.y - at.y, it.z - at.z);
                x * x + y * y + z * z <= range * range
            });
            assert_eq!(found, ball, "seed {seed}: a ball of {range} m around {centre:?}");
            found.clear();
            let other = dice.spot(reach).position;
            census.cuboid(centre.space, at, other, &mut found);
            let cuboid = brute(&bodies, centre.space, |it| {
                let axes = [(at.x, it.x, other.x), (at.y, it.y, other.y), (at.z, it.z, other.z)];
                axes.iter().all(|(least, it, most)| (*least..=*most).contains(it))
            });
            assert_eq!(found, cuboid, "seed {seed}: a box from {at:?} to {other:?}");
            hits += found.len();
        }
    }
    assert!(hits > 50_000, "only {hits} were found: there was nothing to find");
}

#[test]
fn an_infinite_range_finds_all_and_an_empty_census_none() {
    let mut census = Census::default();
    let centre = Spot {
        space: SpaceId(1),
        position: Position::default(),
    };
    let far = Spot {
        position: Position {
            x: 1.0e30,
            ..Position::default()
        },
        ..centre
    };
    census.take([(EntityId(2), centre), (EntityId(1), far)]);
    let mut found = Vec::new();
    census.square(centre, f32::MAX, &mut found);
    assert_eq!(found, [EntityId(1), EntityId(2)]);
    census.take([]);
    found.clear();
    census.square(centre, f32::MAX, &mut found);
    assert_eq!(found, []);
}
