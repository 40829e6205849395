//! A scenario's file: TOML, read whole, with all mistakes at once and each with its line.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt, fs, io,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    time::Duration,
};

use annals_client::walk::Gathering;
use annals_def::{Schema, nearest};
use thiserror::Error;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Phase, Scenario};
use crate::bots::{Conduct, LOG_INS_PER_SECOND, Visits, can_trade};

/// Maximum phases of a scenario: each is a line of the report.
const MAX_PHASES: usize = 100;

/// Maximum length of a phase's name, which is part of file names and a column of the report.
const MAX_NAME: usize = 40;

/// Bots of a phase. One process does not drive more at their pace.
const BOTS: RangeInclusive<i64> = 1..=10_000;

/// Duration of a phase, seconds: up to a day.
const SECONDS: RangeInclusive<i64> = 1..=86_400;

/// Log-ins per second of a storm.
const RATE: RangeInclusive<i64> = 1..=1_000;

/// Duration of a visit in a storm, seconds.
const STAY: RangeInclusive<i64> = 1..=3_600;

/// Coordinates of a gathering, metres: bots have to get there.
const COORDINATE: RangeInclusive<f64> = -10_000.0..=10_000.0;

/// Radius of a gathering, metres.
const RADIUS: RangeInclusive<f64> = 1.0..=1_000.0;

/// Radius of a gathering without one.
const USUAL_RADIUS: f64 = 20.0;

/// The keys of a phase, and the kinds that have them; none: all.
const KEYS: [(&str, &[&str]); 8] = [
    ("name", &[]),
    ("kind", &[]),
    ("bots", &[]),
    ("seconds", &[]),
    ("at", &["crowd", "trade-fair", "market"]),
    ("radius", &["crowd", "trade-fair", "market"]),
    ("rate", &["log-in-storm"]),
    ("stay", &["log-in-storm"]),
];

/// Why there is no scenario.
#[derive(Debug, Error)]
pub enum ScenarioError {
    #[error("{path} cannot be read", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// It has mistakes, in the order of their lines.
    #[error("{}", Listed(path, mistakes))]
    Mistakes { path: PathBuf, mistakes: Vec<Mistake> },
}

/// A mistake in a scenario's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    pub wrong: Wrong,
}

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    #[error("this is not TOML: {0}")]
    NotToml(String),
    #[error("there is no phase; add a table [[phase]] with name, kind, bots and seconds")]
    NoPhase,
    #[error("there are more than {MAX_PHASES} phases; write the rest into another scenario")]
    TooManyPhases,
    #[error("`{key}` is not a key {place}; {hint}")]
    UnknownKey {
        key: String,
        place: &'static str,
        hint: String,
    },
    #[error("`{key}` is missing in this phase; add {example}")]
    Missing { key: &'static str, example: &'static str },
    #[error("`{key}` is {found}; write {wanted}")]
    Unfit {
        key: &'static str,
        found: String,
        wanted: String,
    },
    #[error("there is no kind {found:?}; {hint}")]
    UnknownKind { found: String, hint: String },
    #[error("`{key}` has no effect on a phase of kind {kind}; remove it, or choose the kind {kinds}")]
    NotOfKind {
        key: &'static str,
        kind: &'static str,
        kinds: String,
    },
    #[error("the name {name:?} is that of the phase in line {line} too; give each its own")]
    SameName { name: String, line: usize },
    #[error("{bots} bots log in at {rate} a second, which takes more than the phase's {seconds} s; {remedy}")]
    TooShort {
        bots: u64,
        rate: u64,
        seconds: u64,
        remedy: String,
    },
    #[error(
        "{rate} log-ins a second by bots that stay {stay} s need at least {needed} bots, since each plays one account; \
         raise `bots`, or lower `rate` or `stay`"
    )]
    TooFewBots { rate: u64, stay: u64, needed: u64 },
    #[error("bots of this world cannot trade: no entity type has the sample's methods for it; choose another kind")]
    NoTrade,
}

struct Listed<'a>(&'a Path, &'a [Mistake]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path, mistakes) = self;
        for (number, Mistake { line, wrong }) in mistakes.iter().enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}: {wrong}", path.display())?;
        }
        Ok(())
    }
}

