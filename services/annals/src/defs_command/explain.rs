//! `annals defs explain`: the reason for a rule, with an example that breaks it and one that does not.

use std::process::ExitCode;

use annals_authoring::explain;
use annals_def::{Rule, nearest};

use super::{CANNOT_RUN, say, style};

#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// Code of the rule, such as D0201; all rules are listed if omitted
    code: Option<String>,
}

impl Explain {
    pub(super) fn run(self) -> ExitCode {
        let Some(code) = self.code else {
            for rule in Rule::ALL {
                println!("{rule}  {:<7}  {}", rule.text().severity, rule.text().title);
            }
            return ExitCode::SUCCESS;
        };
        let Some(rule) = Rule::with_code(&code) else {
            let codes: Vec<String> = Rule::ALL.iter().map(ToString::to_string).collect();
            let hint = match nearest(&code, codes.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "`annals defs explain` lists all rules".to_owned(),
            };
            eprintln!("unknown rule {code}; {hint}");
            return ExitCode::from(CANNOT_RUN);
        };
        say(&explain(rule, style()));
        ExitCode::SUCCESS
    }
}
