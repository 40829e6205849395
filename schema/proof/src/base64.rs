//! Base64 as in RFC 4648, section 4: padded, and one encoding for each value.

use annals_ids::Hash;
use base64ct::{Base64, Encoding};

pub(crate) fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).ok()
}

pub(crate) fn decode_hash(text: &str) -> Option<Hash> {
    decode(text)?.try_into().ok().map(Hash)
}
