//! The sealed form.
//!
//! ```text
//! sealed = form:u8 (1) key id:8 nonce:24 ciphertext tag:16
//! ```
//!
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). The nonce is a hash of key, salt and text, so that nothing depends on how good
//! the salt's randomness is: the same salt twice gives away, at worst, that the same was sealed twice. The id of the person is
//! authenticated with it, so that nobody's data can be passed off as another's. Before it is encrypted a text is padded as ISO/IEC 7816-4 does, to a
//! multiple of 32 bytes: what is left when the key is gone does not say how long a name was.

use annals_ids::DatabaseId;
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::key::{KeyId, PersonalKey};

/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// Most bytes that the sealed form has beyond what is sealed.
pub const OVERHEAD_LIMIT: usize = HEAD + TAG + BLOCK;

const FORM: u8 = 1;
const HEAD: usize = 1 + 8 + NONCE_BYTES;
const TAG: usize = 16;
const BLOCK: usize = 32;
const MARK: u8 = 0x80;

/// Why something sealed cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// These bytes are not of the sealed form.
    #[error("it is not of the form in which personal data is sealed")]
    Malformed,
    /// It is sealed under another key than the one at hand.
    #[error("it is sealed under another key ({theirs:02x?}) than the one that is kept ({ours:02x?})", theirs = .0.0, ours = .1.0)]
    OtherKey(KeyId, KeyId),
    /// It was changed, or is of another person.
    #[error("it was changed since it was sealed, or is of another person")]
    Changed,
}

/// Seals `plain`, which is known of `person`. The salt should be random.
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

/// Reads what was sealed of `person`.
///
/// # Errors
/// When it is not of the sealed form, was sealed under another key, or was changed.
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

/// Under which key something is sealed; `None` if it is not of the sealed form.
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
