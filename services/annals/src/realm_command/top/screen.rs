//! The terminal: drawn line by line in place, and its keys.

use std::io::{self, Write, stdout};

use crossterm::{
    cursor,
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    execute, queue, style, terminal,
};
use tokio::sync::mpsc;

use super::Column;

/// Maximum keys that wait.
const KEYS: usize = 16;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    End,
    Sort(Column),
}

/// The alternate screen of a terminal, which is left when this is dropped.
pub(super) struct Screen {
    keys: mpsc::Receiver<Key>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be controlled.
    pub(super) fn open() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // From here on, dropping it restores the terminal.
        let (pressed, keys) = mpsc::channel(KEYS);
        let screen = Self { keys };
        execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        // It ends with the process, or when nobody receives.
        std::thread::spawn(move || {
            while let Ok(event) = event::read() {
                if let Some(key) = key_of(&event)
                    && pressed.blocking_send(key).is_err()
                {
                    return;
                }
            }
        });
        Ok(screen)
    }

    /// The next key that means something. Cancel-safe.
    pub(super) async fn key(&mut self) -> Key {
        // Without a keyboard there is nothing to do but to end.
        self.keys.recv().await.unwrap_or(Key::End)
    }

    /// Draws lines, as many and as much of each as there is room for.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let mut out = stdout().lock();
        queue!(out, cursor::MoveTo(0, 0))?;
        for (row, line) in (0..rows).zip(lines) {
            let shown: String = line.chars().take(columns.into()).collect();
            queue!(
                out,
                cursor::MoveTo(0, row),
                style::Print(shown),
                terminal::Clear(terminal::ClearType::UntilNewLine)
            )?;
        }
        queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that cannot be restored is not there any more.
        let _ = execute!(stdout(), terminal::LeaveAlternateScreen, cursor::Show);
        let _ = terminal::disable_raw_mode();
    }
}

fn key_of(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::End,
        KeyCode::Char('q') | KeyCode::Esc => Key::End,
        KeyCode::Char('p') => Key::Sort(Column::Process),
        KeyCode::Char('c') => Key::Sort(Column::Cpu),
        KeyCode::Char('m') => Key::Sort(Column::Memory),
        KeyCode::Char('o') => Key::Sort(Column::Owners),
        KeyCode::Char('e') => Key::Sort(Column::Entities),
        KeyCode::Char('t') => Key::Sort(Column::Tick),
        KeyCode::Char('a') => Key::Sort(Column::Append),
        KeyCode::Char('l') => Key::Sort(Column::Lag),
        KeyCode::Char('n') => Key::Sort(Column::Clients),
        KeyCode::Char('b') => Key::Sort(Column::Bytes),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_sort_and_end() {
        let pressed = |code, modifiers| key_of(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(
            pressed(KeyCode::Char('c'), KeyModifiers::NONE),
            Some(Key::Sort(Column::Cpu))
        );
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::End));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::End));
        assert_eq!(pressed(KeyCode::Char('z'), KeyModifiers::NONE), None);
    }
}
