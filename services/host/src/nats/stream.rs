//! Streams with exactly the configuration that we asked for. A server silently drops fields that it does not know, and
//! an existing stream may be old; so the server's configuration is read back and compared, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, ErrorCode};
use serde_json::Value;

use crate::waiting::Wait;

/// Maximum time until a cluster has a leader and knows its members.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// The server's error codes for temporary states: members that are not known yet, no leader at the moment.
const PASSING: [u64; 2] = [10005, 10008];

/// One field in which a stream differs from the requested configuration, named as in the server's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub field: String,
    /// The requested value, as JSON; `null` means not set.
    pub wanted: Value,
    /// The server's value.
    pub found: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, not {}", self.field, self.found, self.wanted)
    }
}

/// A stream does not exist as required.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The server did not create it.
    #[error("stream {stream} could not be made")]
    Create {
        /// Its name.
        stream: String,
        /// The server's error.
        source: jetstream::context::CreateStreamError,
    },
    /// It exists and could not be read.
    #[error("stream {stream} could not be read")]
    Read {
        /// Its name.
        stream: String,
        /// The server's error.
        source: jetstream::context::GetStreamError,
    },
    /// It exists with another configuration.
    #[error("stream {stream} differs from what is needed: {}; change it with the nats tool, or name another realm", listed(.differences))]
    Different {
        /// Its name.
        stream: String,
        /// The differences; never empty.
        differences: Vec<Difference>,
    },
}

/// The stream as `wanted`: created if missing, and compared with the server's configuration in either case.
pub(super) async fn ensure(
    context: &jetstream::Context,
    wanted: Config,
) -> Result<jetstream::stream::Stream, StreamError> {
    let name = wanted.name.clone();
    let stream = match create(context, &wanted).await {
        Ok(stream) => stream,
        Err(error) if code(&error) == Some(ErrorCode::STREAM_NAME_EXIST) => {
            context.get_stream(&name).await.map_err(|source| StreamError::Read {
                stream: name.clone(),
                source,
            })?
        }
        Err(source) => return Err(StreamError::Create { stream: name, source }),
    };
    as_wanted(&wanted, stream)
}

