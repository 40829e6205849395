//! `annals realm cells`: the division of a running realm's spaces, as its director has it.

use std::{
    io::{self, Write, stdout},
    process::ExitCode,
};

use annals_host::{
    log_source::KeptRealm,
    nats::ConnectError,
    process::{AskError, Settings, connect},
};
use annals_wire::{
    cells::{CellList, CellReport, WireCellList},
    control::{ControlError, DirectorAsk, ListCells},
};
use serde_json::{Value, json};
use thiserror::Error;

use super::{Format, RealmError};
use crate::director::ask_until_answered;

/// Show the cells of all spaces. Loads and numbers are what owners said last, at most a second ago if they live.
#[derive(Debug, clap::Args)]
pub(super) struct Cells {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum CellsUnknown {
    #[error("a stopped realm has no load: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's director was not reached")]
    NoDirector(#[from] AskError),
    #[error("the director's answer cannot be decoded")]
    Odd(#[from] ControlError),
}

impl Cells {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(CellsUnknown::Stopped.into());
        }
        let list = ask(settings).await?;
        match self.format {
            Format::Table => print_table(&list)?,
            Format::Json => writeln!(stdout(), "{:#}", to_json(&list))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn ask(settings: &Settings) -> Result<CellList, CellsUnknown> {
    let (bus, subjects) = connect(settings, "cells").await?;
    let ask = DirectorAsk::Cells(ListCells {});
    let answer: WireCellList = ask_until_answered(&bus, &subjects, ask).await?;
    Ok(CellList::try_from(&answer)?)
}

const HEADINGS: [&str; 10] = [
    "space", "owner", "west", "east", "south", "north", "load", "entities", "clients", "moved",
];

fn print_table(list: &CellList) -> io::Result<()> {
    if list.cells.is_empty() {
        return writeln!(stdout(), "no space is divided yet");
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(list.cells.iter().map(row));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let notes = list
        .cells
        .iter()
        .map(|cell| if cell.retires { "  is being retired" } else { "" });
    for (line, note) in lines.iter().zip([""].into_iter().chain(notes)) {
        let columns = line.iter().zip(&widths).map(|(text, width)| format!("{text:>width$}"));
        writeln!(stdout(), "{}{note}", columns.collect::<Vec<_>>().join("  "))?;
    }
    let load: f64 = list.cells.iter().map(|cell| cell.load).sum();
    let (count, average) = (list.cells.len(), load / list.cells.len() as f64);
    let cells = if count == 1 { "cell" } else { "cells" };
    writeln!(stdout(), "{count} {cells}, average load {average:.3}, map {}", list.map)
}

fn row(cell: &CellReport) -> [String; HEADINGS.len()] {
    let edge = |at: f32| {
        if at.is_finite() {
            format!("{at:.1}")
        } else {
            "-".to_owned()
        }
    };
    let moved = cell.unmoved.map_or_else(
        || "-".to_owned(),
        |unmoved| format!("{:.1} s ago", unmoved.as_secs_f64()),
    );
    [
        cell.space.to_string(),
        cell.area.owner.to_string(),
        edge(cell.area.west),
        edge(cell.area.east),
        edge(cell.area.south),
        edge(cell.area.north),
        format!("{:.3}", cell.load),
        cell.entities.to_string(),
        cell.witnesses.to_string(),
        moved,
    ]
}

fn to_json(list: &CellList) -> Value {
    let cell = |cell: &CellReport| {
        // An unbounded side has no edge.
        let edge = |at: f32| at.is_finite().then_some(at);
        json!({
            "space": cell.space.0,
            "owner": cell.area.owner.0,
            "west": edge(cell.area.west),
            "east": edge(cell.area.east),
            "south": edge(cell.area.south),
            "north": edge(cell.area.north),
            "load": cell.load,
            "entities": cell.entities,
            "clients": cell.witnesses,
            "movedSecondsAgo": cell.unmoved.map(|unmoved| unmoved.as_secs_f64()),
            "isRetiring": cell.retires,
        })
    };
    json!({
        "map": list.map,
        "cells": list.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}
