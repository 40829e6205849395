//! A zip file in one canonical form: files one after the other, uncompressed, with nothing between them. Any zip
//! program can read it; the reader here accepts only this form, so any changed byte is detected.
//!
//! ```text
//! zip     = local* central* end
//! local   = "PK\3\4" shared name data
//! central = "PK\1\2" 20:u16 shared 0:u16 0:u16 0:u16 0:u32 offset:u32 name
//! shared  = 20:u16 0x0800:u16 0:u16 0:u16 0x0021:u16 crc32:u32 length:u32 length:u32 name_length:u16 0:u16
//! end     = "PK\5\6" 0:u16 0:u16 files:u16 files:u16 central_length:u32 central_offset:u32 0:u16
//! ```
//! Integers are little-endian. All files are dated midnight on 1 January 1980, the earliest time in the format. The
//! format is described in PKWARE's `APPNOTE.TXT`, 6.3.

use thiserror::Error;

/// Maximum size of a zip that is written or read (bytes): some ten thousand events with their proofs.
pub const ZIP_BYTES: usize = 64 << 20;

/// Maximum number of files: the limit of the format.
pub const ZIP_FILES: usize = 0xfffe;

/// Maximum length of a name (bytes).
pub const NAME_BYTES: usize = 128;

const LOCAL: &[u8; 4] = b"PK\x03\x04";
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const END: &[u8; 4] = b"PK\x05\x06";

/// Size of a local entry before its name (bytes).
const LOCAL_BYTES: usize = 30;

/// Version 2.0; and the flag that names are UTF-8.
const VERSION: u16 = 20;
const UTF_8: u16 = 0x0800;

/// 1 January 1980.
const FIRST_DAY: u16 = 0x0021;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Why files cannot be put into a zip.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TooMuch {
    /// There are too many.
    #[error("{files} files are needed; the limit is {ZIP_FILES}")]
    Files {
        /// Number of files.
        files: usize,
    },
    /// They are too long together.
    #[error("it takes more than {} MiB, which is the limit", ZIP_BYTES >> 20)]
    Bytes,
}

/// Why bytes are not such a zip.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ZipError {
    /// They are of another kind.
    #[error("not a zip file")]
    Kind,
    /// They are longer than the limit.
    #[error("the file has {bytes} bytes; the limit is {ZIP_BYTES}")]
    Size {
        /// Number of bytes.
        bytes: usize,
    },
    /// The zip is truncated.
    #[error("it ends early{}: it was truncated, or changed there", within(.name))]
    Cut {
        /// The file that is incomplete, if one has begun.
        name: Option<String>,
    },
    /// A file's entry is not in the canonical form.
    #[error(
        "the header of file {place}{} is not in this program's form: it was changed, or packed by another program",
        within(.name)
    )]
    Entry {
        /// The position of the file, from 1.
        place: usize,
        /// Its name, if known.
        name: Option<String>,
    },
    /// A file is there twice.
    #[error("the file {name} occurs twice")]
    Twice {
        /// The file.
        name: String,
    },
    /// A file's content does not match the checksum in its entry.
    #[error("the file {name} was changed: its checksum differs")]
    Changed {
        /// The file.
        name: String,
    },
    /// The directory after the files is not in the canonical form.
    #[error("the central directory is not in this program's form: it was changed")]
    Contents,
}

fn within(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!(" ({name})"))
}

