//! `annals realm top`: what the processes of a live realm do, on one screen.

mod figures;
mod screen;

use std::{
    io::{self, IsTerminal, Write, stdout},
    process::ExitCode,
    time::Duration,
};

use annals_host::{health::DiscoveryError, log_source::KeptRealm, process::Settings};
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::{
    Format, RealmError,
    live::{Live, NotReached},
};
use figures::{Column, Figures, PATTERNS, Sampled};
use screen::{Key, Screen};

/// Show all processes: ticks, lag, clients, bytes, owners, processor and memory.
#[derive(Debug, clap::Args)]
pub(super) struct Top {
    /// Print one table, and end
    #[arg(long)]
    once: bool,
    /// Interval
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// Sort by this column: process upwards, others downwards
    #[arg(long, value_enum, default_value_t = Column::Process)]
    sort: Column,
    /// Output format; json: one object, in a line for each interval
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why there is nothing to see.
#[derive(Debug, Error)]
pub(super) enum NotSeen {
    #[error(transparent)]
    NotReached(#[from] NotReached),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("the processes refused the request: {0}")]
    Refused(String),
}

impl Top {
    pub(super) async fn run(mut self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        let mut live = Live::find(kept, settings, "top").await.map_err(NotSeen::from)?;
        let mut before = sample(&live).await?;
        let is_screen = !self.once && matches!(self.format, Format::Table) && stdout().is_terminal();
        let mut screen = is_screen.then(Screen::open).transpose()?;
        let every = Duration::from_secs(self.every);
        loop {
            let next = before.at + every;
            match &mut screen {
                Some(screen) => tokio::select! {
                    key = screen.key() => match key {
                        Key::End => return Ok(ExitCode::SUCCESS),
                        Key::Sort(column) => self.sort = column,
                    },
                    () = sleep_until(next) => {}
                },
                None => sleep_until(next).await,
            }
            live.keep_up().await.map_err(NotSeen::from)?;
            let now = sample(&live).await?;
            let mut figures = Figures::between(&before, &now);
            figures.sort(self.sort);
            match &mut screen {
                Some(screen) => screen.draw(&figures.lines(settings.realm.as_str(), self.sort))?,
                None => self.print(&figures, settings)?,
            }
            if self.once {
                return Ok(ExitCode::SUCCESS);
            }
            before = now;
        }
    }

    fn print(&self, figures: &Figures, settings: &Settings) -> io::Result<()> {
        let mut out = stdout().lock();
        match self.format {
            Format::Table => {
                for line in figures.lines(settings.realm.as_str(), self.sort) {
                    writeln!(out, "{line}")?;
                }
            }
            Format::Json if self.once => writeln!(out, "{:#}", figures.to_json())?,
            Format::Json => writeln!(out, "{}", figures.to_json())?,
        }
        out.flush()
    }
}

async fn sample(live: &Live) -> Result<Sampled, NotSeen> {
    let patterns = PATTERNS.map(str::to_owned);
    let values = live.values(&patterns).await.map_err(NotSeen::Refused)?;
    Ok(Sampled {
        at: Instant::now(),
        values,
    })
}
