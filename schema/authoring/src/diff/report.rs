//! A diff as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Audience, ChangeKind, Class, Diff, SchemaChange, Subject};

/// Width of the class before a reason, columns.
const CLASS_WIDTH: usize = 15;

/// Changes with the same text: one alias can change many properties.
struct Group<'a> {
    /// At least one.
    changes: Vec<&'a SchemaChange>,
}

impl<'a> Group<'a> {
    /// Groups all changes, ordered by the first of each group.
    fn all(changes: &'a [SchemaChange]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for change in changes {
            match groups.iter_mut().find(|group| is_like(group.changes[0], change)) {
                Some(group) => group.changes.push(change),
                None => groups.push(Self { changes: vec![change] }),
            }
        }
        groups
    }

    /// The distinct headings of its changes.
    fn heading(&self) -> String {
        let mut headings: Vec<String> = Vec::new();
        for heading in self.changes.iter().map(|change| change.subject.heading()) {
            if !headings.contains(&heading) {
                headings.push(heading);
            }
        }
        headings.join(", ")
    }

    /// The change and its places.
    fn title(&self) -> String {
        let first = self.changes[0];
        let place = |change: &SchemaChange| change.subject.place(change.kind.path());
        let about = first.subject.about();
        match (first.subject.member(), self.changes.len()) {
            (None, _) => first.kind.to_string(),
            (Some(_), 1) if about == "property" => format!("{} {}", place(first), first.kind),
            (Some(_), 1) => format!("{about} {} {}", place(first), first.kind),
            (Some(_), count) => {
                let about = about
                    .strip_suffix('y')
                    .map_or(format!("{about}s"), |stem| format!("{stem}ies"));
                let has_paths = self.changes.iter().any(|change| !change.kind.path().is_empty());
                let about = if has_paths { "places" } else { &about };
                let places: Vec<String> = self.changes.iter().map(|change| place(change)).collect();
                format!("{} in {count} {about}: {}", first.kind, places.join(", "))
            }
        }
    }
}

/// Whether two members, or places in their values, were altered in the same way with the same effects.
fn is_like(one: &SchemaChange, other: &SchemaChange) -> bool {
    let said = |change: &SchemaChange| (change.subject.about(), change.kind.word(), change.kind.to_string());
    one.subject.member().is_some()
        && one.kind.is_alteration()
        && one.effects == other.effects
        && said(one) == said(other)
}

impl Diff {
    /// The diff as text: the changes by type, their effects on each audience, and the steps to take.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.changes.is_empty() {
            return "the definitions mean the same\n".to_owned();
        }
        let mut out = String::new();
        let groups = Group::all(&self.changes);
        let mut headings: Vec<String> = Vec::new();
        for heading in groups.iter().map(Group::heading) {
            if !headings.contains(&heading) {
                headings.push(heading);
            }
        }
        for heading in headings {
            let _ = writeln!(out, "{heading}");
            for group in groups.iter().filter(|group| group.heading() == heading) {
                self.write_group(group, &mut out);
            }
            out.push('\n');
        }
        self.write_verdict(&mut out);
        self.write_plan(&mut out);
        out
    }

    fn write_group(&self, group: &Group<'_>, out: &mut String) {
        let _ = writeln!(out, "  {}", group.title());
        let change = group.changes[0];
        // The effect on processes is the same for all changes, and is in the verdict.
        let audiences = [Audience::Stored, Audience::Log, Audience::Clients];
        for audience in audiences {
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
        if audiences
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
            "old": self.plan.old().fingerprint().to_string(),
            "new": self.plan.new_schema().fingerprint().to_string(),
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
                let described = json!({ "class": effect.class.word(), "reason": effect.reason });
                (audience.word().to_owned(), described)
            })
            .collect();
        json!({
            "about": change.subject.about(),
            "type": change.subject.owner(),
            "member": change.subject.member(),
            "path": Some(change.kind.path()).filter(|path| !path.is_empty()),
            "place": change.subject.place(change.kind.path()),
            "change": change.kind.word(),
            "text": change.kind.to_string(),
            "hint": self.hint(change),
            "effects": effects,
        })
    }

    /// A hint that a removed declaration may have been renamed.
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
                // A rename uses the old name of the type.
                let now = self.plan.new_schema().type_named(entity_type);
                let before = now.and_then(|now| self.plan.old_of(now.id));
                format!("{}.{name}", before.map_or(entity_type, |before| &before.name))
            }
            _ => return None,
        };
        Some(format!("if it is called {perhaps} now, say --rename {old}={perhaps}"))
    }
}
