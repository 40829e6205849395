//! How an entity is seen from a distance: volatile values, levels of detail, exact positions.

use super::{Dialect, Named, Reading};
use crate::{
    diagnostic::{Finding, Rule, Severity},
    grammar::{self, BANDS},
    schema::{DetailedPosition, LodLevel, Reach, Volatile},
    source::{Section, Span},
};

/// The declaration of a level of detail.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredLevel {
    pub(crate) level: LodLevel,
    pub(crate) span: Span,
}

/// Default hysteresis in metres: an observer leaves a level this far beyond its radius.
const HYSTERESIS: f32 = 10.0;

impl<'s> Reading<'s> {
    pub(super) fn volatile(&mut self, section: Section<'s>) -> Volatile {
        self.text_means_nothing(section);
        let fields = self.fields(section, &grammar::VOLATILE);
        let mut reach = |tag| fields.get(tag).map_or(Reach::Never, |section| self.reach(section));
        let volatile = Volatile {
            position: reach("position"),
            yaw: reach("yaw"),
            pitch: reach("pitch"),
            roll: reach("roll"),
            ground_only: match self.dialect {
                Dialect::BigWorld => self.boolean(fields.get("optimized"), false),
                Dialect::KBEngine => fields
                    .get("optimized")
                    .is_none_or(|section| section.is_empty() || self.boolean(Some(section), true)),
            },
        };
        self.directions_descend(section, &volatile);
        volatile
    }

    /// Empty means always; a number is a distance; zero or less means never.
    fn reach(&mut self, section: Section<'s>) -> Reach {
        self.children_mean_nothing(section);
        if !section.has_text() {
            return Reach::Always;
        }
        match self.parse_distance(Named::text_of(section), f32::MIN) {
            Some(metres) if metres > 0.0 => Reach::Within(metres),
            Some(_) => Reach::Never,
            None => Reach::Always,
        }
    }

    fn directions_descend(&mut self, section: Section<'s>, volatile: &Volatile) {
        let [yaw, pitch, roll] = [volatile.yaw, volatile.pitch, volatile.roll].map(Reach::metres);
        let (far, near) = if pitch > yaw {
            ("pitch", "yaw")
        } else if roll > pitch {
            ("roll", "pitch")
        } else {
            return;
        };
        let severity = match self.dialect {
            Dialect::BigWorld => Severity::Error,
            Dialect::KBEngine => Severity::Warning,
        };
        let span = section
            .child(far)
            .map_or(section.name_span(), |child| child.name_span());
        let finding = Finding::new(
            Rule::VolatileOrder,
            span,
            format!("`{far}` is sent further than `{near}`"),
        )
        .severity(severity)
        .help(format!("give `{near}` the same distance or a greater one"));
        self.report(finding);
    }

    /// Levels in BigWorld's form: radius as text, label and hysteresis as children.
    pub(super) fn levels(&mut self, section: Section<'s>) -> Vec<DeclaredLevel> {
        self.text_means_nothing(section);
        let mut levels = Vec::new();
        for &child in self.fields(section, &grammar::LOD_LEVELS).many() {
            let fields = self.fields(child, &grammar::DETAIL_LEVEL);
            let radius = self.parse_distance(Named::text_of(child), 0.0);
            let label = fields.get("label").and_then(|label| self.text(label));
            let hysteresis = match fields.get("hyst") {
                Some(hyst) => self.distance(hyst, 0.0),
                None => Some(HYSTERESIS),
            };
            if label.is_none() && fields.get("label").is_none() {
                let finding = Finding::new(Rule::LevelShape, child.name_span(), "the level has no label")
                    .help("add `<label> NAME </label>`: properties refer to it by that name");
                self.report(finding);
            }
            if let (Some(radius), Some(label), Some(hysteresis)) = (radius, label, hysteresis) {
                let level = LodLevel {
                    label: label.name.to_owned(),
                    radius,
                    hysteresis,
                };
                levels.push(DeclaredLevel {
                    level,
                    span: child.name_span(),
                });
            }
        }
        levels
    }

    /// Levels in KBEngine's form: three bands, each `radius` wide, one beyond the other.
    pub(super) fn bands(&mut self, section: Section<'s>) -> Vec<DeclaredLevel> {
        self.text_means_nothing(section);
        let fields = self.fields(section, &grammar::DETAIL_LEVELS);
        let mut levels = Vec::new();
        let mut inner = 0.0;
        for label in BANDS {
            let Some(band) = fields.get(label) else {
                let message = format!("the level `{label}` is missing");
                let finding = Finding::new(Rule::LevelShape, section.name_span(), message)
                    .help("declare NEAR, MEDIUM and FAR, each with `<radius>` and `<hyst>`");
                self.report(finding);
                continue;
            };
            self.text_means_nothing(band);
            let parts = self.fields(band, &grammar::DETAIL_BAND);
            let (Some(radius), Some(hyst)) = (parts.get("radius"), parts.get("hyst")) else {
                let message = format!("the level `{label}` needs a radius and a hysteresis");
                let finding = Finding::new(Rule::LevelShape, band.name_span(), message)
                    .help("write `<radius> metres </radius> <hyst> metres </hyst>`");
                self.report(finding);
                continue;
            };
            if let (Some(radius), Some(hysteresis)) = (self.distance(radius, 0.0), self.distance(hyst, 0.0)) {
                // The sum of finite distances can be infinite.
                let radius = (inner + radius).min(f32::MAX);
                inner = (radius + hysteresis).min(f32::MAX);
                let level = LodLevel {
                    label: label.to_owned(),
                    radius,
                    hysteresis,
                };
                levels.push(DeclaredLevel {
                    level,
                    span: band.name_span(),
                });
            }
        }
        levels
    }

    pub(super) fn detailed_position(&mut self, section: Section<'s>) -> DetailedPosition {
        self.text_means_nothing(section);
        let fields = self.fields(section, &grammar::DETAILED_POSITION);
        DetailedPosition {
            latest_only: self.boolean(fields.get("SendLatestOnly"), false),
        }
    }
}
