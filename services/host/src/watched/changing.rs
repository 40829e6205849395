//! Changing a setting of a process: checked, recorded in the realm's store, then applied. What cannot be recorded is
//! not changed.

use std::time::Duration;

use annals_db::{MAX_NAME_BYTES, MAX_REASON_BYTES, MAX_VALUE_BYTES, SettingChange, record_change};
use annals_store::Store;
use serde::{Deserialize, Serialize};

use super::{Node, Value, Watched};
use crate::{clock, telemetry::Chain};

/// Timeout of the record.
const TIMEOUT: Duration = Duration::from_secs(3);

/// An operator's request to change a setting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeRequest {
    /// The whole path: `SERVICE/PROCESS/…`.
    pub path: String,
    pub value: String,
    /// Who changes it.
    pub operator: String,
    pub reason: String,
}

/// The answer to a request for a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeAnswer {
    /// What was changed.
    pub change: Option<Changed>,
    /// Why nothing was changed; else empty.
    pub refused: String,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Its number in the store.
    pub number: u64,
    pub before: Value,
    pub after: Value,
}

/// Changes a setting of the process named `process`, as `request` wants.
pub(crate) async fn change(watched: &Watched, (process, store): (&str, &Store), request: &[u8]) -> ChangeAnswer {
    let changed = match serde_json::from_slice(request) {
        Ok(request) => try_change(watched, (process, store), &request).await,
        Err(error) => Err(format!(
            "the request is malformed ({error}); use a tool of the realm's version"
        )),
    };
    match changed {
        Ok(change) => ChangeAnswer {
            change: Some(change),
            refused: String::new(),
        },
        Err(refused) => ChangeAnswer { change: None, refused },
    }
}

async fn try_change(
    watched: &Watched,
    (process, store): (&str, &Store),
    request: &ChangeRequest,
) -> Result<Changed, String> {
    let ChangeRequest {
        path,
        value,
        operator,
        reason,
    } = request;
    bounded("the name of the operator", operator, MAX_NAME_BYTES)?;
    bounded("the reason", reason, MAX_REASON_BYTES)?;
    bounded("the value", value, MAX_VALUE_BYTES)?;
    let path = path.strip_prefix(process).and_then(|path| path.strip_prefix('/'));
    let setting = path.and_then(|path| watched.setting(path));
    let setting = setting.ok_or_else(|| format!("{process} has no setting {}", request.path))?;
    let _one_at_a_time = watched.0.changing.lock().await;
    let (after, apply) = (setting.check)(value)
        .map_err(|advice| format!("{path} cannot be {value:?}: {advice}", path = request.path))?;
    let before = (setting.read)();
    let record = SettingChange {
        at: clock::wall(),
        process: process.to_owned(),
        path: setting.path.to_owned(),
        before: before.to_string(),
        after: after.to_string(),
        operator: operator.clone(),
        reason: reason.clone(),
    };
    let recorded = tokio::time::timeout(TIMEOUT, record_change(store, &record)).await;
    let number = match recorded {
        Ok(Ok(number)) => number,
        Ok(Err(error)) => return Err(format!("the change cannot be recorded in the store: {}", Chain(&error))),
        Err(_) => {
            return Err(format!(
                "the store did not confirm the record of the change within {} s, so nothing was changed, although the \
                 record may appear; check that annals-db runs",
                TIMEOUT.as_secs()
            ));
        }
    };
    apply();
    tracing::warn!(path = setting.path, %before, %after, operator, reason, "an operator changed a setting");
    Ok(Changed { number, before, after })
}

fn bounded(what: &str, text: &str, most: usize) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > most {
        return Err(format!("{what} must have 1 to {most} bytes"));
    }
    Ok(())
}

impl Node {
    /// Whether operators may set it.
    #[must_use]
    pub fn is_settable(&self) -> bool {
        self.allowed.is_some()
    }
}
