//! The storage of backups: a folder, or a bucket of an S3-compatible store.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutPayload, aws::AmazonS3Builder, local::LocalFileSystem, memory::InMemory,
    path::Path,
};
use thiserror::Error;

/// The URL scheme of a bucket.
const S3: &str = "s3://";

/// Why a target could not be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The folder cannot be used.
    #[error("the folder {} cannot be created", path.display())]
    Folder {
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The address is invalid.
    #[error("{address} names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX")]
    Address {
        /// The address given.
        address: String,
    },
    /// Error with a piece.
    #[error("{piece} at {target}")]
    Piece {
        /// The name of the piece.
        piece: String,
        target: String,
        /// The underlying error.
        source: object_store::Error,
    },
    /// The target itself cannot be used.
    #[error("{target} cannot be used")]
    Unusable {
        target: String,
        /// The underlying error.
        source: object_store::Error,
    },
}

impl TargetError {
    /// Whether the error says that a piece is missing.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Piece {
                source: object_store::Error::NotFound { .. },
                ..
            }
        )
    }
}

/// A storage location for backups. Clones refer to the same location.
#[derive(Clone, Debug)]
pub struct Target {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
    address: String,
}

impl Target {
    /// `s3://BUCKET/PREFIX`, with keys, region and endpoint from the usual environment variables (`AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP`); otherwise a folder, which is created
    /// if it is missing.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open(address: &str) -> Result<Self, TargetError> {
        match address.strip_prefix(S3) {
            Some(rest) => Self::bucket(address, rest),
            None => Self::folder(FilePath::new(address)),
        }
    }

    /// A folder.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn folder(folder: &FilePath) -> Result<Self, TargetError> {
        let failed = |source| TargetError::Folder {
            path: folder.to_owned(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let address = folder.display().to_string();
        let unusable = |source| TargetError::Unusable {
            target: address.clone(),
            source,
        };
        // The pieces that a manifest lists must be as durable as the manifest.
        let files = LocalFileSystem::new_with_prefix(folder)
            .map_err(unusable)?
            .with_fsync(true);
        Ok(Self {
            objects: Arc::new(files),
            prefix: Path::default(),
            address,
        })
    }

    /// In-memory storage, for tests.
    #[must_use]
    pub fn memory() -> Self {
        Self {
            objects: Arc::new(InMemory::new()),
            prefix: Path::default(),
            address: "memory".to_owned(),
        }
    }

    fn bucket(address: &str, rest: &str) -> Result<Self, TargetError> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(TargetError::Address {
                address: address.to_owned(),
            });
        }
        // One provider for all of TLS; if one is installed already, it is kept.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let objects = built.map_err(|source| TargetError::Unusable {
            target: address.to_owned(),
            source,
        })?;
        Ok(Self {
            objects: Arc::new(objects),
            prefix: Path::from(prefix),
            address: address.to_owned(),
        })
    }

    /// The names and sizes, in bytes, of the pieces in a folder of the target.
    ///
    /// # Errors
    /// When the target does not answer.
    pub async fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, TargetError> {
        let place = self.place(folder);
        let found: Vec<_> =
            self.objects
                .list(Some(&place))
                .try_collect()
                .await
                .map_err(|source| TargetError::Unusable {
                    target: self.address.clone(),
                    source,
                })?;
        let named = |meta: object_store::ObjectMeta| Some((meta.location.filename()?.to_owned(), meta.size));
        Ok(found.into_iter().filter_map(named).collect())
    }

    /// The bytes of a piece.
    ///
    /// # Errors
    /// When it is missing, or cannot be read.
    pub async fn read(&self, piece: &str) -> Result<Bytes, TargetError> {
        let failed = |source| self.failed(piece, source);
        let found = self.objects.get(&self.place(piece)).await.map_err(failed)?;
        found.bytes().await.map_err(failed)
    }

    /// Writes a piece atomically.
    ///
    /// # Errors
    /// When it is not written.
    pub async fn write(&self, piece: &str, bytes: Vec<u8>) -> Result<(), TargetError> {
        let written = self.objects.put(&self.place(piece), PutPayload::from(bytes)).await;
        written.map(|_| ()).map_err(|source| self.failed(piece, source))
    }

    /// Writes a piece that must not exist yet.
    ///
    /// # Errors
    /// When it exists already, or is not written.
    pub async fn write_new(&self, piece: &str, bytes: Vec<u8>) -> Result<(), TargetError> {
        let (place, payload) = (self.place(piece), PutPayload::from(bytes));
        let written = self.objects.put_opts(&place, payload, PutMode::Create.into()).await;
        written.map(|_| ()).map_err(|source| self.failed(piece, source))
    }

    fn place(&self, piece: &str) -> Path {
        let parts = piece.split('/');
        parts.fold(self.prefix.clone(), |place, part| place.join(part))
    }

    fn failed(&self, piece: &str, source: object_store::Error) -> TargetError {
        TargetError::Piece {
            piece: piece.to_owned(),
            target: self.address.clone(),
            source,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}
