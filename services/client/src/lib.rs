//! The client SDK: log in, see entities, call methods, resume.
