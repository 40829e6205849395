//! The db core: folds logs into snapshots, owner records and the archive.
