//! The login core: credentials in, a single-use ticket out.
