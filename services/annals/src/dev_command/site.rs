//! The game's page, served as `annals play` does.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use annals_bots::progress::Progress;
use annals_console::serve::serve;
use annals_host::telemetry::Chain;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{
    play_command::{
        files::Files,
        page::{NotListening, PageParts, listen, origin, site},
        receipts::Receipts,
    },
    up::{Realm, RealmOrder},
};

/// The folder of the compiled page, below the game's.
const COMPILED: &str = "target/page";

/// An address at which a page is to be served.
pub(super) struct Site {
    dir: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    listener: TcpListener,
    /// Empty while there is no page.
    files: Files,
}

impl Site {
    /// Reads the game's page, and binds its address.
    ///
    /// # Errors
    /// When the address is not a local one, or is taken.
    pub(super) async fn open(dir: &Path, address: SocketAddr) -> Result<Self, NotListening> {
        let folder = dir.join(COMPILED);
        let (listener, address) = listen(address).await?;
        Ok(Self {
            files: Files::read(&folder).unwrap_or_default(),
            dir: dir.to_owned(),
            folder,
            address,
            listener,
        })
    }

    pub(super) fn origin(&self) -> String {
        origin(self.address)
    }

    /// The folder of the game's definitions.
    pub(super) fn definitions(&self) -> PathBuf {
        self.dir.join("defs")
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn has_page(&self) -> bool {
        !self.files.is_empty()
    }

    /// Serves the page of a realm.
    pub(super) fn serve(self, realm: &Realm, orders: mpsc::Sender<RealmOrder>) -> Page {
        let (files, served) = watch::channel(Arc::new(self.files));
        let (stopping, stops) = watch::channel(false);
        let site = site(PageParts {
            address: self.address,
            files: served,
            login: realm.login,
            data: realm.plan().data.clone(),
            orders,
            bots: watch::channel(Progress::default()).1,
            receipts: Receipts::new(realm.settings(), realm.plan().data.join("play")),
        });
        Page {
            folder: self.folder,
            files,
            server: tokio::spawn(serve(self.listener, site, stops)),
            _stopping: stopping,
        }
    }
}

/// A page that is served until it is dropped.
pub(super) struct Page {
    folder: PathBuf,
    files: watch::Sender<Arc<Files>>,
    server: JoinHandle<io::Result<()>>,
    _stopping: watch::Sender<bool>,
}

impl Page {
    /// Serves what was compiled meanwhile; returns the former files. Without a compiled page, these stay.
    pub(super) fn refresh(&self) -> Arc<Files> {
        match Files::read(&self.folder) {
            Ok(files) => self.files.send_replace(Arc::new(files)),
            Err(error) => {
                println!("dev: the page is not replaced: {}", Chain(&error));
                Arc::clone(&self.files.borrow())
            }
        }
    }

    /// Serves former files again.
    pub(super) fn restore(&self, files: Arc<Files>) {
        self.files.send_replace(files);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.server.abort();
    }
}
