//! A diff for people, and for programs.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Audience, ChangeKind, Class, Diff, SchemaChange, Subject};

/// Columns before a reason.
const CLASS_WIDTH: usize = 15;

impl Diff {
    /// The diff for people: what changed, type by type; what it means for whom; what to do.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.changes.is_empty() {
            return "the definitions mean the same\n".to_owned();
        }
        let mut out = String::new();
        let mut headings: Vec<String> = Vec::new();
        for change in &self.changes {
            let heading = change.subject.heading();
            if !headings.contains(&heading) {
                headings.push(heading);
            }
        }
        for heading in headings {
            let _ = writeln!(out, "{heading}");
            for change in self.changes.iter().filter(|change| change.subject.heading() == heading) {
                self.write_change(change, &mut out);
            }
            out.push('\n');
        }
        self.write_verdict(&mut out);
        self.write_plan(&mut out);
        out
    }

    fn write_change(&self, change: &SchemaChange, out: &mut String) {
        let member = change.subject.member();
        let separator = if member.is_empty() { "" } else { " " };
        let _ = writeln!(out, "  {member}{separator}{}", change.kind);
        // What all changes do to processes is said once, in the verdict.
        let told = [Audience::Stored, Audience::Log, Audience::Clients];
        for audience in told {
            let effect = change.effects.of(audience);
            if effect.class != Class::Unaffected {
                let _ = writeln!(
                    out,
                    "    {:<12} {:<CLASS_WIDTH$}  {}",
                    audience.to_string(),
                    effect.class.to_string(),
                    effect.reason
                );
            }
        }
        if told
            .iter()
            .all(|&audience| change.effects.of(audience).class == Class::Unaffected)
        {
            let _ = writeln!(out, "    neither stored data, nor the log, nor clients are affected");
        }
        if let Some(hint) = self.hint(change) {
            let _ = writeln!(out, "    {hint}");
        }
    }

    fn write_verdict(&self, out: &mut String) {
        let _ = writeln!(out, "in all");
        for audience in Audience::ALL {
            let class = self.verdict(audience);
            let reason = match (audience, class) {
                (Audience::Peers, Class::Unaffected) => "",
                (Audience::Peers, _) => {
                    "the director takes processes of one schema only: all are started anew together"
                }
                _ => "",
            };
            let line = format!(
                "  {:<14} {:<CLASS_WIDTH$}  {reason}",
                audience.to_string(),
                class.to_string()
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push('\n');
    }

    fn write_plan(&self, out: &mut String) {
        let _ = writeln!(out, "what to do");
        for (i, step) in self.steps().iter().enumerate() {
            let _ = writeln!(out, "  {}. {step}", i + 1);
        }
    }

    /// The same as one JSON object: `old` and `new` fingerprints, `verdict`, `changes` and `plan`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let verdict: serde_json::Map<String, Json> = Audience::ALL
            .iter()
            .map(|&audience| (audience.word().to_owned(), json!(self.verdict(audience).word())))
            .collect();
        let steps = self.steps();
        let plan: Vec<Json> = steps
            .iter()
            .map(|step| json!({ "step": step.word(), "text": step.to_string() }))
            .collect();
        let report = json!({
            "old": self.plan.old.fingerprint().to_string(),
            "new": self.plan.new.fingerprint().to_string(),
            "verdict": verdict,
            "changes": self.changes.iter().map(|change| self.change(change)).collect::<Vec<_>>(),
            "plan": plan,
        });
        format!("{report:#}\n")
    }

    fn change(&self, change: &SchemaChange) -> Json {
        let effects: serde_json::Map<String, Json> = Audience::ALL
            .iter()
            .map(|&audience| {
                let effect = change.effects.of(audience);
                let told = json!({ "class": effect.class.word(), "reason": effect.reason });
                (audience.word().to_owned(), told)
            })
            .collect();
        json!({
            "subject": change.subject.to_string(),
            "change": change.kind.word(),
            "text": change.kind.to_string(),
            "hint": self.hint(change),
            "effects": effects,
        })
    }

    /// What is to be said if something that is gone may have been renamed.
    fn hint(&self, change: &SchemaChange) -> Option<String> {
        let perhaps = match &change.kind {
            ChangeKind::TypeRemoved { perhaps }
            | ChangeKind::PropertyRemoved { perhaps }
            | ChangeKind::MethodRemoved { perhaps } => perhaps.as_ref()?,
            _ => return None,
        };
        let old = match &change.subject {
            Subject::Type(name) => name.clone(),
            Subject::Property(entity_type, name) | Subject::Method(entity_type, _, name) => {
                // A rename names the type as it was.
                let now = self.plan.new.type_named(entity_type);
                let before = now.and_then(|now| self.plan.old_of(now.id));
                format!("{}.{name}", before.map_or(entity_type, |before| &before.name))
            }
            _ => return None,
        };
        Some(format!("if it is called {perhaps} now, say --rename {old}={perhaps}"))
    }
}
