//! Rules of the codebase as tests: layering, sizes, words.
