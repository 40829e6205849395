//! What lies where in a realm's store. This is the only place that knows.
//!
//! | prefix | key after it | value | written by |
//! |---|---|---|---|
//! | `00` | – | [which layout](mark) this is:u32; not there before anybody folds | db |
//! | `01` | counter:u8 | next number:u64 | director |
//! | `02` | – | when the realm began, wall clock ms:u64; fingerprint of its schema | director |
//! | `03` | fingerprint, chunk:u16 | a schema | director |
//! | `04` | owner:u32 | [`owners::OwnerRecord`] | director |
//! | `05` | owner:u32, epoch:u64 | [`owners::OpeningRecord`] | the owner's holder |
//! | `06` | owner:u32 | [`owners::Cursor`] | db |
//! | `07` | shard:u16, leaf:u64, chunk:u16 | a batch, until it is sealed into a segment | db |
//! | `08` | owner:u32, batch:u64 | leaf:u64 | db |
//! | `09` | shard:u16 | [`archive::Tree`] | db |
//! | `0a` | owner:u32, area:u8, 0, chunk:u16 | an owner's own state | db |
//! | `0a` | owner:u32, area:u8, 1, entity:u64, chunk:u16 | an entity's image | db |
//! | `0b` | owner:u32 | [`snapshots::Position`] | db |
//! | `0c` | database id:u64, chunk:u16 | [a stored entity](database) | db |
//! | `0d` | tuple of the type's name, the property's, the value | database id:u64 of the one entity that has it | db |
//! | `0d` | tuple of the same, database id:u64 | – , where several may have the value | db |
//! | `0e` | database id:u64 | [`database::Checkout`] | db |
//! | `0f` | account name's key | [`database::Account`] | db |
//! | `10` | – | [`director::Term`] | director |
//! | `11` | – | the map of spaces | director |
//! | `12` | shard:u16 | [`archive::FoldLease`] | db |
//! | `13` | owner:u32, batch:u64 | [`archive::Hole`] | db |
//! | `14` | – | [the key](database::name_key_key) under which account names are hashed: 32 bytes | login |
//! | `16` | idempotency key | [`idempotency`] | whoever runs a transaction once |
//! | `18` | database id:u64, slot:u16, kind:u32 | units:u64 | db |
//! | `19` | serial:u64 | an item: its kind and where it is | db |
//! | `1a` | database id:u64, slot:u16, serial:u64 | kind:u32 | db |
//! | `1b` | kind:u32 | what exists of it | db |
//! | `1c` | transfer | a trade or a reserved transfer that is open, with what it holds | db |
//! | `1d` | wall clock ms:u64, transfer | – (it expires then) | db |
//! | `1e` | last entry:u64, chunk:u16 | the entries of the ledger that one batch has made | db |
//! | `1f` | 0:u8 | [`ledger::Head`] | db |
//! | `1f` | 1:u8, last notice:u64, chunk:u16 | what the log `ledger` is to say of one batch (the outbox) | db |
//! | `1f` | 2:u8, transfer | the entry that was made of the order | db |
//! | `1f` | 3:u8, database id:u64 | a holder: its life, and how much it holds | db |
//! | `1f` | 4:u8, database id:u64, transfer | – (it is party to that) | db |
//! | `1f` | 5:u8, action:u128 | the entry that was made of the operator's action | db |
//! | `20` | shard:u16, last leaf:u64, chunk:u16 | [the index of a segment](crate::segment) | db |
//! | `21` | shard:u16, last leaf:u64, block:u32, chunk:u16 | a block of that segment | db |
//! | `22` | leaf:u64 | [`lineage::Lineage`] | whoever restores a realm |
//! | `26` | number:u32, chunk:u16 | [`migrations::MigrationRecord`] | whoever migrates a realm |
//! | `27` | – | [`migrations::Converting`], while stored entities are | whoever migrates a realm, db |
//! | `28` | – | when the realm was [stopped in order](director::closed_key), wall clock ms:u64; not there while it runs | director |
//! | `29` | shard:u16, 0:u8 | [`retention::Horizon`] | db |
//! | `29` | shard:u16, 1:u8 | the first leaf that was not looked at for [thinning](retention::thinned_key):u64 | db |
//! | `2a` | shard:u16, area:u8, owner:u32, 0, chunk:u16 | an owner's own state in its [floor](retention) | db |
//! | `2a` | shard:u16, area:u8, owner:u32, 1, entity:u64, chunk:u16 | an entity's image there | db |
//! | `2b` | shard:u16, database id:u64, leaf:u64, chunk:u16 | [`retention::CellPart`] | db |
//! | `2c` | – | the name of the backup that is [being restored](lineage::unfinished_key); not there in a realm | whoever restores a realm |
//! | `2d` | shard:u16, level:u8, index:u64 | [a tile](tiles) of the shard's Merkle tree: hashes | db |
//! | `2e` | shard:u16, 0:u8, size:u64 | [a signed checkpoint](checkpoints) of the tree's first leaves | signer |
//! | `2e` | shard:u16, 1:u8, from:u64 | [the key](checkpoints::signer_key) that signs from that size on | signer |
//! | `2f` | database id:u64 | [the key](personal) of a person: 32 bytes; in no backup | db |
//! | `30` | database id:u64 | [`personal::Forgotten`] | whoever has somebody forgotten |
//! | `31` | number:u32 | [a decision](adoptions) about a log that the store did not know | `annals realm adopt-log` |
//!
//! A transfer is its asker's entity id:u64 and number:u64. Numbers in keys are big-endian, so that they sort. What may be larger than a value of the store is cut into chunks.

pub mod adoptions;
pub mod archive;
pub mod checkpoints;
pub mod database;
pub mod director;
mod fields;
pub mod idempotency;
pub mod ledger;
pub mod lineage;
pub mod mark;
pub mod migrations;
pub mod owners;
pub mod personal;
pub mod retention;
pub mod segments;
pub mod snapshots;
pub mod tiles;

pub(crate) use fields::Fields;
pub use fields::{chunks, join, read_chunks};

#[cfg(test)]
mod tests;