/// The stream as `wanted`, once another process has created it.
pub(super) async fn found(
    context: &jetstream::Context,
    wanted: Config,
) -> Result<jetstream::stream::Stream, StreamError> {
    let mut wait = Wait::new(
        format!("stream {}", wanted.name),
        "this process holds nothing until db has created it; check that annals-db runs with the same --realm and --nats",
    );
    loop {
        match context.get_stream(&wanted.name).await {
            Ok(stream) => {
                wait.ends();
                return as_wanted(&wanted, stream);
            }
            Err(error) if may_appear(&error) => wait.lasts(error),
            Err(source) => {
                return Err(StreamError::Read {
                    stream: wanted.name,
                    source,
                });
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn as_wanted(wanted: &Config, stream: jetstream::stream::Stream) -> Result<jetstream::stream::Stream, StreamError> {
    let differences = compare(wanted, &stream.cached_info().config);
    if differences.is_empty() {
        Ok(stream)
    } else {
        Err(StreamError::Different {
            stream: wanted.name.clone(),
            differences,
        })
    }
}

fn may_appear(error: &jetstream::context::GetStreamError) -> bool {
    match error.kind() {
        GetStreamErrorKind::Request => true,
        GetStreamErrorKind::JetStream(error) => {
            error.error_code() == ErrorCode::STREAM_NOT_FOUND || PASSING.contains(&error.error_code().0)
        }
        _ => false,
    }
}

/// Retries for as long as the error may be temporary. Creating the same stream twice is no error.
async fn create(
    context: &jetstream::Context,
    wanted: &Config,
) -> Result<jetstream::stream::Stream, jetstream::context::CreateStreamError> {
    let patience = Instant::now() + TIMEOUT;
    let mut wait = Wait::new(
        format!("JetStream to make stream {}", wanted.name),
        format!(
            "this process ends after {} s; check the log of the nats-server",
            TIMEOUT.as_secs()
        ),
    );
    loop {
        match context.create_stream(wanted.clone()).await {
            Err(error) if may_pass(&error) && Instant::now() < patience => {
                wait.lasts(error);
            }
            result => {
                wait.ends();
                return result;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn may_pass(error: &jetstream::context::CreateStreamError) -> bool {
    match error.kind() {
        CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(error) => PASSING.contains(&error.error_code().0),
        _ => false,
    }
}

fn code(error: &jetstream::context::CreateStreamError) -> Option<ErrorCode> {
    match error.kind() {
        CreateStreamErrorKind::JetStream(error) => Some(error.error_code()),
        _ => None,
    }
}

/// All relevant differences, sorted by name.
fn compare(wanted: &Config, found: &Config) -> Vec<Difference> {
    let (wanted, found) = (meaning(wanted), meaning(found));
    let fields: BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    let difference = |field: &String| {
        let value = |of: &BTreeMap<String, Value>| of.get(field).cloned().unwrap_or(Value::Null);
        let (wanted, found) = (value(&wanted), value(&found));
        (wanted != found).then(|| Difference {
            field: field.clone(),
            wanted,
            found,
        })
    };
    fields.into_iter().filter_map(difference).collect()
}

/// The fields that are set: equivalent values are normalised, and the server's additions removed.
fn meaning(config: &Config) -> BTreeMap<String, Value> {
    let Ok(Value::Object(fields)) = serde_json::to_value(config) else {
        unreachable!("invariant: a stream configuration is a JSON object")
    };
    fields
        .into_iter()
        .filter_map(|(field, value)| Some((meaningful(&field, value)?, field)))
        .map(|(v, f)| (f, v))
        .collect()
}

fn meaningful(field: &str, value: Value) -> Option<Value> {
    match (field, value) {
        // Filled in by the server; we rely on neither.
        ("duplicate_window" | "consumer_limits" | "placement", _) => None,
        // "No limit" is -1 for the server and 0 for the client.
        ("max_consumers" | "max_msgs" | "max_msgs_per_subject" | "max_bytes" | "max_msg_size", Value::Number(n)) => {
            n.as_i64().filter(|&limit| limit > 0).map(Value::from)
        }
        ("metadata", Value::Object(mut entries)) => {
            entries.retain(|key, _| !key.starts_with("_nats."));
            (!entries.is_empty()).then_some(Value::Object(entries))
        }
        ("subjects", Value::Array(mut subjects)) => {
            subjects.sort_by_key(Value::to_string);
            Some(Value::Array(subjects))
        }
        ("compression", Value::String(none)) if none == "none" => None,
        (_, Value::Null | Value::Bool(false)) => None,
        (_, Value::Number(n)) if n.as_i64() == Some(0) => None,
        (_, Value::String(text)) if text.is_empty() => None,
        (_, value) => Some(value),
    }
}

fn listed(differences: &[Difference]) -> String {
    differences
        .iter()
        .map(Difference::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_defaults_are_no_difference() {
        let wanted = Config {
            name: "log".to_owned(),
            subjects: vec!["b".to_owned(), "a".to_owned()],
            ..Config::default()
        };
        let mut found = wanted.clone();
        found.subjects.reverse();
        found.max_bytes = -1;
        found.max_consumers = -1;
        found.duplicate_window = std::time::Duration::from_secs(120);
        found.metadata.insert("_nats.ver".to_owned(), "2.15.1".to_owned());
        assert_eq!(compare(&wanted, &found), []);
    }

    #[test]
    fn every_difference_is_named() {
        let wanted = Config {
            name: "log".to_owned(),
            deny_delete: true,
            num_replicas: 3,
            ..Config::default()
        };
        let found = Config {
            deny_delete: false,
            num_replicas: 1,
            max_messages: 5,
            ..wanted.clone()
        };
        let fields: Vec<_> = compare(&wanted, &found)
            .into_iter()
            .map(|difference| difference.to_string())
            .collect();
        assert_eq!(
            fields,
            [
                "deny_delete is null, not true",
                "max_msgs is 5, not null",
                "num_replicas is 1, not 3"
            ]
        );
    }
}