/// Puts files into a zip, in this order.
///
/// # Errors
/// When there are too many of them, or they are too long. The caller must provide unique, short ASCII names.
pub fn write(files: &[File]) -> Result<Vec<u8>, TooMuch> {
    if files.len() > ZIP_FILES {
        return Err(TooMuch::Files { files: files.len() });
    }
    let around = |file: &File| file.bytes.len() + 2 * file.name.len() + 2 * LOCAL_BYTES + 16;
    if files.iter().map(around).sum::<usize>() + 22 > ZIP_BYTES {
        return Err(TooMuch::Bytes);
    }
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for file in files {
        let mut shared = Vec::new();
        put_shared(&mut shared, file);
        central.extend_from_slice(CENTRAL);
        put(&mut central, &[VERSION]);
        central.extend_from_slice(&shared);
        put(&mut central, &[0; 5]);
        central.extend(narrow(out.len()).to_le_bytes());
        central.extend_from_slice(file.name.as_bytes());
        out.extend_from_slice(LOCAL);
        out.extend_from_slice(&shared);
        out.extend_from_slice(file.name.as_bytes());
        out.extend_from_slice(&file.bytes);
    }
    let begin = narrow(out.len());
    out.extend_from_slice(&central);
    out.extend_from_slice(END);
    let count = u16::try_from(files.len()).expect("invariant: that many were checked");
    put(&mut out, &[0, 0, count, count]);
    out.extend(narrow(central.len()).to_le_bytes());
    out.extend(begin.to_le_bytes());
    put(&mut out, &[0]);
    Ok(out)
}

fn put_shared(out: &mut Vec<u8>, file: &File) {
    put(out, &[VERSION, UTF_8, 0, 0, FIRST_DAY]);
    out.extend(crc32fast::hash(&file.bytes).to_le_bytes());
    let length = narrow(file.bytes.len()).to_le_bytes();
    out.extend([length, length].concat());
    let name = u16::try_from(file.name.len()).expect("invariant: names are short");
    put(out, &[name, 0]);
}

fn put(out: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn narrow(length: usize) -> u32 {
    length.try_into().expect("invariant: a zip is far shorter than 4 GiB")
}

/// Reads a zip. Uses no more memory than the size of the input.
///
/// # Errors
/// When it is not in this form, or was modified.
pub fn read(bytes: &[u8]) -> Result<Vec<File>, ZipError> {
    if bytes.len() > ZIP_BYTES {
        return Err(ZipError::Size { bytes: bytes.len() });
    }
    if !bytes.starts_with(LOCAL) {
        return Err(ZipError::Kind);
    }
    let mut files: Vec<File> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    let mut rest = bytes;
    while rest.starts_with(LOCAL) {
        let (file, after) = read_local(rest, files.len() + 1)?;
        if !names.insert(file.name.clone()) {
            return Err(ZipError::Twice { name: file.name });
        }
        files.push(file);
        rest = after;
    }
    let written = write(&files).map_err(|_| ZipError::Contents)?;
    let (whole, shown) = (written.len(), bytes.len());
    match written == bytes {
        true => Ok(files),
        // Everything before the central directory was read.
        false if shown < whole && written.starts_with(bytes) => Err(ZipError::Cut { name: None }),
        false => Err(ZipError::Contents),
    }
}

/// The first file, and the bytes after it.
fn read_local(bytes: &[u8], place: usize) -> Result<(File, &[u8]), ZipError> {
    let (header, rest) = bytes
        .split_at_checked(LOCAL_BYTES)
        .ok_or(ZipError::Cut { name: None })?;
    let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let length = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
    let name_length = usize::from(number(26));
    let unreadable = || ZipError::Entry { place, name: None };
    if name_length > NAME_BYTES {
        return Err(unreadable());
    }
    let (name, rest) = rest.split_at_checked(name_length).ok_or(ZipError::Cut { name: None })?;
    let is_shown = |byte: &u8| byte.is_ascii_graphic();
    let name = str::from_utf8(name)
        .ok()
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| is_shown(&byte)))
        .ok_or_else(unreadable)?
        .to_owned();
    let Some((data, rest)) = rest.split_at_checked(length as usize) else {
        return Err(ZipError::Cut { name: Some(name) });
    };
    let file = File {
        bytes: data.to_vec(),
        name,
    };
    let mut shared = Vec::new();
    put_shared(&mut shared, &file);
    if header[4..] == shared {
        return Ok((file, rest));
    }
    // All but the checksum, which depends on the content.
    let is_only_changed = header[4..14] == shared[..10] && header[18..] == shared[14..];
    Err(if is_only_changed {
        ZipError::Changed { name: file.name }
    } else {
        ZipError::Entry {
            place,
            name: Some(file.name),
        }
    })
}
