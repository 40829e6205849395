//! Errors as C sees them, and the boundary that no panic crosses.

use std::{
    error::Error,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use annals_client::CallError;

use crate::inputs::{borrow, give_up, put};

/// What kind of error it is. Later versions may have more.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnalsErrorCode {
    /// There is no error.
    None = 0,
    /// An argument is NULL, is not UTF-8, or is out of its range.
    Argument = 1,
    /// The definitions cannot be read.
    Schema = 2,
    /// The address or the certificates of the configuration cannot be used.
    Config = 3,
    /// The operating system refused a socket or a thread.
    System = 4,
    /// There is no session: wait for ANNALS_EVENT_KIND_CONNECTED.
    NoSession = 5,
    /// The entity is not in view.
    NotInView = 6,
    /// There is no such type, property or exposed method.
    NoSuchMember = 7,
    /// The arguments do not fit the method.
    WrongArguments = 8,
    /// Too many calls are unconfirmed; poll, and call again later.
    TooManyCalls = 9,
    /// Another thread is using the client.
    InUse = 10,
    /// A bug in the library. The client can only be freed.
    Panicked = 11,
}

/// An error: a code for the program, and a text for its author.
#[derive(Debug)]
pub struct AnnalsError {
    code: AnnalsErrorCode,
    text: CString,
}

/// Why a function did not do what it was called for.
#[derive(Debug)]
pub(crate) struct Failure {
    code: AnnalsErrorCode,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: AnnalsErrorCode, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(AnnalsErrorCode::Argument, text)
    }

    /// With the causes of the error.
    pub(crate) fn of(code: AnnalsErrorCode, error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let said = next.to_string();
            if !text.ends_with(&said) {
                text = format!("{text}: {said}");
            }
            cause = next.source();
        }
        Self { code, text }
    }

    fn panicked() -> Self {
        Self::new(
            AnnalsErrorCode::Panicked,
            "the library has a bug, and what it said is on stderr; free the client and start another",
        )
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let code = match error {
            CallError::NoSession => AnnalsErrorCode::NoSession,
            CallError::NotInView(_) => AnnalsErrorCode::NotInView,
            CallError::NoSuchMethod { .. } => AnnalsErrorCode::NoSuchMember,
            CallError::ArgumentCount { .. } | CallError::Argument { .. } | CallError::TooLong { .. } => {
                AnnalsErrorCode::WrongArguments
            }
            CallError::TooManyKept | CallError::TooManyLinks => AnnalsErrorCode::TooManyCalls,
        };
        Self::of(code, &error)
    }
}

impl From<Failure> for AnnalsError {
    fn from(Failure { code, text }: Failure) -> Self {
        // Parts of the text are from outside.
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        Self { code, text }
    }
}

/// Runs the body of a function that reports errors: `error` is set to NULL or to a new error. Returns `otherwise` after an
/// error or a panic.
///
/// # Safety
/// `error` is NULL or a place for a pointer.
pub(crate) unsafe fn reporting<T>(
    error: *mut *mut AnnalsError,
    otherwise: T,
    body: impl FnOnce() -> Result<T, Failure>,
) -> T {
    let (result, said) = match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(Failure::panicked())) {
        Ok(result) => (result, ptr::null_mut()),
        Err(failure) if error.is_null() => {
            drop(failure);
            return otherwise;
        }
        Err(failure) => (otherwise, Box::into_raw(Box::new(failure.into()))),
    };
    // SAFETY: as promised by the caller.
    unsafe { put(error, said) };
    result
}

/// Runs the body of a function that reports no errors, but returns `otherwise`.
pub(crate) fn answering<T>(otherwise: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    // SAFETY: NULL is allowed.
    unsafe { reporting(ptr::null_mut(), otherwise, body) }
}

/// The code of an error; ANNALS_ERROR_CODE_NONE for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_error_get_code(error: *const AnnalsError) -> AnnalsErrorCode {
    // SAFETY: the caller passes NULL or an error of this library.
    answering(AnnalsErrorCode::None, || unsafe { Ok(borrow(error, "error")?.code) })
}

/// The text of an error, NUL-terminated UTF-8, until it is freed; an empty one for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_error_get_text(error: *const AnnalsError) -> *const c_char {
    // SAFETY: the caller passes NULL or an error of this library.
    answering(c"".as_ptr(), || unsafe { Ok(borrow(error, "error")?.text.as_ptr()) })
}

/// Frees an error. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_error_free(error: *mut AnnalsError) {
    // SAFETY: the caller passes NULL or an error of this library that was not freed.
    unsafe { give_up(error) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn no_panic_crosses_the_boundary() {
        let mut error = ptr::null_mut();
        // SAFETY: `error` is a place for a pointer.
        let result = unsafe { reporting(&mut error, 5, || panic!("a test of what happens then")) };
        assert_eq!((result, error.is_null()), (5, false));
        // SAFETY: an error of this library, which is freed once.
        unsafe {
            assert_eq!(annals_error_get_code(error), AnnalsErrorCode::Panicked);
            assert!(
                CStr::from_ptr(annals_error_get_text(error))
                    .to_str()
                    .unwrap()
                    .contains("bug")
            );
            annals_error_free(error);
        }
        // SAFETY: NULL is allowed.
        let result = unsafe { reporting(ptr::null_mut(), 5, || Ok(6)) };
        assert_eq!(result, 6);
    }

    #[test]
    fn a_nul_in_a_text_does_not_end_it() {
        let error = AnnalsError::from(Failure::argument("a\0b"));
        assert_eq!(error.text.to_str().unwrap(), "a\u{fffd}b");
    }
}
