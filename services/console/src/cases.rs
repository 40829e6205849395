//! Cases: what auditors investigate, from the complaint to the verdict. Each step of a case is a line among the
//! [views](crate::views), so that it is stored, chained and checked with them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::views::{View, ViewsError};

/// Maximum bytes of one text in a case.
pub const TEXT_BYTES: usize = 1_000;

/// Maximum open cases.
pub const OPEN_CASES: usize = 200;

/// Maximum notes in one case, including its opening; it can still be closed after that.
pub const NOTES: usize = 100;

/// A step in a case, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseAct {
    /// Number of the case, from 1.
    pub number: u64,
    /// Kind of step.
    pub act: Act,
    /// Page that the case is about, if this step opens it and it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Text of the step.
    pub text: String,
}

/// Kinds of steps in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Opens the case, with the complaint.
    Opened,
    /// Adds a note.
    Noted,
    /// Closes the case, with the verdict.
    Closed,
}

/// A case with its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// Page that the case is about.
    pub about: Option<String>,
    /// Steps, oldest first: the opening, notes, and for a closed case the verdict.
    pub steps: Vec<CaseStep>,
}

/// A step in a case, with time and author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseStep {
    /// Time, by the console's clock.
    pub when: String,
    /// Author.
    pub who: String,
    /// Kind of step.
    pub act: Act,
    pub text: String,
}

/// Why a step was rejected.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The case is not open.
    #[error("case {0} is not open: it does not exist, or it was closed")]
    NotOpen(u64),
    /// The text is empty or too long.
    #[error("write the subject in at most {TEXT_BYTES} bytes of text")]
    Text,
    /// Not the address of something that a case can be about.
    #[error("a case is about an account, an item, a trade, an entity or a session, by the address of its page")]
    About,
    /// Too many open cases.
    #[error("{OPEN_CASES} cases are open, which is the limit: close one first")]
    TooMany,
    /// Too many notes in the case.
    #[error("case {0} has {NOTES} notes, which is the limit: close it, and open another one")]
    TooLong(u64),
    /// The step could not be recorded.
    #[error("the case cannot be stored")]
    Unwritten(#[from] ViewsError),
}

/// The open cases.
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
    /// A case from its opening; `None` if the view is not an opening.
    pub(crate) fn begun(view: &View) -> Option<Self> {
        let act = view.case.as_ref().filter(|act| act.act == Act::Opened)?;
        Some(Self {
            number: act.number,
            about: act.about.clone(),
            steps: vec![CaseStep::of(view, act)],
        })
    }

    /// Applies the next step.
    pub(crate) fn go_on(&mut self, view: &View) {
        self.steps.extend(view.case.as_ref().map(|act| CaseStep::of(view, act)));
    }

    /// Whether the case is open.
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
    /// Open cases, oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Case> {
        self.open.values()
    }

    /// Number of the next case.
    pub(crate) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Checks whether a step is allowed now.
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

    /// Applies a line that [`Self::allow`] accepts. `None` if it cannot follow the lines before.
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

/// Whether an address is that of a page that a case can be about.
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
