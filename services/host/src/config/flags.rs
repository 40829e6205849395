//! Settings as flags of a service's command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use super::Service;
use super::layers::FILE_VARIABLE;
use super::settings::{SETTINGS, Setting};
use crate::release;

/// The id of the flag that names the file.
const CONFIG: &str = "config";

/// Flags of a service's command line. [`Config::load`](super::Config::load) checks the values, together with those from
/// other sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// The file that was named.
    pub(super) file: Option<PathBuf>,
    /// Values by setting.
    pub(super) given: BTreeMap<&'static str, String>,
}

impl Flags {
    /// The command line of a service: its description, and a flag for each setting that it uses. The caller may add
    /// more.
    #[must_use]
    pub fn command(service: Service) -> Command {
        let file = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help(format!("Read settings from this TOML file [env: {FILE_VARIABLE}]"));
        let (about, more) = service.about().split_once("\n\n").unwrap_or((service.about(), ""));
        Command::new(format!("annals-{}", service.name()))
            .version(release::text())
            .about(about)
            .after_help(format!(
                "{more}\n\nEach setting can also be given in the file, by the flag's name with _ for -, or in the environment; \
                 a flag comes before the environment, and that before the file."
            ))
            .arg(file)
            .args(SETTINGS.iter().filter(|setting| service.uses(setting.key)).map(flag))
    }

    /// The flags in a parsed command line.
    #[must_use]
    pub fn of(matches: &ArgMatches) -> Self {
        // clap has no id for the flag of a setting that the service does not use.
        let text = |key: &str| matches.try_get_one::<String>(key).ok().flatten().cloned();
        Self {
            file: matches.get_one::<PathBuf>(CONFIG).cloned(),
            given: SETTINGS
                .iter()
                .filter_map(|setting| Some((setting.key, text(setting.key)?)))
                .collect(),
        }
    }

    /// Parses these arguments, of which the first is the program, with the command line `command` of a service. A flag
    /// of another service is an error that names that service.
    ///
    /// # Errors
    /// clap's errors; help is an error as well.
    pub fn matched<A: Into<OsString> + Clone>(
        command: &Command,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<ArgMatches, clap::Error> {
        let matched = command.clone().try_get_matches_from(arguments);
        matched.map_err(|error| match elsewhere(&error) {
            Some(setting) => {
                let users: Vec<&str> = setting.used_by.iter().map(|service| service.name()).collect();
                let (flag, variable) = (setting.flag(), setting.variable());
                let users = users.join(", ");
                command.clone().error(
                    ErrorKind::UnknownArgument,
                    format!(
                        "--{flag} is a setting of {users}, and {program} does not use it: leave it out, or give it to all \
                         services alike as {variable}",
                        program = command.get_name()
                    ),
                )
            }
            None => error,
        })
    }
}

fn flag(setting: &Setting) -> Arg {
    let default = setting
        .default
        .map(|value| format!(" [default: {value}]"))
        .unwrap_or_default();
    Arg::new(setting.key)
        .long(setting.flag())
        .value_name(setting.value)
        .help(format!("{}{default} [env: {}]", setting.help, setting.variable()))
}

/// The setting of another service that an unknown flag refers to.
fn elsewhere(error: &clap::Error) -> Option<&'static Setting> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let given = error.get(ContextKind::InvalidArg)?.to_string();
    let name = given.trim_start_matches('-').split('=').next()?;
    SETTINGS.iter().find(|setting| setting.flag() == name)
}
