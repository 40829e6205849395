//! Integration tests of annals-model, in one binary: linking takes longer than compiling.

mod account;
mod backup;
mod calls;
mod cut;
mod giving;
mod handover;
mod ledger;
mod log;
mod migration;
mod moving;
mod order;
mod retention;
mod shard;
mod space;
mod teleport;
mod trade;
mod view;
mod without;
