//! Descriptions with information that only the files contain.

use std::collections::BTreeMap;

use annals_def::{Diagnostic, MemberOrigin, Severity, SourcePlace, Survey, TypeOrigin};

use super::{Description, MethodDescription, TypeDescription, describe};

/// The diagnostics by file, in file order.
struct DiagnosticsByFile<'d>(BTreeMap<&'d str, Vec<&'d Diagnostic>>);

impl Description {
    /// Describes the schema of a survey, if there is one, with the places of declarations and their advice.
    #[must_use]
    pub fn of_survey(survey: &Survey) -> Option<Self> {
        let origins = survey.origins.clone()?;
        let found = DiagnosticsByFile::of(&survey.diagnostics);
        let mut description = describe(survey.schema.as_ref()?);
        for (one, mut origin) in description.types.iter_mut().zip(origins.types) {
            let members = &mut origin.members;
            found.add_to_methods(&mut one.base_methods, &mut members.base_methods);
            found.add_to_methods(&mut one.cell_methods, &mut members.cell_methods);
            found.add_to_methods(&mut one.client_methods, &mut members.client_methods);
            for (property, place) in one.properties.iter_mut().zip(members.properties.drain(..)) {
                property.advice = found.in_place(&place.place);
                property.origin = Some(place);
            }
            one.advice = found.beside_members(one, &origin);
            one.origin = Some(origin);
        }
        for (service, mut origin) in description.services.iter_mut().zip(origins.services) {
            found.add_to_methods(&mut service.methods, &mut origin.members.methods);
            service.origin = Some(origin);
        }
        for (object, origin) in description.user_data_objects.iter_mut().zip(origins.objects) {
            object.origin = Some(origin);
        }
        for mut alias in origins.aliases {
            alias.advice = found.in_place(&alias.place);
            description.aliases.push(alias);
        }
        description.definitions = origins.definitions;
        Some(description)
    }
}

impl<'d> DiagnosticsByFile<'d> {
    /// Warnings and advice; notes are not shown, and with errors there is no schema to describe.
    fn of(diagnostics: &'d [Diagnostic]) -> Self {
        let mut found: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
        for one in diagnostics {
            if matches!(one.severity, Severity::Warning | Severity::Lint) {
                found.entry(&one.place.file).or_default().push(one);
            }
        }
        Self(found)
    }

    fn in_file(&self, file: &str) -> &[&'d Diagnostic] {
        self.0.get(file).map_or(&[], Vec::as_slice)
    }

    /// The diagnostics inside a declaration.
    fn in_place(&self, place: &SourcePlace) -> Vec<Diagnostic> {
        let in_file = self.in_file(&place.file);
        let from = in_file.partition_point(|one| (one.place.line, one.place.column) < (place.line, place.column));
        let inside = in_file[from..].iter().take_while(|one| place.holds(&one.place));
        inside.map(|one| Diagnostic::clone(one)).collect()
    }

    fn add_to_methods(&self, methods: &mut [MethodDescription], places: &mut Vec<MemberOrigin>) {
        for (method, place) in methods.iter_mut().zip(places.drain(..)) {
            method.advice = self.in_place(&place.place);
            method.origin = Some(place);
        }
    }

    /// The diagnostics in a type's file outside of its members.
    fn beside_members(&self, one: &TypeDescription, origin: &TypeOrigin) -> Vec<Diagnostic> {
        let in_members: Vec<&Diagnostic> = one.all_advice().collect();
        let in_file = self.in_file(&origin.place.file).iter();
        let beside = in_file.filter(|one| !in_members.contains(one));
        beside.map(|one| Diagnostic::clone(one)).collect()
    }
}
