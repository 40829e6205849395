//! The layout of a realm's store. No other module builds its keys.
//!
//! | prefix | key after it | value | written by |
//! |---|---|---|---|
//! | `00` | – | [the layout](mark):u32; absent before the first fold | db |
//! | `01` | counter:u8 | next number:u64 | director |
//! | `02` | – | when the realm was created, wall clock ms:u64; fingerprint of its schema | director |
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
//! | `0d` | tuple of type name, property name, value | database id:u64 of the only entity with that value | db |
//! | `0d` | tuple of the same, database id:u64 | –, if several entities may have the value | db |
//! | `0e` | database id:u64 | [`database::Checkout`] | db |
//! | `0f` | account name's key | [`database::Account`] | db |
//! | `10` | – | [`director::Term`] | director |
//! | `11` | – | the map of spaces | director |
//! | `12` | shard:u16 | [`archive::FoldLease`] | db |
//! | `13` | owner:u32, batch:u64 | [`archive::Hole`] | db |
//! | `14` | – | [the key](database::name_key_key) under which account names are hashed: 32 bytes | login |
//! | `16` | idempotency key | [`idempotency`] | the runner of a transaction with exactly-once semantics |
//! | `18` | database id:u64, slot:u16, kind:u32 | units:u64 | db |
//! | `19` | serial:u64 | an item: its kind and its location | db |
//! | `1a` | database id:u64, slot:u16, serial:u64 | kind:u32 | db |
//! | `1b` | kind:u32 | its supply | db |
//! | `1c` | transfer | an open trade or reserved transfer, with its escrow | db |
//! | `1d` | wall clock ms:u64, transfer | – (it expires then) | db |
//! | `1e` | last entry:u64, chunk:u16 | the ledger entries of one batch | db |
//! | `1f` | 0:u8 | [`ledger::Head`] | db |
//! | `1f` | 1:u8, last notice:u64, chunk:u16 | one batch's notices for the log `ledger` to send (the outbox) | db |
//! | `1f` | 2:u8, transfer | the entry of the order | db |
//! | `1f` | 3:u8, database id:u64 | a holder: its life, and the amount of its holdings | db |
//! | `1f` | 4:u8, database id:u64, transfer | – (it is a party to that transfer) | db |
//! | `1f` | 5:u8, action:u128 | the entry of the operator's action | db |
//! | `20` | shard:u16, last leaf:u64, chunk:u16 | [the index of a segment](crate::segment) | db |
//! | `21` | shard:u16, last leaf:u64, block:u32, chunk:u16 | a block of that segment | db |
//! | `22` | leaf:u64 | [`lineage::Lineage`] | the restoring process |
//! | `26` | number:u32, chunk:u16 | [`migrations::MigrationRecord`] | the migrating process |
//! | `27` | – | [`migrations::Converting`], during the conversion of stored entities | the migrating process, db |
//! | `28` | – | wall clock ms:u64 of the [orderly stop](director::closed_key); absent while the realm runs | director |
//! | `29` | shard:u16, 0:u8 | [`retention::Horizon`] | db |
//! | `29` | shard:u16, 1:u8 | the first leaf not examined for [thinning](retention::thinned_key):u64 | db |
//! | `2a` | shard:u16, area:u8, owner:u32, 0, chunk:u16 | an owner's own state in its [floor](retention) | db |
//! | `2a` | shard:u16, area:u8, owner:u32, 1, entity:u64, chunk:u16 | an entity's image there | db |
//! | `2b` | shard:u16, database id:u64, leaf:u64, chunk:u16 | [`retention::CellPart`] | db |
//! | `2c` | – | name of the backup [being restored](lineage::unfinished_key); else absent | the restoring process |
//! | `2d` | shard:u16, level:u8, index:u64 | [a tile](tiles) of the shard's Merkle tree: hashes | db |
//! | `2e` | shard:u16, 0:u8, size:u64 | [a signed checkpoint](checkpoints) of the tree's first leaves | signer |
//! | `2e` | shard:u16, 1:u8, from:u64 | [the key](checkpoints::signer_key) that signs from that size on | signer |
//! | `2f` | database id:u64 | [the key](personal) of a person: 32 bytes; in no backup | db |
//! | `30` | database id:u64 | [`personal::Forgotten`] | the process that forgets a person |
//! | `31` | number:u32 | [a decision](adoptions) about a log that the store did not know | `annals realm adopt-log` |
//! | `32` | owner:u32 | [`owners::HolderConnection`] | the owner's holder |
//! | `33` | – | [`director::LeaderConnection`] | director |
//! | `34` | – | [`director::Upgrade`], while one is prepared | director, db |
//! | `38` | number:u64 | [a changed setting](setting_changes) of a running process; in no backup | the changed process |
//! | `39` | – | number of [shards](shards):u16, [`shards::AloneUntil`] if there was one for a time; absent while there is one | db |
//! | `3a` | shard:u16, 0:u8, entity:u64 | [`shards::Parting`], until that shard has passed it | db |
//! | `3a` | shard:u16, 1:u8, entity:u64 | database id:u64 of an entity whose cell part that shard is to write | db |
//! | `3b` | entity:u64, chunk:u16 | [`shards::EndedCell`], until its activation has ended | db |
//! | `3c` | last notice:u64 of a batch | [`shards::LedgerChange`], in a realm of several shards | db |
//! | `3d` | shard:u16, entity:u64, leaf:u64, chunk:u16 | [`shards::EndedCell`] before the [horizon](retention) | db |
//! | `3e` | database id:u64, number:u32 | a [decision](bans) about an account: banned, lifted, created | `annals realm ban`, `unban`, `account` |
//! | `3f` | database id:u64, owner:u32 | session:u64, [the newest](bans::session_key) that was admitted there | db |
//!
//! A transfer is the entity id:u64 and the number:u64 of its asker. Numbers in keys are big-endian, so that they sort.
//! Values that may exceed the store's maximum are split into chunks.

pub mod adoptions;
pub mod archive;
pub mod bans;
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
pub mod setting_changes;
pub mod shards;
pub mod snapshots;
pub mod tiles;

pub(crate) use fields::Fields;
pub use fields::{chunks, join, read_chunks};

#[cfg(test)]
mod tests;
