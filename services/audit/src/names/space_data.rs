//! Entries of space data in words.

use annals_event::{
    Geometry, SpaceEntry, TimeOfDay,
    space_data::{FIRST_GEOMETRY, FIRST_OWN_KEY, LIFE, TIME_OF_DAY},
};

/// An entry in words.
pub fn entry(entry: &SpaceEntry) -> String {
    let SpaceEntry { key, version, value } = entry;
    let said = match (*key, value.as_slice()) {
        (TIME_OF_DAY, value) if let Ok(day) = TimeOfDay::read(value) => {
            let TimeOfDay { initial, rate, set } = day;
            format!(
                "it is {} of its day at {set} ms, and {rate} s go by in one",
                clock(initial)
            )
        }
        (LIFE, _) if version.life % 2 == 1 => {
            return format!("it no longer exists (life {}, written by {})", version.life, version.by);
        }
        (LIFE, _) => return format!("it is open again (life {}, written by {})", version.life, version.by),
        (_, []) => format!("{} is removed", name(*key)),
        (FIRST_GEOMETRY..FIRST_OWN_KEY, value) if let Ok(geometry) = Geometry::read(value) => {
            format!("{} is {:?} at {:?}", name(*key), geometry.path, geometry.transform[3])
        }
        (_, value) => format!("{} is {} bytes", name(*key), value.len()),
    };
    format!("{said} (written by {} at {} ms)", version.by, version.stamp)
}

fn name(key: u16) -> String {
    match key {
        TIME_OF_DAY => "its time of day".to_owned(),
        FIRST_GEOMETRY..FIRST_OWN_KEY => format!("geometry {}", key - FIRST_GEOMETRY),
        key => format!("data {key}"),
    }
}

/// Seconds since midnight as a time of day.
fn clock(seconds: f64) -> String {
    let seconds = seconds.rem_euclid(86_400.0);
    let (hours, minutes) = ((seconds / 3_600.0).floor(), (seconds / 60.0).floor() % 60.0);
    format!("{hours:02}:{minutes:02}:{:02}", (seconds % 60.0).floor())
}

#[cfg(test)]
mod tests {
    use annals_event::SpaceVersion;
    use annals_ids::{OwnerId, WorldTime};

    use super::*;

    #[test]
    fn every_entry_is_described() {
        let said = |key, value: &[u8]| {
            entry(&SpaceEntry {
                key,
                version: SpaceVersion {
                    life: 0,
                    stamp: 7,
                    by: OwnerId(3),
                },
                value: value.to_vec(),
            })
        };
        let day = TimeOfDay {
            initial: 6.5 * 3_600.0 + 2.0,
            rate: 24.0,
            set: WorldTime(900),
        };
        let by = "(written by 3 at 7 ms)";
        assert_eq!(
            said(TIME_OF_DAY, &day.to_value()),
            format!("it is 06:30:02 of its day at 900 ms, and 24 s go by in one {by}")
        );
        assert_eq!(said(TIME_OF_DAY, &[]), format!("its time of day is removed {by}"));
        let life = |life| entry(&SpaceEntry::of_life(life, OwnerId(3)));
        assert_eq!(life(1), "it no longer exists (life 1, written by 3)");
        assert_eq!(life(2), "it is open again (life 2, written by 3)");
        let mut transform = [[0.0; 3]; 4];
        transform[3] = [1.0, 0.0, -2.5];
        let geometry = Geometry {
            path: "spaces/arena".to_owned(),
            transform,
        };
        assert_eq!(
            said(FIRST_GEOMETRY + 2, &geometry.to_value()),
            format!("geometry 2 is \"spaces/arena\" at [1.0, 0.0, -2.5] {by}")
        );
        assert_eq!(said(300, b"hello"), format!("data 300 is 5 bytes {by}"));
        assert_eq!(said(300, b""), format!("data 300 is removed {by}"));
    }
}
