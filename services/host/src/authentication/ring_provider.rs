//! The signatures of tokens, checked by ring, the one provider of cryptography here.

use std::sync::Once;

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature as by_ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has tokens checked by ring from now on.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Nothing else in this program uses tokens, so there is no other provider.
        let _ = PROVIDER.install_default();
    });
}

/// A key that checks signatures by one algorithm.
struct KeyOf {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(KeyOf {
        algorithm,
        key: key.clone(),
    }))
}

impl Verifier<Vec<u8>> for KeyOf {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let parameters = rsa(self.algorithm).ok_or_else(signature::Error::new)?;
                by_ring::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(point) => {
                let parameters = curve(self.algorithm).ok_or_else(signature::Error::new)?;
                by_ring::UnparsedPublicKey::new(parameters, point).verify(message, signature)
            }
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for KeyOf {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static by_ring::RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &by_ring::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &by_ring::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &by_ring::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &by_ring::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &by_ring::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &by_ring::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn by_ring::VerificationAlgorithm> {
    let parameters: &'static dyn by_ring::VerificationAlgorithm = match algorithm {
        Algorithm::ES256 => &by_ring::ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &by_ring::ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &by_ring::ED25519,
        _ => return None,
    };
    Some(parameters)
}
