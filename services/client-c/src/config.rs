//! What a client is started with.

use std::{
    ffi::c_char,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use annals_client::{Config, Credentials, Password, Reads, Token, Trust};
use annals_ids::Hash;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{
    failure::{AnnalsErrorCode, Failure},
    inputs::{borrow, optional_text, text},
    schema::AnnalsSchema,
};

/// What a client is started with. Set all of it to zero first: what is not needed stays NULL. Nothing of it is used after
/// annals_client_start has returned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsConfig {
    /// The definitions of the realm's world.
    pub schema: *const AnnalsSchema,
    /// The login service: `host:port`. Of a name with several addresses the first is used, IPv4 before IPv6.
    pub login: *const c_char,
    /// The SHA-256 fingerprint of its certificate, 64 hexadecimal digits, as `annals up` prints it: no other is accepted.
    /// For development; either this or `authorities`.
    pub certificate: *const c_char,
    /// The authorities, in PEM, that have signed the certificates of the realm's services.
    pub authorities: *const c_char,
    /// The name in those certificates; NULL if it is the host of `login`.
    pub server_name: *const c_char,
    /// Name and password of an account; or `token`.
    pub name: *const c_char,
    pub password: *const c_char,
    /// Whether an account of that name and password is to be created: 0 or 1.
    //
    // Not a `bool`, which other bytes than these two would make undefined.
    pub is_registration: u8,
    /// A token of an identity provider, which names the account.
    pub token: *const c_char,
    /// Any number, different for each client: spreads the retries of many.
    pub seed: u64,
}

/// The configuration of the client itself.
///
/// # Safety
/// The pointers in it are NULL or point to what they are declared as.
pub(crate) unsafe fn read_config(raw: &AnnalsConfig) -> Result<Config, Failure> {
    // SAFETY: as promised by the caller.
    let (schema, login, certificate, authorities, server_name) = unsafe {
        (
            borrow(raw.schema, "config.schema")?,
            text(raw.login, "config.login")?,
            optional_text(raw.certificate, "config.certificate")?,
            optional_text(raw.authorities, "config.authorities")?,
            optional_text(raw.server_name, "config.server_name")?,
        )
    };
    // SAFETY: as promised by the caller.
    let credentials = unsafe { credentials(raw) }?;
    let trust = match (certificate, authorities) {
        (Some(fingerprint), None) => Trust::Pinned(fingerprint.parse::<Hash>().map_err(|error| {
            wrong(format!(
                "config.certificate is no fingerprint of a certificate: {error}"
            ))
        })?),
        (None, Some(pem)) => Trust::Signed {
            roots: Arc::new(roots(pem)?),
            server_name: server_name.unwrap_or_else(|| host(login)).to_owned(),
        },
        (Some(_), Some(_)) => return Err(wrong("set config.certificate or config.authorities, not both")),
        (None, None) => {
            return Err(wrong(
                "set config.authorities, or in development config.certificate, so that the realm's certificate can be \
                 checked",
            ));
        }
    };
    Ok(Config {
        login: address(login)?,
        trust,
        credentials,
        schema: Arc::clone(&schema.0),
        seed: raw.seed,
        reads: Reads::Predicted,
    })
}

/// # Safety
/// As for [`read_config`].
unsafe fn credentials(raw: &AnnalsConfig) -> Result<Credentials, Failure> {
    // SAFETY: as promised by the caller.
    let (name, password, token) = unsafe {
        (
            optional_text(raw.name, "config.name")?,
            optional_text(raw.password, "config.password")?,
            optional_text(raw.token, "config.token")?,
        )
    };
    match (name, password, token) {
        (None, None, Some(token)) if raw.is_registration == 0 => Ok(Credentials::Token(Token(token.to_owned()))),
        (Some(name), Some(password), None) => {
            let (name, password) = (name.to_owned(), Password(password.to_owned()));
            Ok(match raw.is_registration {
                0 => Credentials::Password { name, password },
                _ => Credentials::Registration { name, password },
            })
        }
        _ => Err(wrong("set config.name and config.password, or config.token alone")),
    }
}

fn wrong(text: impl Into<String>) -> Failure {
    Failure::new(AnnalsErrorCode::Config, text)
}

fn address(login: &str) -> Result<SocketAddr, Failure> {
    let found = login
        .to_socket_addrs()
        .map_err(|error| wrong(format!("config.login, \"{login}\", is no address host:port: {error}")))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found
        .first()
        .copied()
        .ok_or_else(|| wrong(format!("config.login, \"{login}\", has no address")))
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host(login: &str) -> &str {
    let host = login.rsplit_once(':').map_or(login, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn roots(pem: &str) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| wrong(format!("config.authorities is not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(format!("config.authorities has a certificate of no authority: {error}")))?;
    }
    match roots.is_empty() {
        true => Err(wrong("config.authorities has no certificate in PEM")),
        false => Ok(roots),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use annals_def::Schema;

    use super::*;

    fn read(change: impl FnOnce(&mut AnnalsConfig)) -> Config {
        let schema = AnnalsSchema(Arc::new(Schema::new(Vec::new(), Vec::new(), Vec::new())));
        let mut config = AnnalsConfig {
            schema: &schema,
            login: c"[::1]:7700".as_ptr(),
            certificate: c"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff".as_ptr(),
            authorities: ptr::null(),
            server_name: ptr::null(),
            name: c"ann".as_ptr(),
            password: c"secret".as_ptr(),
            is_registration: 0,
            token: ptr::null(),
            seed: 5,
        };
        change(&mut config);
        // SAFETY: the schema lives as long as the call, and texts for ever.
        unsafe { read_config(&config) }.unwrap()
    }

    #[test]
    fn each_kind_of_credentials_is_passed_on() {
        let config = read(|_| {});
        assert_eq!(config.credentials, Credentials::password("ann", "secret"));
        assert_eq!((config.login.to_string().as_str(), config.seed), ("[::1]:7700", 5));
        let registration = Credentials::Registration {
            name: "ann".to_owned(),
            password: Password("secret".to_owned()),
        };
        assert_eq!(read(|config| config.is_registration = 1).credentials, registration);
        let token = read(|config| {
            (config.name, config.password) = (ptr::null(), ptr::null());
            config.token = c"a.b.c".as_ptr();
        });
        assert_eq!(token.credentials, Credentials::Token(Token("a.b.c".to_owned())));
    }

    #[test]
    fn the_host_of_an_address_is_the_name_in_certificates() {
        for (login, name) in [("play.example.org:7700", "play.example.org"), ("[::1]:7700", "::1")] {
            assert_eq!(host(login), name);
        }
    }
}
