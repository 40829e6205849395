//! What the next cell part of an entity continues from the one that has ended (rule C17).

use std::collections::{BTreeMap, VecDeque};

use annals_ids::{Address, HistoryNumber, OwnerId, TimerId};

use super::image::{CellImage, Image, Links, PartImage, take_generation_or_none};
use crate::encoding::{Malformed, Reader, put_number};

/// The numbers of a cell part that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormerCell {
    /// Its newest history number.
    pub history: HistoryNumber,
    /// Its links. All its calls are confirmed, and it waits for no reply.
    pub links: Links,
}

impl FormerCell {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.history.0);
        put_ends(out, &self.links);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            history: HistoryNumber(reader.ordinal("history number")?),
            links: take_ends(reader)?,
        })
    }
}

impl Image {
    /// What is left of a cell part that has a base part, once it has ended: its properties, its numbers, its calls, and the
    /// deadlines of the outbound ones.
    pub(crate) fn ended(&self) -> Option<Self> {
        let part = self.cell().filter(|cell| cell.based).map(|_| CellImage {
            based: true,
            life: Some(0),
            ..CellImage::default()
        })?;
        let awaiting = self.links.awaiting.iter();
        let outbound = awaiting.filter(|((to, _), _)| *to == Address::Owner(OwnerId::OUTSIDE));
        let outbound = outbound.map(|(call, wait)| (*call, wait.clone()));
        Some(Self {
            recent: VecDeque::new(),
            timers: BTreeMap::new(),
            last_timer: TimerId(0),
            client: None,
            links: Links {
                awaiting: outbound.collect(),
                ..self.links.clone()
            },
            properties: self.properties.clone(),
            part: PartImage::Cell(part),
            ..*self
        })
    }
}

/// Appends the links of a cell part that has ended.
pub(super) fn put_ends(out: &mut Vec<u8>, links: &Links) {
    links.write(out);
    put_number(out, links.generation);
}

pub(super) fn take_ends(reader: &mut Reader<'_>) -> Result<Links, Malformed> {
    let wrong = reader.malformed("links of a cell part that has ended");
    let mut links = Links::read(reader)?;
    links.generation = take_generation_or_none(reader)?;
    if links.is_settled() && links.awaiting.is_empty() {
        Ok(links)
    } else {
        Err(wrong)
    }
}
