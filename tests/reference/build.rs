//! Generates the types of the examples' world from its definitions.

use std::{env, fs, path::Path};

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::{Style, Tree, render};

fn main() {
    println!("cargo::rerun-if-changed=defs");
    let model = Model::compile(&Tree::read(Path::new("defs")));
    let model = model.unwrap_or_else(|problems| panic!("{}", render(&problems, Style::Plain)));
    let code = model.to_rust(CodeParts::SERVER);
    // The text is included in a module, whose documentation stands outside.
    let code: Vec<&str> = code.lines().filter(|line| !line.starts_with("//!")).collect();
    let out = env::var_os("OUT_DIR").expect("cargo names the folder");
    fs::write(Path::new(&out).join("defs.rs"), code.join("\n")).expect("cargo has made the folder");
}
