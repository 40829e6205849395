//! Sealed data can be opened with its key only, and any modification is detected.

use annals_ids::DatabaseId;
use annals_personal::{Admission, KeyId, NotOpened, OVERHEAD_LIMIT, PersonalKey, open, seal, sealed_with};
use proptest::prelude::*;

const PERSON: DatabaseId = DatabaseId(17);

proptest! {
    #[test]
    fn sealed_data_opens_with_its_key(key: [u8; 32], salt: u128, plain: Vec<u8>) {
        let key = PersonalKey::new(key);
        let sealed = seal(&key, PERSON, salt, &plain);
        prop_assert_eq!(sealed_with(&sealed), Some(key.id()));
        prop_assert!(sealed.len() <= plain.len() + OVERHEAD_LIMIT);
        prop_assert_eq!(open(&key, PERSON, &sealed), Ok(plain));
    }

    #[test]
    fn any_change_is_detected(key: [u8; 32], salt: u128, plain: Vec<u8>, place: prop::sample::Index, bit in 0u8..8) {
        let key = PersonalKey::new(key);
        let mut sealed = seal(&key, PERSON, salt, &plain);
        let place = place.index(sealed.len());
        sealed[place] ^= 1 << bit;
        prop_assert!(open(&key, PERSON, &sealed).is_err());
        let place = place.min(sealed.len() - 1);
        prop_assert!(open(&key, PERSON, &sealed[..place]).is_err());
    }

    #[test]
    fn arbitrary_bytes_decode_to_an_admission_or_an_error(bytes: Vec<u8>) {
        if let Ok(admission) = Admission::decode(&bytes) {
            prop_assert_eq!(admission.encode(), bytes);
        }
    }

    #[test]
    fn an_admission_round_trips(account: Option<String>, address: String) {
        let admission = Admission { account, address };
        let read = Admission::decode(&admission.encode()).expect("it is one");
        let begins = |whole: &str, cut: &str| whole.starts_with(cut) && (cut.len() == whole.len() || cut.len() > 250);
        prop_assert!(begins(&admission.address, &read.address));
        prop_assert_eq!(admission.account.is_some(), read.account.is_some());
        prop_assert!(begins(&admission.account.unwrap_or_default(), &read.account.unwrap_or_default()));
    }
}

#[test]
fn other_keys_and_names_do_not_open_it() {
    let (key, other) = (PersonalKey::new([1; 32]), PersonalKey::new([2; 32]));
    let sealed = seal(&key, PERSON, 3, b"merlin");
    assert_eq!(
        open(&other, PERSON, &sealed),
        Err(NotOpened::OtherKey(key.id(), other.id()))
    );
    assert_eq!(open(&key, DatabaseId(18), &sealed), Err(NotOpened::Changed));
    assert_eq!(open(&key, PERSON, b""), Err(NotOpened::Malformed));
}

#[test]
fn the_sealed_length_reveals_little() {
    let key = PersonalKey::new([1; 32]);
    let lengths = [0, 1, 5, 31].map(|length| seal(&key, PERSON, 3, &vec![b'x'; length]).len());
    assert_eq!(lengths, [lengths[0]; 4]);
    assert_eq!(seal(&key, PERSON, 3, &[b'x'; 32]).len(), lengths[0] + 32);
}

/// Data sealed years ago must stay readable, so the form must never change. libsodium's XChaCha20-Poly1305 gave these
/// bytes.
#[test]
fn the_sealed_form_is_stable() {
    let key = PersonalKey::new(std::array::from_fn(|place| place as u8));
    assert_eq!(key.id(), KeyId([0xad, 0x3f, 0x34, 0x70, 0x08, 0xf2, 0x30, 0xb4]));
    let sealed = seal(&key, PERSON, 9, b"merlin@example.org");
    let text: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    let libsodium = "01ad3f347008f230b4aba7d6574dd0da298d69542c5666810498e2937d8ed273b0900d4e61ee2090f\
                     eb1e72edec323f18e0ccd65d15f0fbeac6ba5535dfff7f18dd033e78885ac2b75bcd79600377485ea";
    assert_eq!(text, libsodium);
}

#[test]
fn a_key_is_not_printed() {
    let text = format!("{:?}", PersonalKey::new([0xab; 32]));
    assert!(!text.contains("ab, ab"), "{text}");
}
