//! Cases: what auditors look into, from the complaint to the verdict. What is done with one is a line among the
//! [views](crate::views), so that it is kept, chained and checked with them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::views::{View, ViewsError};

/// Bytes of what is written about a case at a time, at most.
pub const TEXT_BYTES: usize = 1_000;

/// Cases that are open at a time.
pub const OPEN_CASES: usize = 200;

/// Notes in one, its opening included; it can still be closed then.
pub const NOTES: usize = 100;

/// What is done with a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseAct {
    /// Its number, from 1.
    pub number: u64,
    /// What is done.
    pub act: Act,
    /// The page that it is about, if it is opened and about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What is written about it.
    pub text: String,
}

/// What can be done with a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// It begins, with the complaint.
    Opened,
    /// Something is noted.
    Noted,
    /// It ends, with the verdict.
    Closed,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its number.
    pub number: u64,
    /// The page that it is about.
    pub about: Option<String>,
    /// What was done, the oldest first: it was opened, and perhaps closed with the last.
    pub steps: Vec<CaseStep>,
}

/// Something that was done with a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseStep {
    /// When, by the clock of the console.
    pub when: String,
    /// By whom.
    pub who: String,
    /// What.
    pub act: Act,
    /// What was written.
    pub text: String,
}

/// Why nothing was done with a case.
#[derive(Debug, Error)]
pub enum CaseError {
    /// It is not open.
    #[error("case {0} is not open: there is none of that number, or it was closed")]
    NotOpen(u64),
    /// Nothing, or too much.
    #[error("write what it is about, in at most {TEXT_BYTES} bytes of text")]
    Text,
    /// Something else than what a case can be about.
    #[error("a case is about an account, an item, a trade, an entity or a session, by the address of its page")]
    About,
    /// Too many.
    #[error("{OPEN_CASES} cases are open, which is the most: close one first")]
    TooMany,
    /// Too long.
    #[error("case {0} has {NOTES} notes, which is the most: close it, and open another one")]
    TooLong(u64),
    /// It could not be written down.
    #[error("it could not be written down")]
    Unwritten(#[from] ViewsError),
}

/// The cases that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cases {
    open: BTreeMap<u64, Case>,
    last: u64,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened => "opened",
            Self::Noted => "noted",
            Self::Closed => "closed",
        })
    }
}

impl Case {
    /// Begins with its opening; `None` if that is none.
    pub(crate) fn begun(view: &View) -> Option<Self> {
        let act = view.case.as_ref().filter(|act| act.act == Act::Opened)?;
        Some(Self {
            number: act.number,
            about: act.about.clone(),
            steps: vec![CaseStep::of(view, act)],
        })
    }

    /// Goes on with what was done next.
    pub(crate) fn go_on(&mut self, view: &View) {
        self.steps.extend(view.case.as_ref().map(|act| CaseStep::of(view, act)));
    }

    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.steps.last().is_some_and(|step| step.act != Act::Closed)
    }
}

impl CaseStep {
    fn of(view: &View, act: &CaseAct) -> Self {
        Self {
            when: view.when.clone(),
            who: view.who.clone(),
            act: act.act,
            text: act.text.clone(),
        }
    }
}

impl Cases {
    /// Those that are open, the oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Case> {
        self.open.values()
    }

    /// The number of the next one.
    pub(crate) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Whether that can be done now.
    pub(crate) fn allow(&self, act: &CaseAct) -> Result<(), CaseError> {
        if act.text.trim().is_empty() || act.text.len() > TEXT_BYTES {
            return Err(CaseError::Text);
        }
        if act.act == Act::Opened {
            let is_about = act.about.as_deref().is_none_or(is_page);
            return match (is_about, self.open.len() < OPEN_CASES) {
                (false, _) => Err(CaseError::About),
                (true, false) => Err(CaseError::TooMany),
                (true, true) => Ok(()),
            };
        }
        let case = self.open.get(&act.number).ok_or(CaseError::NotOpen(act.number))?;
        match act.act == Act::Noted && case.steps.len() >= NOTES {
            true => Err(CaseError::TooLong(act.number)),
            false => Ok(()),
        }
    }

    /// Takes a line in, of which [`Self::allow`] says that it can be. `None` if it cannot follow the ones before.
    pub(crate) fn take(&mut self, view: &View) -> Option<()> {
        let Some(act) = &view.case else { return Some(()) };
        match act.act {
            Act::Opened if act.number == self.next() => {
                self.last = act.number;
                self.open.insert(act.number, Case::begun(view)?);
            }
            Act::Opened => return None,
            Act::Noted => self.open.get_mut(&act.number)?.go_on(view),
            Act::Closed => drop(self.open.remove(&act.number)?),
        }
        Some(())
    }
}

/// Whether an address is that of something a case can be about.
fn is_page(address: &str) -> bool {
    let mut parts = address.split('/');
    let (before, what) = (parts.next(), parts.next());
    let numbers: Vec<&str> = parts.collect();
    let wanted = match what {
        Some("account" | "item" | "entity" | "session") => 1,
        Some("trade") => 2,
        _ => return false,
    };
    before == Some("") && numbers.len() == wanted && numbers.iter().all(|number| number.parse::<u64>().is_ok())
}
