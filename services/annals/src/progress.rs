//! Progress on standard error: a bar on a terminal; for bots, a line every few seconds elsewhere.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use annals_bots::progress::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;

/// Interval between lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on standard error.
#[derive(Debug)]
pub struct ProgressView {
    shape: Shape,
    /// Printed before the progress.
    title: String,
    every: Duration,
}

#[derive(Debug)]
enum Shape {
    Bar(ProgressBar),
    /// When the last line was printed.
    Lines(Mutex<Option<Instant>>),
}

impl ProgressView {
    /// A view for a run of this length: a bar if standard error is a terminal.
    #[must_use]
    pub fn new(length: Duration) -> Self {
        if !stderr().is_terminal() {
            return Self::lines();
        }
        let bar = ProgressBar::with_draw_target(Some(length.as_secs()), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{elapsed:>4} {bar:24} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            shape: Shape::Bar(bar),
            ..Self::lines()
        }
    }

    /// Plain lines, whether or not standard error is a terminal.
    #[must_use]
    pub fn lines() -> Self {
        Self {
            shape: Shape::Lines(Mutex::new(None)),
            title: String::new(),
            every: LINE_EVERY,
        }
    }

    /// With this title before the progress.
    #[must_use]
    pub fn titled(self, title: String) -> Self {
        Self { title, ..self }
    }

    /// With lines at most this often.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Shows the progress.
    pub fn update(&self, progress: &Progress) {
        let title = &self.title;
        match &self.shape {
            Shape::Bar(bar) => {
                bar.set_position(progress.elapsed.as_secs());
                bar.set_message(format!("{title}{progress}"));
            }
            Shape::Lines(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.is_none_or(|last| last.elapsed() >= self.every) {
                    *last = Some(Instant::now());
                    eprintln!("{:>4} s  {title}{progress}", progress.elapsed.as_secs());
                }
            }
        }
    }

    /// Prints a note, above the bar if there is one.
    pub fn note(&self, what: &str) {
        match &self.shape {
            Shape::Bar(bar) => bar.println(what),
            Shape::Lines(_) => eprintln!("{what}"),
        }
    }

    /// Shows the progress received until the sender is dropped, then clears the bar.
    pub async fn follow(&self, mut progress: watch::Receiver<Progress>) {
        while progress.changed().await.is_ok() {
            let now = *progress.borrow_and_update();
            self.update(&now);
        }
        if let Shape::Bar(bar) = &self.shape {
            bar.finish_and_clear();
        }
    }
}

/// Progress bar of the verification of an archive, on a terminal; nothing is shown elsewhere.
#[derive(Debug)]
pub(crate) struct ArchiveBar(ProgressBar);

impl ArchiveBar {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("verifying the archive {bar:24} {pos}/{len} batches");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// Shows the number of verified batches, and the total.
    pub(crate) fn show(&self, verified: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(verified);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn following_ends_when_the_run_ends() {
        let (sender, receiver) = watch::channel(Progress::default());
        sender.send_replace(Progress {
            bots: 1,
            ..Progress::default()
        });
        drop(sender);
        ProgressView::lines().follow(receiver).await;
    }
}
