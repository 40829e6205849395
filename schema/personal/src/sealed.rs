//! The sealed form.
//!
//! ```text
//! sealed = form:u8 (1) key id:8 nonce:24 ciphertext tag:16
//! ```
//!
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). The nonce is a hash of key, salt and text, so security does not
//! depend on the quality of the salt's randomness: a repeated salt reveals at worst that the same text was sealed
//! twice. The id of the person is authenticated too, so one person's data cannot be presented as another's. Before
//! encryption, the text is padded as in ISO/IEC 7816-4 to a multiple of 32 bytes, so what remains after the key is
//! destroyed does not reveal the length of a name.

use annals_ids::DatabaseId;
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::key::{KeyId, PersonalKey};

/// Size of a nonce (bytes).
const NONCE_BYTES: usize = 24;

/// Maximum number of bytes by which the sealed form exceeds the plain text.
pub const OVERHEAD_LIMIT: usize = HEAD + TAG + BLOCK;

const FORM: u8 = 1;
const HEAD: usize = 1 + 8 + NONCE_BYTES;
const TAG: usize = 16;
const BLOCK: usize = 32;
const MARK: u8 = 0x80;

/// Why sealed data cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// The bytes are not of the sealed form.
    #[error("the value is not in the format of sealed personal data")]
    Malformed,
    /// The data is sealed under another key than the one provided.
    #[error("the value is sealed under key {theirs:02x?}, but the current key is {ours:02x?}", theirs = .0.0, ours = .1.0)]
    OtherKey(KeyId, KeyId),
    /// The data was modified, or belongs to another person.
    #[error("the value was changed after it was sealed, or belongs to another person")]
    Changed,
}

/// Seals `plain`, which is data of `person`. The salt should be random.
#[must_use]
pub fn seal(key: &PersonalKey, person: DatabaseId, salt: u128, plain: &[u8]) -> Vec<u8> {
    let nonce = nonce(key, salt, plain);
    let mut padded = plain.to_vec();
    padded.push(MARK);
    padded.resize(padded.len().next_multiple_of(BLOCK), 0);
    let payload = Payload {
        msg: &padded,
        aad: &person.0.to_be_bytes(),
    };
    let ciphertext = cipher(key)
        .encrypt(&XNonce::from(nonce), payload)
        .expect("invariant: it fails for more than 256 GiB alone");
    [&[FORM][..], &key.id().0, &nonce, &ciphertext].concat()
}

/// Opens sealed data of `person`.
///
/// # Errors
/// When the data is not of the sealed form, was sealed under another key, or was modified.
pub fn open(key: &PersonalKey, person: DatabaseId, sealed: &[u8]) -> Result<Vec<u8>, NotOpened> {
    let theirs = sealed_with(sealed).ok_or(NotOpened::Malformed)?;
    if theirs != key.id() {
        return Err(NotOpened::OtherKey(theirs, key.id()));
    }
    let (head, ciphertext) = sealed.split_at_checked(HEAD).ok_or(NotOpened::Malformed)?;
    let nonce = head.last_chunk::<NONCE_BYTES>().ok_or(NotOpened::Malformed)?;
    let payload = Payload {
        msg: ciphertext,
        aad: &person.0.to_be_bytes(),
    };
    let mut plain = cipher(key)
        .decrypt(&XNonce::from(*nonce), payload)
        .map_err(|_| NotOpened::Changed)?;
    let end = plain.iter().rposition(|byte| *byte != 0);
    let end = end
        .filter(|end| plain.get(*end) == Some(&MARK))
        .ok_or(NotOpened::Malformed)?;
    plain.truncate(end);
    Ok(plain)
}

/// The id of the key that sealed the data; `None` if it is not of the sealed form.
#[must_use]
pub fn sealed_with(sealed: &[u8]) -> Option<KeyId> {
    let is_whole = sealed.len() >= HEAD + BLOCK + TAG && (sealed.len() - HEAD - TAG).is_multiple_of(BLOCK);
    let (form, rest) = sealed.split_first().filter(|_| is_whole)?;
    let id = rest.first_chunk::<8>()?;
    (*form == FORM).then_some(KeyId(*id))
}

fn nonce(key: &PersonalKey, salt: u128, plain: &[u8]) -> [u8; NONCE_BYTES] {
    let hash = Sha256::new()
        .chain_update("annals personal nonce")
        .chain_update(key.bytes());
    let hash = hash.chain_update(salt.to_le_bytes()).chain_update(plain).finalize();
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&hash[..NONCE_BYTES]);
    nonce
}

fn cipher(key: &PersonalKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.bytes()))
}
