//! Authentication by a service on NATS: a request for each log-in, in JSON.
//!
//! ```json
//! {"version": 1, "realm": "aldmoor", "name": "ann", "password": "…"}
//! ```
//! It answers with one of
//! ```json
//! {"outcome": "accepted", "account": "ann"}
//! {"outcome": "refused"}
//! {"outcome": "banned", "reason": "case 9", "until": 1798000000000}
//! {"outcome": "unavailable"}
//! ```

use std::time::Duration;

use annals_ids::WallTime;
use annals_wire::client::{Ban, MAX_BAN_REASON_BYTES, MAX_NAME_BYTES, Password};
use async_nats::Request;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::nats::Bus;

/// Time limit of an answer. The client waits for the whole log-in, of which this is a part.
pub const SERVICE_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum bytes of an answer.
pub const MAX_ANSWER_BYTES: usize = 4 << 10;

/// The version of question and answer. What later versions add, a service may ignore.
const VERSION: u32 = 1;

/// What the service is asked. Not printed: it has a password.
#[derive(Serialize)]
pub(crate) struct Question<'a> {
    version: u32,
    realm: &'a str,
    name: &'a str,
    password: &'a str,
}

impl<'a> Question<'a> {
    pub(crate) fn new(realm: &'a str, name: &'a str, password: &'a Password) -> Self {
        Self {
            version: VERSION,
            realm,
            name,
            password: &password.0,
        }
    }
}

/// What it answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Answer {
    Accepted { account: String },
    Refused,
    Banned { reason: String, until: Option<u64> },
    Unavailable,
}

/// What was learned about a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It is this account's.
    Accepted(String),
    /// Name and password do not match.
    Refused,
    /// They match, and the account may not play.
    Banned(Ban),
}

/// Why nothing was learned. For the process log: it names nothing that is secret.
#[derive(Debug, Error)]
pub(crate) enum NotAnswered {
    #[error("no answer")]
    Silent(#[from] async_nats::RequestError),
    #[error("the service says that it is unavailable")]
    Unavailable,
    #[error("the answer has {0} bytes, and at most {MAX_ANSWER_BYTES} are read")]
    TooLong(usize),
    #[error("the answer is malformed: {0}")]
    Malformed(String),
}

/// Asks the service on this subject.
pub(crate) async fn ask(bus: &Bus, subject: &str, question: &Question<'_>) -> Result<Answered, NotAnswered> {
    let payload = serde_json::to_vec(question).map_err(|error| NotAnswered::Malformed(error.to_string()))?;
    let request = Request::new().payload(payload.into()).timeout(Some(SERVICE_TIMEOUT));
    let answer = bus.client().send_request(subject.to_owned(), request).await?;
    read(&answer.payload)
}

fn read(answer: &[u8]) -> Result<Answered, NotAnswered> {
    if answer.len() > MAX_ANSWER_BYTES {
        return Err(NotAnswered::TooLong(answer.len()));
    }
    let malformed = |problem: &str| NotAnswered::Malformed(problem.to_owned());
    // The error of a parser may quote what it was given, which is no secret of ours.
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| malformed(&error.to_string()))?;
    match answer {
        Answer::Accepted { account } if (1..=MAX_NAME_BYTES).contains(&account.len()) => {
            Ok(Answered::Accepted(account))
        }
        Answer::Accepted { .. } => Err(malformed("an account's name has 1 to 255 bytes")),
        Answer::Refused => Ok(Answered::Refused),
        Answer::Banned { reason, until } if reason.len() <= MAX_BAN_REASON_BYTES => Ok(Answered::Banned(Ban {
            until: until.map(WallTime),
            reason,
        })),
        Answer::Banned { .. } => Err(malformed("the reason for a ban has at most 500 bytes")),
        Answer::Unavailable => Err(NotAnswered::Unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let accepted = read(br#"{"outcome": "accepted", "account": "ann", "level": 3}"#);
        assert_eq!(accepted.unwrap(), Answered::Accepted("ann".to_owned()));
        assert_eq!(read(br#"{"outcome": "refused"}"#).unwrap(), Answered::Refused);
        let ban = Ban {
            until: Some(WallTime(5)),
            reason: "case 9".to_owned(),
        };
        let banned = read(br#"{"outcome": "banned", "reason": "case 9", "until": 5}"#);
        assert_eq!(banned.unwrap(), Answered::Banned(ban));
        let unavailable = read(br#"{"outcome": "unavailable"}"#);
        assert!(matches!(unavailable, Err(NotAnswered::Unavailable)));
        let long = format!(
            r#"{{"outcome": "accepted", "account": "{}"}}"#,
            "a".repeat(MAX_NAME_BYTES + 1)
        );
        for malformed in [
            "",
            "{",
            "true",
            r#"{"outcome": "accepted"}"#,
            r#"{"outcome": "accepted", "account": ""}"#,
            r#"{"outcome": "welcome"}"#,
            &long,
        ] {
            let read = read(malformed.as_bytes());
            assert!(matches!(read, Err(NotAnswered::Malformed(_))), "{malformed}");
        }
        let huge = vec![b' '; MAX_ANSWER_BYTES + 1];
        assert!(matches!(read(&huge), Err(NotAnswered::TooLong(_))));
    }

    #[test]
    fn changed_answers_stay_within_the_limits() {
        let valid: [&[u8]; 3] = [
            br#"{"outcome": "accepted", "account": "ann", "level": 3}"#,
            br#"{"outcome": "banned", "reason": "case 9", "until": 5}"#,
            br#"{"outcome": "unavailable"}"#,
        ];
        let mut dice = annals_def::split_mix(7);
        let mut below = |limit: usize| usize::try_from(dice() % limit as u64).expect("it is below a usize");
        for round in 0..20_000 {
            let mut answer = valid[round % valid.len()].to_vec();
            for _ in 0..=below(3) {
                let (at, end) = (below(answer.len()), below(answer.len() + 1));
                match below(3) {
                    0 => answer[at] = br#"{}[]":,\0eu- "#[below(13)],
                    1 => drop(answer.drain(at.min(end)..at.max(end).min(answer.len() - 1))),
                    _ => answer = [&answer[..at], &vec![answer[at]; below(600)], &answer[at..]].concat(),
                }
            }
            match read(&answer) {
                Ok(Answered::Accepted(name)) => assert!((1..=MAX_NAME_BYTES).contains(&name.len())),
                Ok(Answered::Banned(ban)) => assert!(ban.reason.len() <= MAX_BAN_REASON_BYTES),
                Ok(Answered::Refused) | Err(_) => {}
            }
        }
    }
}
