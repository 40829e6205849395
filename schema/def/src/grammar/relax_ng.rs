//! RELAX NG.
