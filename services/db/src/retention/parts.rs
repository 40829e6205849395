//! The cell parts that stored entities had before the horizon.
//!
//! When a stored entity is written, its row includes the properties that its cell part had at that moment, which are in
//! a cell's log. A restored realm can no longer fold that log, so the newest cell part of each such entity is kept.

use std::collections::BTreeMap;

use annals_event::Image;
use annals_ids::{DatabaseId, Hash, LeafIndex, Shard, WallTime};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        chunks,
        retention::{self as layout, CellPart, Horizon},
        shards::EndedCell,
    },
};

use crate::{migrations::Migrations, recovery::read_image};

/// Rows read at a time.
const PAGE: usize = 256;

/// A cell part, the definitions under which it was written, and the leaf at which it was written.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) leaf: LeafIndex,
    pub(crate) schema: Hash,
    pub(crate) image: Image,
}

impl Part {
    /// The cell part as written at this leaf. Only the properties of a cell part go to the database.
    pub(super) fn new(leaf: LeafIndex, schema: Hash, image: &Image) -> Self {
        let properties: Vec<_> = image.properties.clone().into_iter().collect();
        let image = Image::new(image.type_id, image.home, &properties, image.part.clone());
        Self { leaf, schema, image }
    }

    /// Merges it over the former part: properties that it does not have are kept from the former.
    pub(super) fn over(mut self, former: &Self, migrations: &Migrations) -> Self {
        let migrations = migrations.clone().upto(self.schema);
        // If the former cannot be converted, the database's row raises the alarm.
        if let Ok(former) = migrations.image(former.schema, &former.image)
            && former.type_id == self.image.type_id
        {
            for (index, value) in &former.properties {
                self.image.properties.entry(*index).or_insert_with(|| value.clone());
            }
        }
        self
    }

    /// Writes it. Keeps the part that it replaces once the horizon has moved, and deletes those before that one.
    pub(super) async fn write(
        &self,
        transaction: &Transaction,
        (shard, database): (Shard, DatabaseId),
        horizon: Option<Horizon>,
    ) -> Result<usize, StoreError> {
        if let Some((leaf, _)) = read_newest(transaction, (shard, database), horizon).await? {
            transaction.clear_range(&layout::parts_before(shard, database, leaf))?;
        }
        let mut image = Vec::new();
        self.image.write(&mut image);
        let schema = self.schema;
        let value = CellPart { schema, image }.encode();
        for (key, chunk) in chunks(&layout::part_key(shard, database, self.leaf), &value) {
            transaction.set(&key, chunk)?;
        }
        Ok(value.len())
    }

    fn decode(leaf: LeafIndex, value: &[u8]) -> Result<Self, StoreError> {
        let CellPart { schema, image } = CellPart::decode(value)?;
        let damaged = |error| StoreError::Corrupt(format!("a cell part of leaf {leaf}: {error}").into());
        let image = read_image(&image).map_err(damaged)?;
        Ok(Self { leaf, schema, image })
    }
}

/// A cell part as it is kept when it has ended; only the properties of a cell part go to the database.
pub(crate) fn ended_cell((wall, schema): (WallTime, Hash), cell: &Image) -> EndedCell {
    let properties: Vec<_> = cell.properties.clone().into_iter().collect();
    let mut kept = Image::new(cell.type_id, cell.home, &properties, cell.part.clone());
    kept.history = cell.history;
    let mut image = Vec::new();
    kept.write(&mut image);
    EndedCell { wall, schema, image }
}

/// The cell part of an entity at the horizon.
pub(super) async fn read_part(
    store: &Store,
    place: (Shard, DatabaseId),
    horizon: Option<Horizon>,
) -> Result<Option<Part>, StoreError> {
    let read = |transaction: Transaction| async move { read_newest(&transaction, place, horizon).await };
    let found = store.read(read).await?;
    found.map(|(leaf, value)| Part::decode(leaf, &value)).transpose()
}

async fn read_newest(
    transaction: &Transaction,
    (shard, database): (Shard, DatabaseId),
    horizon: Option<Horizon>,
) -> Result<Option<(LeafIndex, Vec<u8>)>, StoreError> {
    let Some(horizon) = horizon else { return Ok(None) };
    let range = layout::parts_before(shard, database, LeafIndex(horizon.leaf.0 + 1));
    let page = transaction.get_range(&range, 1, ScanOrder::Reverse).await?;
    let Some((key, _)) = page.rows.first() else {
        return Ok(None);
    };
    let (_, leaf) = layout::part_of(key)?;
    let value = annals_store::layout::read_chunks(transaction, &layout::part_key(shard, database, leaf)).await?;
    Ok(value.map(|value| (leaf, value)))
}

/// All cell parts at the horizon, in the order in which they were written.
pub(crate) async fn read_parts(
    store: &Store,
    shard: Shard,
    horizon: Horizon,
) -> Result<Vec<(DatabaseId, Part)>, StoreError> {
    let mut found: BTreeMap<DatabaseId, (LeafIndex, Vec<u8>)> = BTreeMap::new();
    let mut range = layout::parts(shard);
    loop {
        let rows = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(rows, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            let (database, leaf) = layout::part_of(key)?;
            if leaf > horizon.leaf {
                continue;
            }
            match found.get_mut(&database).filter(|(held, _)| *held == leaf) {
                Some((_, bytes)) => bytes.extend_from_slice(value),
                None => {
                    found.insert(database, (leaf, value.to_vec()));
                }
            }
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => break,
        }
    }
    let decode = |(database, (leaf, value)): (DatabaseId, (LeafIndex, Vec<u8>))| {
        Part::decode(leaf, &value).map(|part| (database, part))
    };
    let mut parts: Vec<_> = found.into_iter().map(decode).collect::<Result<_, _>>()?;
    parts.sort_by_key(|(_, part)| part.leaf);
    Ok(parts)
}