impl Scenario {
    /// Reads a scenario for bots of a world.
    ///
    /// # Errors
    /// When the file cannot be read, or has mistakes: all of them.
    pub fn read(path: &Path, schema: &Schema) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(path).map_err(|source| ScenarioError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, can_trade(schema)).map_err(|mistakes| ScenarioError::Mistakes {
            path: path.to_owned(),
            mistakes,
        })
    }

    /// Parses a scenario, for a world in which bots can trade or not.
    pub(super) fn parse(text: &str, can_trade: bool) -> Result<Self, Vec<Mistake>> {
        let mut parser = Parser {
            text,
            can_trade,
            mistakes: Vec::new(),
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let wrong = Wrong::NotToml(error.message().trim().to_owned());
            parser.wrong(&error.span().unwrap_or_default(), wrong);
        }
        let phases = if parser.mistakes.is_empty() {
            parser.phases(&table)
        } else {
            Vec::new()
        };
        let mut mistakes = parser.mistakes;
        mistakes.sort_by_key(|mistake| mistake.line);
        if mistakes.is_empty() {
            Ok(Self { phases })
        } else {
            Err(mistakes)
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    can_trade: bool,
    mistakes: Vec<Mistake>,
}

type Value<'t> = Spanned<DeValue<'t>>;

/// A phase's table, and where it is.
struct Table<'p, 't> {
    entries: &'p DeTable<'t>,
    span: Range<usize>,
}

impl<'t> Parser<'t> {
    fn wrong(&mut self, span: &Range<usize>, wrong: Wrong) {
        let line = self.line(span);
        self.mistakes.push(Mistake { line, wrong });
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn phases(&mut self, table: &Spanned<DeTable<'t>>) -> Vec<Phase> {
        let mut tables: Vec<&Value<'t>> = Vec::new();
        for (key, value) in table.get_ref() {
            match value.get_ref() {
                DeValue::Array(array) if key.get_ref() == "phase" => tables.extend(array.iter()),
                _ if key.get_ref() == "phase" => tables.push(value),
                _ => self.unknown(
                    key,
                    "of a scenario",
                    "a scenario consists of tables [[phase]]".to_owned(),
                ),
            }
        }
        if tables.is_empty() {
            self.wrong(&(0..0), Wrong::NoPhase);
        }
        if let Some(further) = tables.get(MAX_PHASES) {
            self.wrong(&further.span(), Wrong::TooManyPhases);
        }
        let mut names = BTreeMap::new();
        let read = tables.into_iter().take(MAX_PHASES);
        read.filter_map(|value| self.phase(value, &mut names)).collect()
    }

    /// A phase without mistakes.
    fn phase(&mut self, value: &Value<'t>, names: &mut BTreeMap<String, usize>) -> Option<Phase> {
        let DeValue::Table(entries) = value.get_ref() else {
            let (key, found) = ("phase", described(value.get_ref()));
            let wanted = "a table [[phase]] with name, kind, bots and seconds".to_owned();
            self.wrong(&value.span(), Wrong::Unfit { key, found, wanted });
            return None;
        };
        let span = value.span();
        let table = Table { entries, span };
        for key in entries.keys() {
            if KEYS.iter().all(|(known, _)| key.get_ref() != known) {
                let meant = nearest(key.get_ref(), KEYS.map(|(known, _)| known));
                let hint = meant.map_or("remove it".to_owned(), |meant| format!("did you mean `{meant}`?"));
                self.unknown(key, "of a phase", hint);
            }
        }
        let name = self.name(&table, names);
        let kind = self.kind(&table);
        let bots = self.integer(&table, "bots", BOTS, Some("bots = 20"));
        let seconds = self.integer(&table, "seconds", SECONDS, Some("seconds = 30"));
        let conduct = self.conduct(&table, kind?);
        let (name, conduct, bots, seconds) = (name?, conduct?, bots?, seconds?);
        self.check_fit(&table, conduct, bots, seconds)?;
        Some(Phase {
            name,
            conduct,
            bots: usize::try_from(bots).ok()?,
            duration: Duration::from_secs(seconds),
        })
    }

    fn name(&mut self, table: &Table<'_, 't>, names: &mut BTreeMap<String, usize>) -> Option<String> {
        let is_fit = |name: &&str| {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
        };
        let wanted = format!("up to {MAX_NAME} small letters, digits and hyphens, such as \"evening-crowd\"");
        let example = Some("name = \"evening-crowd\"");
        let name = self.get(table, "name", (wanted, example), |value| {
            value.as_str().filter(is_fit).map(str::to_owned)
        })?;
        let span = table.span_of("name");
        match names.insert(name.clone(), self.line(&span)) {
            Some(line) => {
                self.wrong(&span, Wrong::SameName { name, line });
                None
            }
            None => Some(name),
        }
    }

    /// The kind's name, if it is one. Keys that it does not have are mistakes.
    fn kind(&mut self, table: &Table<'_, 't>) -> Option<&'static str> {
        let all = Conduct::NAMES.join(", ");
        let found = self.get(
            table,
            "kind",
            (format!("one of {all}"), Some("kind = \"walk\"")),
            |value| value.as_str().map(str::to_owned),
        )?;
        let Some(kind) = Conduct::NAMES.into_iter().find(|name| *name == found) else {
            let meant = nearest(&found, Conduct::NAMES);
            let hint = meant.map_or(format!("choose one of {all}"), |meant| {
                format!("did you mean {meant:?}?")
            });
            self.wrong(&table.span_of("kind"), Wrong::UnknownKind { found, hint });
            return None;
        };
        for (key, kinds) in KEYS {
            if !kinds.is_empty() && !kinds.contains(&kind) && table.get(key).is_some() {
                let kinds = kinds.join(" or ");
                self.wrong(&table.span_of(key), Wrong::NotOfKind { key, kind, kinds });
            }
        }
        Some(kind)
    }

    fn conduct(&mut self, table: &Table<'_, 't>, kind: &str) -> Option<Conduct> {
        match kind {
            "walk" => Some(Conduct::Walk),
            "idle" => Some(Conduct::Idle),
            "crowd" => self.gathering(table).map(Conduct::Crowd),
            "trade-fair" => self.trades(table).map(Conduct::TradeFair),
            "market" => self.trades(table).map(Conduct::Market),
            _ => {
                let rate = self.integer(table, "rate", RATE, Some("rate = 10, the log-ins per second"));
                let stay = self.integer(table, "stay", STAY, Some("stay = 3, the seconds of a visit"));
                Some(Conduct::LogInStorm(Visits {
                    rate: u32::try_from(rate?).ok()?,
                    stay: Duration::from_secs(stay?),
                }))
            }
        }
    }

    /// A gathering at which bots trade.
    fn trades(&mut self, table: &Table<'_, 't>) -> Option<Gathering> {
        if !self.can_trade {
            self.wrong(&table.span_of("kind"), Wrong::NoTrade);
        }
        self.gathering(table)
    }

    fn gathering(&mut self, table: &Table<'_, 't>) -> Option<Gathering> {
        let (least, most) = COORDINATE.into_inner();
        let wanted = format!("two numbers from {least} to {most}, x and z in metres, such as [40, -25]");
        let centre = self.get(
            table,
            "at",
            (wanted, Some("at = [0, 0], the place in metres")),
            |value| {
                let coordinate = |value: &Value<'t>| number(value.get_ref()).filter(|found| COORDINATE.contains(found));
                match value.as_array()?.iter().map(coordinate).collect::<Vec<_>>()[..] {
                    [Some(x), Some(z)] => Some([x as f32, z as f32]),
                    _ => None,
                }
            },
        );
        let (least, most) = RADIUS.into_inner();
        let wanted = format!("a number from {least} to {most}, in metres");
        let radius = match table.get("radius") {
            Some(_) => self.get(table, "radius", (wanted, None), |value| {
                number(value).filter(|found| RADIUS.contains(found))
            }),
            None => Some(USUAL_RADIUS),
        };
        Some(Gathering {
            centre: centre?,
            radius: radius? as f32,
        })
    }

    /// Whether all bots can log in within the phase, and a storm has enough of them.
    fn check_fit(&mut self, table: &Table<'_, 't>, conduct: Conduct, bots: u64, seconds: u64) -> Option<()> {
        let (rate, remedy) = match conduct {
            Conduct::LogInStorm(visits) => {
                let (rate, stay) = (u64::from(visits.rate), visits.stay.as_secs());
                // One second to log in and off.
                let needed = rate * (stay + 1);
                if bots < needed {
                    self.wrong(&table.span_of("bots"), Wrong::TooFewBots { rate, stay, needed });
                    return None;
                }
                (rate, "raise `rate` or `seconds`, or lower `bots`")
            }
            _ => (u64::from(LOG_INS_PER_SECOND), "raise `seconds`, or lower `bots`"),
        };
        if bots > rate * seconds {
            let remedy = remedy.to_owned();
            let wrong = Wrong::TooShort {
                bots,
                rate,
                seconds,
                remedy,
            };
            self.wrong(&table.span_of("seconds"), wrong);
            return None;
        }
        Some(())
    }

    fn integer(
        &mut self,
        table: &Table<'_, 't>,
        key: &'static str,
        range: RangeInclusive<i64>,
        example: Option<&'static str>,
    ) -> Option<u64> {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        self.get(table, key, (wanted, example), |value| {
            let found = value.as_integer()?;
            let found = i64::from_str_radix(found.as_str(), found.radix()).ok()?;
            u64::try_from(found).ok().filter(|_| range.contains(&found))
        })
    }

    /// The value of a key, as `read` reads it. Without an example it need not be there.
    fn get<T>(
        &mut self,
        table: &Table<'_, 't>,
        key: &'static str,
        (wanted, example): (String, Option<&'static str>),
        read: impl FnOnce(&DeValue<'t>) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = table.get(key) else {
            if let Some(example) = example {
                self.wrong(&table.span, Wrong::Missing { key, example });
            }
            return None;
        };
        let read = read(value.get_ref());
        if read.is_none() {
            let found = described(value.get_ref());
            self.wrong(&value.span(), Wrong::Unfit { key, found, wanted });
        }
        read
    }

    fn unknown(&mut self, key: &Spanned<Cow<'t, str>>, place: &'static str, hint: String) {
        let wrong = Wrong::UnknownKey {
            key: key.get_ref().to_string(),
            place,
            hint,
        };
        self.wrong(&key.span(), wrong);
    }
}

impl<'t> Table<'_, 't> {
    fn get(&self, key: &str) -> Option<&Value<'t>> {
        self.entries.get(key)
    }

    /// Where a key's value is; where the table is, if it has no such key.
    fn span_of(&self, key: &str) -> Range<usize> {
        self.get(key).map_or_else(|| self.span.clone(), Spanned::span)
    }
}

