//! `annals defs docs`: the definitions as one page. `annals defs describe --html` is an alias.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::{Description, to_page};

use super::{
    CANNOT_RUN,
    describe::read,
    output::{self, OutputError},
    say,
};

/// File name of the page in a folder.
const PAGE: &str = "index.html";

#[derive(Debug, clap::Args)]
pub(super) struct Docs {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// Output file, or a folder for `index.html`; standard output if omitted
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Docs {
    pub(super) fn run(self) -> ExitCode {
        match read(&self.dir) {
            Ok(description) => write_page(&description, &self.dir, self.out.as_deref()),
            Err(code) => code,
        }
    }
}

/// Writes the page and prints its path.
pub(super) fn write_page(description: &Description, dir: &Path, out: Option<&Path>) -> ExitCode {
    let page = to_page(description, &title(dir));
    let Some(out) = out else {
        say(&page);
        return ExitCode::SUCCESS;
    };
    match write(&page, out) {
        Ok(path) => {
            eprintln!(
                "{}: {} types, {} kB",
                path.display(),
                description.types.len(),
                page.len() / 1_000
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

/// Writes the page to a file, or into a folder: an existing one, or a path that ends like one.
fn write(page: &str, out: &Path) -> Result<PathBuf, OutputError> {
    let is_folder = out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !is_folder {
        output::write(out, page)?;
        return Ok(out.to_owned());
    }
    output::make_folder(out)?;
    let path = out.join(PAGE);
    output::write(&path, page)?;
    Ok(path)
}

/// The title of the page: the name of the world's folder, which may be given as `.`.
fn title(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "World".to_owned())
}
