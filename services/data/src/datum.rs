//! Types as which a section can be read and written.

use annals_def::notation;

use crate::{
    document::Document,
    editing::{EditError, SectionMut},
    section::Section,
    xml,
};

/// A value of a section. A written value reads back as the same value.
pub trait Datum: Sized {
    /// What the section should be, to complete the sentence "is not …".
    const WANTED: &'static str;

    /// The value of a section; none if the section is of another type.
    fn read(section: Section<'_>) -> Option<Self>;

    /// Sets the value of a section.
    ///
    /// # Errors
    /// [`EditError`], if no file can contain it; then the section is unchanged.
    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError>;
}

/// Text as UTF-16 code units, as in Windows clients. In the file it is like any other text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WideString(pub Vec<u16>);

/// Bytes, in base 64 in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

/// A section with all its contents, as the bytes of a file. Writing replaces the contents of the section; its name
/// stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary(pub Vec<u8>);

/// A rotation, a scale and a translation: four rows of a matrix whose fourth column is 0, 0, 0, 1. In the file they are
/// four sections, `row0` to `row3`, each with three numbers; `row3` is the translation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    /// The rows without the fourth column.
    pub rows: [[f32; 3]; 4],
}

/// The names of the sections of a matrix.
const ROWS: [&str; 4] = ["row0", "row1", "row2", "row3"];

impl Matrix {
    /// The identity transformation.
    pub const IDENTITY: Self = Self {
        rows: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]],
    };

    /// The full matrix, with the fourth column.
    #[must_use]
    pub fn whole(&self) -> [[f32; 4]; 4] {
        let [a, b, c, d] = self.rows;
        let row = |[x, y, z]: [f32; 3], w| [x, y, z, w];
        [row(a, 0.0), row(b, 0.0), row(c, 0.0), row(d, 1.0)]
    }
}

impl Datum for bool {
    const WANTED: &'static str = "`true` or `false`";

    fn read(section: Section<'_>) -> Option<Self> {
        let text = section.text();
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        is("true").then_some(true).or_else(|| is("false").then_some(false))
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&self.to_string())
    }
}

/// The integer in a section, if the requested type can represent it.
fn integer<T: TryFrom<i128>>(section: Section<'_>) -> Option<T> {
    notation::integer(section.text()).and_then(|number| number.try_into().ok())
}

impl Datum for i32 {
    const WANTED: &'static str = "an integer from -2147483648 to 2147483647";

    fn read(section: Section<'_>) -> Option<Self> {
        integer(section)
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&self.to_string())
    }
}

impl Datum for u32 {
    const WANTED: &'static str = "an integer from 0 to 4294967295";

    fn read(section: Section<'_>) -> Option<Self> {
        integer(section)
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&self.to_string())
    }
}

impl Datum for i64 {
    const WANTED: &'static str = "an integer of 64 bits";

    fn read(section: Section<'_>) -> Option<Self> {
        integer(section)
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&self.to_string())
    }
}

impl Datum for u64 {
    const WANTED: &'static str = "an integer of 64 bits without a sign";

    fn read(section: Section<'_>) -> Option<Self> {
        integer(section)
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&self.to_string())
    }
}

impl Datum for f32 {
    const WANTED: &'static str = "a number";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::number(section.text())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::float32(*self).ok_or(EditError::NotFinite)?)
    }
}

impl Datum for f64 {
    const WANTED: &'static str = "a number";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::number(section.text())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::float64(*self).ok_or(EditError::NotFinite)?)
    }
}

impl Datum for [f32; 2] {
    const WANTED: &'static str = "2 numbers with blanks between them";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::vector(section.text())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::parts(self).ok_or(EditError::NotFinite)?)
    }
}

impl Datum for [f32; 3] {
    const WANTED: &'static str = "3 numbers with blanks between them";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::vector(section.text())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::parts(self).ok_or(EditError::NotFinite)?)
    }
}

impl Datum for [f32; 4] {
    const WANTED: &'static str = "4 numbers with blanks between them";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::vector(section.text())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::parts(self).ok_or(EditError::NotFinite)?)
    }
}

impl Datum for Matrix {
    const WANTED: &'static str = "a matrix: 3 numbers in each of `row0`, `row1`, `row2` and `row3`";

    fn read(section: Section<'_>) -> Option<Self> {
        let mut rows = [[0.0; 3]; 4];
        for (row, name) in rows.iter_mut().zip(ROWS) {
            *row = <[f32; 3]>::read(section.find(name)?)?;
        }
        Some(Self { rows })
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        if !self.rows.as_flattened().iter().all(|number| number.is_finite()) {
            return Err(EditError::NotFinite);
        }
        for name in ROWS {
            section.find_or_create(name)?;
        }
        for (row, name) in self.rows.iter().zip(ROWS) {
            section.write_at(name, row)?;
        }
        Ok(())
    }
}

impl Datum for String {
    const WANTED: &'static str = "a text";

    fn read(section: Section<'_>) -> Option<Self> {
        Some(section.text().to_owned())
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(self)
    }
}

impl Datum for WideString {
    const WANTED: &'static str = "a text";

    fn read(section: Section<'_>) -> Option<Self> {
        Some(Self(section.text().encode_utf16().collect()))
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        let text: Result<String, _> = char::decode_utf16(self.0.iter().copied()).collect();
        section.set_text(&text.map_err(|half| EditError::Character(half.unpaired_surrogate().into()))?)
    }
}

impl Datum for Blob {
    const WANTED: &'static str = "base 64";

    fn read(section: Section<'_>) -> Option<Self> {
        notation::base64(section.text()).map(Self)
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        section.set_text(&notation::to_base64(&self.0))
    }
}

impl Datum for Binary {
    const WANTED: &'static str = "a section";

    fn read(section: Section<'_>) -> Option<Self> {
        Some(Self(xml::section(section).into_bytes()))
    }

    fn write(&self, section: &mut SectionMut<'_>) -> Result<(), EditError> {
        let content = Document::parse("the bytes", &self.0).map_err(EditError::Xml)?;
        section.replace(&content)
    }
}
