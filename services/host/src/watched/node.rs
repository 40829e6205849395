//! Values with their paths, units and descriptions.

use std::fmt;

use annals_db::MAX_VALUE_BYTES;
use serde::{Deserialize, Serialize};

use super::{Patterns, Setting};

/// A watched value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// An amount.
    Count(u64),
    /// An amount below zero.
    Change(i64),
    /// A measurement.
    Real(f64),
    /// Anything else, for readers.
    Text(String),
}

/// Unit of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A number of things, or none.
    #[default]
    #[serde(rename = "")]
    None,
    #[serde(rename = "µs")]
    Micros,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "B")]
    Bytes,
    /// Processor cores in use.
    #[serde(rename = "cores")]
    Cores,
}

/// A value at its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The whole path: `SERVICE/PROCESS/…`.
    pub path: String,
    pub value: Value,
    #[serde(default)]
    pub unit: Unit,
    /// What it is, in one line.
    pub about: String,
    /// The values that operators may set; `None` if it cannot be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
}

/// Collects the values that match a request.
pub struct Nodes<'a> {
    /// The path of what is being collected.
    path: String,
    patterns: &'a Patterns,
    found: Vec<Node>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(process: &str, patterns: &'a Patterns) -> Self {
        Self {
            path: process.to_owned(),
            patterns,
            found: Vec::new(),
        }
    }

    /// Puts a value under this path, if it was asked for.
    pub fn put(&mut self, path: impl AsRef<str>, value: impl Into<Value>, unit: Unit, about: &str) {
        let path = self.joined(path.as_ref());
        if self.patterns.matches(&path) {
            self.found.push(Node {
                path,
                value: value.into().bounded(),
                unit,
                about: about.to_owned(),
                allowed: None,
            });
        }
    }

    pub(super) fn put_setting(&mut self, setting: &Setting) {
        let before = self.found.len();
        self.put(setting.path, (setting.read)(), setting.unit, setting.about);
        for node in &mut self.found[before..] {
            node.allowed = Some(setting.allowed.to_owned());
        }
    }

    /// Puts values below a path.
    pub fn within(&mut self, path: &str, put: impl FnOnce(&mut Self)) {
        let outer = self.path.len();
        self.path = self.joined(path);
        put(self);
        self.path.truncate(outer);
    }

    pub(super) fn finish(self) -> Vec<Node> {
        self.found
    }

    fn joined(&self, path: &str) -> String {
        if path.is_empty() {
            self.path.clone()
        } else {
            format!("{}/{path}", self.path)
        }
    }
}

impl Value {
    /// Shortens a text that is too long to be recorded when it is changed.
    fn bounded(self) -> Self {
        match self {
            Value::Text(text) if text.len() > MAX_VALUE_BYTES => {
                let cut = text.floor_char_boundary(MAX_VALUE_BYTES);
                Value::Text(format!("{}…", &text[..cut]))
            }
            // JSON has no other numbers.
            Value::Real(real) if !real.is_finite() => Value::Text(real.to_string()),
            value => value,
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Value::Count(count)
    }
}

impl From<i64> for Value {
    fn from(amount: i64) -> Self {
        u64::try_from(amount).map_or(Value::Change(amount), Value::Count)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Value::Real(real)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Change(change) => write!(f, "{change}"),
            Value::Real(real) => write!(f, "{real:.3}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::None => "",
            Unit::Micros => "µs",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::Cores => "cores",
        })
    }
}