/// An integer or a float.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(found) => i32::from_str_radix(found.as_str(), found.radix()).ok().map(f64::from),
        DeValue::Float(found) => found.as_str().parse().ok(),
        _ => None,
    }
}

/// A value, as a message quotes it.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(array) => format!("a list of {}", array.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mistakes of a scenario, as they are printed.
    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Scenario::parse(text, true).expect_err("it has mistakes");
        let listed = Listed(Path::new("a.toml"), &mistakes).to_string();
        listed.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_kind_is_read() {
        let text = r#"
            [[phase]]
            name = "arrival"
            kind = "log-in-storm"
            bots = 40
            seconds = 20
            rate = 10
            stay = 2
            [[phase]]
            name = "square"
            kind = "crowd"
            bots = 30
            seconds = 60
            at = [12.5, -40]
            [[phase]]
            name = "fair"
            kind = "trade-fair"
            bots = 1_0
            seconds = 0x1e
            at = [0, 0]
            radius = 5
            [[phase]]
            name = "stroll"
            kind = "walk"
            bots = 1
            seconds = 1
            [[phase]]
            name = "night"
            kind = "idle"
            bots = 2
            seconds = 10
        "#;
        let scenario = Scenario::parse(text, true).expect("it has no mistakes");
        let kinds: Vec<&str> = scenario.phases.iter().map(|phase| phase.conduct.name()).collect();
        assert_eq!(kinds, ["log-in-storm", "crowd", "trade-fair", "walk", "idle"]);
        let expected = [
            Conduct::LogInStorm(Visits {
                rate: 10,
                stay: Duration::from_secs(2),
            }),
            Conduct::Crowd(Gathering {
                centre: [12.5, -40.0],
                radius: 20.0,
            }),
            Conduct::TradeFair(Gathering {
                centre: [0.0, 0.0],
                radius: 5.0,
            }),
        ];
        for (phase, conduct) in scenario.phases.iter().zip(expected) {
            assert_eq!(phase.conduct, conduct);
        }
        let fair = &scenario.phases[2];
        assert_eq!(
            (fair.bots, fair.duration, fair.name.as_str()),
            (10, Duration::from_secs(30), "fair")
        );
    }

    #[test]
    fn all_mistakes_are_reported_with_line_and_remedy() {
        let text = r#"titel = "x"
[[phase]]
name = "One"
kind = "wolk"
bots = 0
secnds = 4

[[phase]]
name = "two"
kind = "idle"
bots = "many"
seconds = 10
rate = 3

[[phase]]
name = "two"
kind = "crowd"
bots = 100
seconds = 2
at = [1]
radius = 0.5

[[phase]]
name = "storm"
kind = "log-in-storm"
bots = 10
seconds = 30
rate = 10
stay = 3
"#;
        assert_eq!(
            mistakes(text),
            [
                "a.toml:1: `titel` is not a key of a scenario; a scenario consists of tables [[phase]]",
                "a.toml:2: `seconds` is missing in this phase; add seconds = 30",
                "a.toml:3: `name` is \"One\"; write up to 40 small letters, digits and hyphens, such as \"evening-crowd\"",
                "a.toml:4: there is no kind \"wolk\"; did you mean \"walk\"?",
                "a.toml:5: `bots` is 0; write a whole number from 1 to 10000",
                "a.toml:6: `secnds` is not a key of a phase; did you mean `seconds`?",
                "a.toml:11: `bots` is \"many\"; write a whole number from 1 to 10000",
                "a.toml:13: `rate` has no effect on a phase of kind idle; remove it, or choose the kind log-in-storm",
                "a.toml:16: the name \"two\" is that of the phase in line 9 too; give each its own",
                "a.toml:20: `at` is a list of 1; write two numbers from -10000 to 10000, x and z in metres, such as [40, -25]",
                "a.toml:21: `radius` is 0.5; write a number from 1 to 1000, in metres",
                "a.toml:26: 10 log-ins a second by bots that stay 3 s need at least 40 bots, since each plays one account; \
                 raise `bots`, or lower `rate` or `stay`",
            ]
        );
    }

    #[test]
    fn a_file_that_is_no_scenario_is_refused() {
        assert_eq!(
            mistakes(""),
            ["a.toml:1: there is no phase; add a table [[phase]] with name, kind, bots and seconds"]
        );
        let broken = mistakes("[[phase]]\nname = \"a\nkind = walk\n");
        assert!(
            broken
                .iter()
                .any(|line| line.starts_with("a.toml:2: this is not TOML: ")),
            "{broken:?}"
        );
        assert!(
            broken
                .iter()
                .any(|line| line.starts_with("a.toml:3: this is not TOML: ")),
            "{broken:?}"
        );
        let number = mistakes("phase = 7");
        assert!(
            number[0].starts_with("a.toml:1: `phase` is 7; write a table [[phase]]"),
            "{number:?}"
        );
    }

    #[test]
    fn bots_have_time_to_log_in() {
        let walk = |seconds| format!("[[phase]]\nname = \"a\"\nkind = \"walk\"\nbots = 61\nseconds = {seconds}\n");
        assert!(Scenario::parse(&walk(3), true).is_ok());
        assert_eq!(
            mistakes(&walk(2)),
            [
                "a.toml:5: 61 bots log in at 30 a second, which takes more than the phase's 2 s; raise `seconds`, or lower `bots`"
            ]
        );
    }

    #[test]
    fn a_world_without_trade_has_no_fair() {
        let text = "[[phase]]\nname = \"a\"\nkind = \"trade-fair\"\nbots = 2\nseconds = 3\nat = [0, 0]\n";
        let mistakes = Scenario::parse(text, false).expect_err("there is no trade");
        let expected = Mistake {
            line: 3,
            wrong: Wrong::NoTrade,
        };
        assert_eq!(mistakes, [expected]);
    }

    #[test]
    fn the_scenarios_of_the_repository_are_valid() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let schema = annals_def::check_dir(&root.join("defs"))
            .0
            .expect("the sample compiles");
        let mut kinds = std::collections::BTreeSet::new();
        for file in fs::read_dir(root.join("ops/bots")).expect("it is there") {
            let path = file.expect("it is there").path();
            let scenario = Scenario::read(&path, &schema).unwrap_or_else(|error| panic!("{error}"));
            kinds.extend(scenario.phases.iter().map(|phase| phase.conduct.name()));
        }
        assert_eq!(kinds.len(), Conduct::NAMES.len(), "{kinds:?}");
    }
}
