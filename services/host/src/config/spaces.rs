//! The setting `spaces`: which spaces a realm has.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::values::Advice;

/// The space that a realm has by default.
pub const FIRST: u32 = 1;

/// Maximum spaces: a map must be able to hold all of them.
const MOST: usize = 64;

/// Maximum distance in a space, metres: beyond it the precision of positions is coarser than a step.
const LONGEST: f32 = 100_000.0;

/// Maximum cells of a space that can be requested.
const MOST_CELLS: usize = 1_024;

/// A space, as an operator describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpaceSetting {
    /// Its number, from 1.
    pub space: u32,
    /// Distance from the origin, in metres, within which it is divided evenly at first.
    pub extent: f32,
    /// Default AoI radius of witnesses, metres: half the side of a square.
    pub radius: f32,
    /// Distance beyond the radius at which an entity leaves a view, metres.
    pub hysteresis: f32,
    /// Maximum of radius and hysteresis that behaviour can set, metres; the defaults if they are more.
    pub horizon: f32,
    /// Minimum number of cells; without it, its share of the director's number of cells.
    pub cells: Option<usize>,
}

/// All spaces of a realm, each number once.
#[derive(Debug, Clone, PartialEq)]
pub struct Spaces(pub Vec<SpaceSetting>);

// Every number of a setting was checked not to be NaN.
impl Eq for Spaces {}

impl SpaceSetting {
    /// A space of which only the number was given.
    fn plain(space: u32) -> Self {
        Self {
            space,
            extent: 200.0,
            // KBEngine's defaults.
            radius: 80.0,
            hysteresis: 5.0,
            horizon: 0.0,
            cells: None,
        }
    }
}

impl FromStr for SpaceSetting {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        let advice = |what: &str| {
            Advice(format!(
                "{what}: write a space as `1 extent=200 radius=80 hysteresis=5 cells=2`"
            ))
        };
        let mut words = text.split_whitespace();
        let number = words
            .next()
            .and_then(|word| word.parse().ok())
            .filter(|number| *number > 0);
        let mut setting = Self::plain(number.ok_or_else(|| advice("a space begins with its number, 1 or more"))?);
        let mut named = BTreeSet::new();
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| advice("the number is followed by names with values"))?;
            if !named.insert(name) {
                return Err(advice("a name is given twice"));
            }
            let metres = || {
                let metres = value.parse().ok().filter(|metres| (0.0..=LONGEST).contains(metres));
                metres.ok_or_else(|| advice("a distance must be 0 to 100000 metres"))
            };
            match name {
                "extent" => setting.extent = metres()?,
                "radius" => setting.radius = metres()?,
                "hysteresis" => setting.hysteresis = metres()?,
                "horizon" => setting.horizon = metres()?,
                "cells" => {
                    let cells = value.parse().ok().filter(|cells| (1..=MOST_CELLS).contains(cells));
                    setting.cells = Some(cells.ok_or_else(|| advice("cells must be 1 to 1024"))?);
                }
                _ => return Err(advice("the names are extent, radius, hysteresis, horizon and cells")),
            }
        }
        if setting.extent < 1.0 || setting.radius < 1.0 {
            return Err(advice("extent and radius must be at least 1 metre"));
        }
        Ok(setting)
    }
}

/// The spaces of one entry: `7 radius=60`, or `11-40 radius=60` for equal ones.
fn of_entry(text: &str) -> Result<Vec<SpaceSetting>, Advice> {
    let text = text.trim();
    let (numbers, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let Some((first, last)) = numbers.split_once('-').filter(|(first, _)| !first.is_empty()) else {
        return Ok(vec![text.parse()?]);
    };
    let wrong = || Advice("a range of spaces is `11-40`: two numbers, the first one not above the last".to_owned());
    let [first, last] = [first, last].map(|number| number.parse::<u32>().map_err(|_| wrong()));
    let (first, last) = (first?, last?);
    if first > last {
        return Err(wrong());
    }
    // One more than there can be is as wrong as any.
    let numbers = (first..=last).take(MOST + 1);
    numbers.map(|number| format!("{number} {rest}").parse()).collect()
}

impl FromStr for Spaces {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        let entries = text.split(',').map(of_entry).collect::<Result<Vec<_>, _>>()?;
        let spaces: Vec<SpaceSetting> = entries.into_iter().flatten().collect();
        let numbers: BTreeSet<u32> = spaces.iter().map(|space| space.space).collect();
        if numbers.len() < spaces.len() {
            return Err(Advice("two spaces have the same number: give each its own".to_owned()));
        }
        if spaces.len() > MOST {
            return Err(Advice(format!("there can be at most {MOST} spaces")));
        }
        Ok(Self(spaces))
    }
}
