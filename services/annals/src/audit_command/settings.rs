//! The report on settings of running processes that operators changed.

use annals_db::{NewestChanges, SettingChange, newest_changes};
use annals_evidence::words;
use annals_host::log_source::Source;
use annals_ids::WallTime;
use serde_json::json;

use super::{Audit, NoAnswer, began, report::Report};

impl Audit {
    /// The changes within the span, from the store. No index is needed: they are not part of the archive.
    pub(super) async fn changed_settings(&self, source: &Source) -> Result<Report, NoAnswer> {
        if self.at.is_some() {
            return Err(NoAnswer::Span("`settings` takes --since and --until: omit --at"));
        }
        let began = began(source).await?;
        let since = self.since.map(|since| since.wall(began));
        let until = self.until.map(|until| until.wall(began));
        let found = newest_changes(&source.store, usize::MAX).await?;
        Ok(Report::of_settings(&found, (since, until)))
    }
}

impl Report {
    fn of_settings(found: &NewestChanges, (since, until): (Option<WallTime>, Option<WallTime>)) -> Self {
        let is_within = |change: &SettingChange| {
            since.is_none_or(|since| change.at >= since) && until.is_none_or(|until| change.at <= until)
        };
        let within: Vec<_> = found.changes.iter().filter(|(_, change)| is_within(change)).collect();
        let path = |change: &SettingChange| format!("{}/{}", change.process, change.path);
        let row = |(number, change): &&(u64, SettingChange)| {
            let SettingChange {
                at,
                before,
                after,
                operator,
                reason,
                ..
            } = change;
            vec![
                number.to_string(),
                words::date(*at),
                path(change),
                before.clone(),
                after.clone(),
                operator.clone(),
                reason.clone(),
            ]
        };
        let object = |(number, change): &&(u64, SettingChange)| {
            json!({
                "change": number,
                "when": words::date(change.at),
                "path": path(change),
                "before": change.before,
                "after": change.after,
                "operator": { "name": change.operator, "why": change.reason },
            })
        };
        Self {
            said: vec![format!(
                "{} of {} changes of settings by operators",
                within.len(),
                found.all
            )],
            columns: &["change", "when", "setting", "before", "after", "operator", "reason"],
            rows: within.iter().map(row).collect(),
            plain: None,
            object: json!({ "changes": within.iter().map(object).collect::<Vec<_>>(), "all": found.all }),
        }
    }
}
