//! The store: ordered keys, serializable transactions, versionstamps and watches.
