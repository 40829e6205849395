//! Integration tests of annals-bench, in one binary: linking takes longer than compiling.

mod figures;
mod interest;
mod volatile;

#[path = "../../../../services/space/tests/space/histories/mod.rs"]
mod histories;
