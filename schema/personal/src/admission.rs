//! What is sealed when a client is admitted: its account name and its address.
//!
//! ```text
//! admission = known:u8 (0 or 1) length:u16 name address
//! ```
//! `length` is that of the name in bytes, little-endian; both texts are UTF-8, and the address fills the rest.

use thiserror::Error;

/// Maximum length of a name or address (bytes); longer text is cut at a character boundary.
pub const NAME_LIMIT: usize = 256;

/// The account name and address of an admitted client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The account name with which the session was opened. `None` if the client reconnected to a process that has taken
    /// the session over: an earlier admission of that session has the name.
    pub account: Option<String>,
    /// The address of the client's end of the connection, as the base saw it.
    pub address: String,
}

/// The bytes are not an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the record does not name a person and an address")]
pub struct AdmissionMalformed;

impl Admission {
    /// Encodes the form that is sealed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = cut(self.account.as_deref().unwrap_or_default());
        let length = u16::try_from(name.len()).expect("invariant: a name was cut");
        let known = u8::from(self.account.is_some());
        let (name, address) = (name.as_bytes(), cut(&self.address).as_bytes());
        [&[known][..], &length.to_le_bytes(), name, address].concat()
    }

    /// Decodes that form.
    ///
    /// # Errors
    /// When the bytes are not of that form.
    pub fn decode(bytes: &[u8]) -> Result<Self, AdmissionMalformed> {
        let (head, texts) = bytes.split_first_chunk::<3>().ok_or(AdmissionMalformed)?;
        let &[known, low, high] = head;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let (name, address) = texts.split_at_checked(length).ok_or(AdmissionMalformed)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| AdmissionMalformed);
        let admission = Self {
            account: (known == 1).then(|| text(name)).transpose()?,
            address: text(address)?,
        };
        if admission.encode() == bytes {
            Ok(admission)
        } else {
            Err(AdmissionMalformed)
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_LIMIT)]
}
