//! Remarks about types and members, shared by tables, pages and editors.

use annals_def::{Exposure, Parts, Reach};

use super::{MethodDescription, PropertyDescription, TypeDescription};

/// The parts that entities of a type have.
pub(crate) fn part_marks(parts: Parts) -> Vec<&'static str> {
    let parts = [(parts.base, "base"), (parts.cell, "cell"), (parts.client, "client")];
    let parts = parts.into_iter().filter(|(has, _)| *has);
    parts.map(|(_, part)| part).collect()
}

/// The remarks about a property.
pub(crate) fn property_marks(property: &PropertyDescription) -> Vec<String> {
    let marks = [
        (property.personal, "personal"),
        (property.latest_only, "latest only"),
        (!property.reliable, "unreliable"),
        (property.temporary, "temporary"),
        (property.editable, "editable"),
    ];
    let marks = marks
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, mark)| mark.to_owned());
    let storage = property.storage.iter().flat_map(|storage| {
        let index = Some(storage.index.name().to_owned()).filter(|index| !index.is_empty());
        index
            .into_iter()
            .chain(storage.database_length.map(|length| format!("length {length}")))
    });
    let view = property.account.map(|account| format!("view of {account}"));
    view.into_iter().chain(storage).chain(marks).collect()
}

/// Remarks about a method: who may call it, how far it is sent, and how.
pub(crate) fn method_marks(method: &MethodDescription) -> Vec<String> {
    let mut marks = Vec::new();
    match method.exposed {
        Exposure::No => {}
        Exposure::OwnClient => marks.push("exposed to own client".to_owned()),
        Exposure::AllClients => marks.push("exposed to all clients".to_owned()),
    }
    marks.extend(method.calls_per_minute.map(|calls| format!("{calls} calls per minute")));
    marks.extend(method.detail_distance.map(|metres| format!("within {metres} m")));
    marks.extend(method.latest_only.then(|| "latest only".to_owned()));
    marks.extend((!method.reliable).then(|| "unreliable".to_owned()));
    marks
}

/// The volatile parts of position and direction, with their distances.
pub(crate) fn volatile_marks(one: &TypeDescription) -> Vec<String> {
    let volatile = [
        ("position", one.volatile.position),
        ("yaw", one.volatile.yaw),
        ("pitch", one.volatile.pitch),
        ("roll", one.volatile.roll),
    ];
    let volatile = volatile.into_iter().filter_map(|(what, reach)| match reach {
        Reach::Never => None,
        Reach::Within(metres) => Some(format!("{what} to {metres} m")),
        Reach::Always => Some(what.to_owned()),
    });
    volatile.collect()
}
