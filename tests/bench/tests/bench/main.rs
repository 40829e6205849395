//! Integration tests of annals-bench. One binary, since each is linked with all dependencies.

mod figures;
mod interest;
mod volatile;

#[path = "../../../../services/space/tests/space/histories/mod.rs"]
mod histories;
