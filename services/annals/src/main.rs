//! `annals`: the command line.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Run a realm, and look into one.
#[derive(Debug, Parser)]
#[command(name = "annals", version = annals_host::release::text())]
struct CommandLine {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Write a small, complete game: definitions, behaviour, tests, a page to play in; or a client in TypeScript
    New(annals::new_command::New),
    /// Run a game while it is written: build it after each change, and replace its processes while players stay connected
    Dev(annals::dev_command::Dev),
    /// Run a realm on this machine: one process per service and a private nats-server
    Up(annals::up_command::Up),
    /// Run a realm with bots, and a web page in which people play beside them
    Play(annals::play_command::Play),
    /// Run bots in a live realm
    Bots(annals::bots_command::Bots),
    /// Run a realm with bots, kill or drain its processes, and check that nothing shown to clients was lost
    Demo(annals::demo_command::Demo),
    /// Compare the bots' record of what they were shown with a realm's archive
    Check(annals::check_command::Check),
    /// Check a world's definitions, and explain errors
    Defs(annals::defs_command::Defs),
    /// Read a game's data files
    Data(annals::data_command::Data),
    /// Read a realm's log
    Log(annals::log_command::Log),
    /// Answer questions about the past from a realm's archive
    Audit(annals::audit_command::Audit),
    /// Inspect and watch a realm and its database, grant and take assets, drain a process, stop the realm
    Realm(annals::realm_command::Realm),
    /// Manage personal data: show and forget persons, export and import their keys
    Person(annals::person_command::Person),
    /// Create signing keys; print, cosign and verify signed checkpoints of a realm
    Checkpoint(annals::checkpoint_command::Checkpoint),
    /// Back up and restore a realm
    Backup(annals::backup_command::Backup),
    /// Write man pages and shell completions of all programs, for packages
    #[command(hide = true)]
    Manual(annals::manual_command::Manual),
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    if let Err(error) = annals_host::telemetry::init_command() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("the async runtime cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        match line.command {
            Commands::New(new) => new.run(),
            Commands::Dev(dev) => dev.run().await,
            Commands::Up(up) => up.run().await,
            Commands::Play(play) => play.run().await,
            Commands::Bots(bots) => bots.run().await,
            Commands::Demo(demo) => demo.run().await,
            Commands::Check(check) => check.run().await,
            Commands::Defs(defs) => defs.run(),
            Commands::Data(data) => data.run(),
            Commands::Log(log) => log.run().await,
            Commands::Audit(audit) => audit.run().await,
            Commands::Realm(realm) => realm.run().await,
            Commands::Person(person) => person.run().await,
            Commands::Checkpoint(checkpoint) => checkpoint.run().await,
            Commands::Backup(backup) => backup.run().await,
            Commands::Manual(manual) => manual.run(CommandLine::command()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// The words of a command line as a shell splits it, up to a comment, a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        for c in line.chars() {
            match c {
                '"' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                ' ' if !quoted => words.extend(word.take()),
                '#' | '|' | '>' if !quoted && word.is_none() => break,
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// The commands in a document: code lines that begin with the program's name, and inline commands.
    fn commands(text: &str) -> impl Iterator<Item = &str> {
        let (mut is_code, mut found) = (false, Vec::new());
        for line in text.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                let typed = line.strip_prefix("$ ").unwrap_or(line);
                found.extend(Some(typed).filter(|typed| typed.starts_with("annals ")));
            } else {
                let quoted = line.split('`').skip(1).step_by(2);
                let is_whole = |typed: &&str| typed.starts_with("annals ") && !typed.contains('…');
                // Inline code in a sentence is often only a command's name.
                found.extend(
                    quoted
                        .filter(is_whole)
                        .filter(|typed| typed.contains("NUMBER") || typed.contains("NAME")),
                );
            }
        }
        found.into_iter()
    }

    /// A command line with its variables replaced by examples.
    fn filled(line: &str) -> String {
        let moment = line.replace("ENTITY/NUMBER", "1048580/3");
        moment.replace("NUMBER", "17").replace("NAME", "merlin")
    }

    /// The commands that documents show must parse.
    #[test]
    fn commands_in_documents_parse() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut seen = 0;
        for document in [
            "auditors-handbook.md",
            "audit-command.md",
            "evidence.md",
            "realm-command.md",
        ] {
            let text = fs::read_to_string(docs.join(document)).expect("it is there");
            for command in commands(&text) {
                let parsed = CommandLine::try_parse_from(words(&filled(command)));
                assert!(parsed.is_ok(), "{document}: {command}: {}", parsed.unwrap_err());
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen} commands were seen");
    }
}
