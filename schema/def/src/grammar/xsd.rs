//! XSD.
