//! Pure crates take time, randomness, threads, files and sockets as inputs or not at all. Clippy bans individual calls
//! (`schema/clippy.toml`); this rule bans whole modules, in the crate's own code, and covers macro bodies as well.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

use crate::Violation;
use crate::attributes::switches_off;
use crate::repository::SourceFile;

/// A path, or the tail of one, and the reason. A ban on a module covers everything in it.
const BANNED: &[(&[&str], &str)] = &[
    (&["Instant", "now"], "take the time as an input"),
    (&["SystemTime", "now"], "take the time as an input"),
    (&["std", "thread"], "return an output and let the shell do it"),
    (&["TcpStream"], "return an output and let the shell do it"),
    (&["TcpListener"], "return an output and let the shell do it"),
    (&["UdpSocket"], "return an output and let the shell do it"),
    (&["std", "fs"], "return an output and let the shell do it"),
    (&["std", "process"], "return an output and let the shell do it"),
    (&["std", "env"], "take it as an argument"),
    (&["std", "time", "Instant"], "use the newtypes of annals-ids"),
    (&["std", "time", "SystemTime"], "use the newtypes of annals-ids"),
    (&["HashMap"], "its order differs from run to run: use BTreeMap"),
    (&["HashSet"], "its order differs from run to run: use BTreeSet"),
    (&["RandomState"], "every process seeds it differently"),
    (&["DefaultHasher"], "its algorithm may change: use sha2"),
    (&["rand"], "take dice as an input"),
    (&["tokio"], "a core does not wait"),
];

/// Macros that write to the standard streams.
const BANNED_MACROS: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];

/// Clippy's names for these bans: code that suppresses one of them, with a reason, is exempt here too.
const EXCUSES: [&str; 2] = ["disallowed_types", "disallowed_methods"];

/// Uses of banned paths in a pure crate's source file (`src/`, without its unit tests).
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let Ok(tree) = syn::parse_file(&file.text) else {
        return Vec::new();
    };
    if excused(&tree.attrs) {
        return Vec::new();
    }
    let mut uses = Uses {
        path: &file.path,
        found: Vec::new(),
    };
    uses.visit_file(&tree);
    uses.found.sort();
    uses.found.dedup();
    uses.found
}

struct Uses<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl Uses<'_> {
    fn examine(&mut self, path: &[String], line: usize) {
        let stands_in = |banned: &[&str]| {
            path.windows(banned.len())
                .any(|part| part.iter().zip(banned).all(|(found, ban)| found == ban))
        };
        if let Some((banned, reason)) = BANNED.iter().find(|(banned, _)| stands_in(banned)) {
            self.found.push(Violation::at(
                self.path,
                line,
                format!("{}: {reason}", banned.join("::")),
            ));
        }
    }

    fn examine_use(&mut self, tree: &UseTree, mut above: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                self.examine_use(&path.tree, above);
            }
            UseTree::Name(name) => {
                above.push(name.ident.to_string());
                self.examine(&above, name.ident.span().start().line);
            }
            UseTree::Rename(rename) => {
                above.push(rename.ident.to_string());
                self.examine(&above, rename.ident.span().start().line);
            }
            UseTree::Glob(glob) => self.examine(&above, glob.star_token.span.start().line),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.examine_use(item, above.clone())),
        }
    }

    /// A macro body is only tokens: paths in it are found by their colons.
    fn examine_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut joined = false;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if !joined {
                        self.examine(&std::mem::take(&mut path), line);
                    }
                    line = ident.span().start().line;
                    path.push(ident.to_string());
                    joined = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => joined = !path.is_empty(),
                TokenTree::Group(group) => {
                    joined = false;
                    self.examine_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => joined = false,
            }
        }
        self.examine(&path, line);
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = item_attributes(item);
        if !is_test(attributes) && !excused(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !excused(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !excused(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.examine_use(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.examine(&names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = call.path.segments.last()
            && BANNED_MACROS.iter().any(|banned| name.ident == banned)
        {
            let line = name.ident.span().start().line;
            self.found.push(Violation::at(
                self.path,
                line,
                format!("{}!: return the text instead", name.ident),
            ));
        }
        self.examine_tokens(call.tokens.clone());
    }
}

fn excused(attributes: &[Attribute]) -> bool {
    EXCUSES.iter().any(|lint| switches_off(attributes, lint))
}

/// `#[cfg(test)]` and `#[test]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    })
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Violation> {
        check(&SourceFile::new("schema/a/src/lib.rs", text))
    }

    #[test]
    fn each_use_of_an_impure_module_is_found() {
        for bad in [
            "fn a() { let b = std::time::Instant::now(); }",
            "fn a() { let b = Instant::now(); }",
            "use std::time::{Duration, SystemTime};",
            "use std::{fmt, thread};",
            "use std::net::TcpStream as T;",
            "use std::fs::*;",
            "fn a() { std::process::exit(1) }",
            "fn a(b: HashMap<u8, u8>) {}",
            "struct A { b: std::collections::HashSet<u8> }",
            "fn a() { let b = vec![1, std::env::var(\"X\").len()]; }",
            "fn a() { assert!(x.y(Instant::now())); }",
            "fn a() { println!(\"hello\"); }",
            "fn a() -> u8 { rand::random() }",
            "mod deep { impl A { fn b(&self) { tokio::spawn(c); } } }",
        ] {
            assert_eq!(found(bad).len(), 1, "{bad}: {:?}", found(bad));
        }
    }

    #[test]
    fn tests_and_exceptions_with_a_reason_are_accepted() {
        for fine in [
            "#[cfg(test)] mod tests { use std::fs; }",
            "#[allow(clippy::disallowed_types, reason = \"looked up, never iterated\")] use std::collections::HashMap;",
            "use std::time::Duration; use std::collections::BTreeMap; use std::net::SocketAddr;",
            "fn a() { let random = thread; brand::b(); }",
        ] {
            assert_eq!(found(fine), [], "{fine}");
        }
        assert_eq!(
            found("#[allow(clippy::disallowed_types)] use std::collections::HashMap;").len(),
            1,
            "no reason given"
        );
        assert_eq!(
            found("#[allow(dead_code, reason = \"of no use here\")] use std::fs;").len(),
            1,
            "another lint"
        );
    }
}
