//! The encodings of movements: what a client can read, and what it is then sent.

use annals_event::{Malformed, Reader};

use super::volatile::Packing;

/// The encodings of movements that a client can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// [`super::Moves`] only, which every client reads.
    #[default]
    Plain,
    /// Also the output of [`super::volatile::VolatileWriter`].
    Predicted,
}

/// The encoding of movements on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Movements {
    /// As [`super::Moves`].
    #[default]
    Plain,
    /// As a [`super::volatile::VolatileWriter`] writes them, with the step lengths of this packing; as [`super::Moves`]
    /// from a cell of an older version.
    Predicted(Packing),
}

/// All variants, in the order of the codes, from 0.
const READS: [Reads; 2] = [Reads::Plain, Reads::Predicted];

impl Reads {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.push(match self {
            Reads::Plain => 0,
            Reads::Predicted => 1,
        });
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("ways to read movements");
        let code = reader.byte("ways to read movements")?;
        READS.get(usize::from(code)).copied().ok_or(wrong)
    }
}

impl Movements {
    /// The encoding for a client that reads these, where observers see at most so far (m).
    #[must_use]
    pub fn choose(reads: Reads, radius: f32) -> Self {
        match (reads, Packing::fitting(radius)) {
            (Reads::Predicted, Some(packing)) => Movements::Predicted(packing),
            _ => Movements::Plain,
        }
    }

    /// Metres per unit of the small floats; 0 where movements are plain.
    #[must_use]
    pub fn scale(self) -> f32 {
        match self {
            Movements::Plain => 0.0,
            Movements::Predicted(packing) => packing.scale(),
        }
    }

    /// The encoding with this scale; `None` if there is none.
    #[must_use]
    pub fn with_scale(scale: f32) -> Option<Self> {
        if scale == 0.0 {
            return Some(Movements::Plain);
        }
        Packing::scaled(scale).map(Movements::Predicted)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Movements::Plain => out.push(0),
            Movements::Predicted(packing) => {
                out.push(1);
                out.extend(packing.scale().to_le_bytes());
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("movements");
        match reader.byte("movements")? {
            0 => Ok(Movements::Plain),
            1 => {
                let scale = f32::from_le_bytes(reader.array("scale of movements")?);
                Packing::scaled(scale).map(Movements::Predicted).ok_or(wrong)
            }
            _ => Err(wrong),
        }
    }
}
