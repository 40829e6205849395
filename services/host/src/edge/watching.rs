//! Watched values of an edge, and the limit of its connections, which operators may change.

use super::{EdgeHandle, MAX_CONNECTIONS};
use crate::{
    config::Advice,
    watched::{Nodes, Registration, Setting, Unit, Watched},
};

/// The limits that operators may set, for readers.
const ALLOWED: &str = "0 to 16384";

const _: () = assert!(MAX_CONNECTIONS == 16_384);

/// Adds the values of an edge.
pub(crate) fn add(watched: &Watched, edge: &EdgeHandle) -> [Registration; 2] {
    let (counted, read, checked) = (edge.clone(), edge.clone(), edge.clone());
    let limit = Setting {
        path: "edge/limit",
        unit: Unit::None,
        about: "most connections at a time; further ones are refused, and existing ones stay",
        allowed: ALLOWED,
        read: Box::new(move || read.limit().into()),
        check: Box::new(move |text| {
            let limit: Option<u64> = text.trim().parse().ok();
            let limit = limit.filter(|limit| *limit <= MAX_CONNECTIONS);
            let limit = limit.ok_or_else(|| Advice(format!("write a number from 0 to {MAX_CONNECTIONS}")))?;
            let edge = checked.clone();
            Ok((limit.into(), Box::new(move || edge.set_limit(limit))))
        }),
    };
    [
        watched.add("edge", move |nodes| put(nodes, &counted)),
        watched.add_setting(limit),
    ]
}

fn put(nodes: &mut Nodes<'_>, edge: &EdgeHandle) {
    let counters = edge.counters();
    let mut count = |path: &str, count: u64, about: &str| nodes.put(path, count, Unit::None, about);
    count("open", counters.open, "connections that are open or in a handshake");
    count("accepted", counters.accepted, "completed handshakes");
    count(
        "warned",
        counters.warned,
        "warnings to clients that approach a rate limit",
    );
    count(
        "dropped_datagrams",
        counters.dropped_datagrams,
        "datagrams of clients dropped under load",
    );
    for (violation, counted) in edge.violations().all() {
        count(violation.name(), counted, violation.about());
    }
    let mut bytes = |path: &str, bytes: u64, about: &str| nodes.put(path, bytes, Unit::Bytes, about);
    bytes(
        "bytes_in",
        counters.bytes_in,
        "bytes of frames and datagrams from clients",
    );
    bytes(
        "bytes_out",
        counters.bytes_out,
        "bytes of frames and datagrams to clients",
    );
}
