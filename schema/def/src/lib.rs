//! The .def language: parse, check and compile entity descriptions; types and values.
