//! The behaviour reference: every function that behaviour can reach is listed on the first page of `annals-game`'s
//! documentation, and has an example that the documentation tests run.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta, Visibility};

use crate::Violation;
use crate::repository::SourceFile;

/// The page with the list.
const PAGE: &str = "services/game/src/lib.rs";

/// Where behaviour's functions are.
const FILES: &[&str] = &[
    "services/game/src/testing.rs",
    "services/node/src/behaviour.rs",
    "services/node/src/context.rs",
    "services/node/src/context/",
    "services/node/src/ghost_view.rs",
    "services/node/src/outbound.rs",
    "services/node/src/output.rs",
    "services/node/src/teleport.rs",
    "services/node/src/typed/",
];

/// Types whose public functions behaviour calls, traits that it implements, and the enum of its requests.
const TYPES: &[&str] = &[
    "ArrayEdit",
    "Behaviour",
    "Caller",
    "Context",
    "GhostView",
    "Later",
    "Recipients",
    "Request",
    "Returned",
    "Spot",
    "TestRealm",
    "ValueEdit",
    "Wait",
];

/// Functions without a type that behaviour calls. The others of their files are called by generated code.
const FUNCTIONS: &[&str] = &["read_answer", "returned"];

/// Functions and variants that are not listed, or have no example.
pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![Violation::of(
            PAGE,
            "does not exist, and should list behaviour's functions",
        )];
    };
    let is_meant = |file: &&SourceFile| FILES.iter().any(|path| file.path.starts_with(path));
    let mut found = Vec::new();
    let mut types = BTreeSet::new();
    for file in files.iter().filter(is_meant) {
        let Ok(tree) = syn::parse_file(&file.text) else {
            found.push(Violation::of(&file.path, "does not parse as Rust"));
            continue;
        };
        let mut surface = Surface {
            path: &file.path,
            page: &page.text,
            types: &mut types,
            found: &mut found,
        };
        surface.visit_file(&tree);
    }
    let gone = TYPES.iter().filter(|name| !types.contains(**name));
    found.extend(
        gone.map(|name| Violation::of(PAGE, format!("tests/tidy/src/reference.rs names {name}, which is gone"))),
    );
    found
}

struct Surface<'a> {
    path: &'a str,
    page: &'a str,
    types: &'a mut BTreeSet<String>,
    found: &'a mut Vec<Violation>,
}

impl Surface<'_> {
    fn report(&mut self, name: &syn::Ident, what: String) {
        self.found
            .push(Violation::at(self.path, name.span().start().line, what));
    }

    /// Whether the page has a link that ends so.
    fn expect_listed(&mut self, name: &syn::Ident, item: &str) {
        if !self.page.contains(&format!("::{item})")) {
            self.report(
                name,
                format!("{item} is not in the behaviour reference: list it in {PAGE}"),
            );
        }
    }

    fn expect_example(&mut self, name: &syn::Ident, item: &str, attributes: &[Attribute]) {
        let lines: Vec<String> = attributes.iter().filter_map(line).collect();
        let fence = |line: &&String| matches!(line.trim(), "```" | "```no_run" | "```should_panic");
        if lines.iter().filter(fence).count() < 2 {
            self.report(
                name,
                format!("{item} has no example: add one that compiles to its documentation"),
            );
        }
    }

    fn function(&mut self, of: &str, name: &syn::Ident, attributes: &[Attribute]) {
        let item = format!("{of}::{name}");
        self.expect_listed(name, &item);
        self.expect_example(name, &item, attributes);
    }
}

/// A line of documentation.
fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(literal) if pair.path.is_ident("doc") => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Surface<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let syn::Type::Path(of) = &*item.self_ty else { return };
        let of = of.path.segments.last().map(|segment| segment.ident.to_string());
        let Some(of) = of.filter(|of| item.trait_.is_none() && TYPES.contains(&of.as_str())) else {
            return;
        };
        self.types.insert(of.clone());
        // `Request::entity` and the like are for the core, which executes requests.
        if of == "Request" {
            return;
        }
        for part in &item.items {
            if let syn::ImplItem::Fn(function) = part
                && matches!(function.vis, Visibility::Public(_))
            {
                self.function(&of, &function.sig.ident, &function.attrs);
            }
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let of = item.ident.to_string();
        if !TYPES.contains(&of.as_str()) {
            return;
        }
        self.types.insert(of.clone());
        for part in &item.items {
            if let syn::TraitItem::Fn(function) = part {
                self.function(&of, &function.sig.ident, &function.attrs);
            }
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        if item.ident != "Request" {
            return;
        }
        self.expect_example(&item.ident, "Request", &item.attrs);
        for variant in &item.variants {
            self.expect_listed(&variant.ident, &format!("Request::{}", variant.ident));
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let name = item.sig.ident.to_string();
        if FUNCTIONS.contains(&name.as_str()) {
            self.expect_listed(&item.sig.ident, &name);
            self.expect_example(&item.sig.ident, &name, &item.attrs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "/// Does.\n///\n/// ```\n/// it();\n/// ```\n";

    /// What is found about a function with this documentation, on a page with this text.
    fn violations(page: &str, docs: &str) -> Vec<String> {
        let all = TYPES.iter().map(|name| match *name {
            "Request" | "Context" => String::new(),
            name => format!("impl {name} {{}}\n"),
        });
        let text = format!(
            "{}{EXAMPLE}pub enum Request {{ Jump }}\nimpl Request {{}}\nimpl Context<'_> {{\n{docs}pub fn jump(&self) {{}}\n\
             pub(crate) fn hidden(&self) {{}}\n}}\n",
            all.collect::<String>()
        );
        let files = [
            SourceFile::new(PAGE, page),
            SourceFile::new("services/node/src/context/jumps.rs", &text),
        ];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_is_listed_and_has_an_example() {
        const LISTED: &str = "//! [`jump`](node::Context::jump), [`Jump`](node::Request::Jump)\n";
        assert_eq!(violations(LISTED, EXAMPLE), [""; 0]);
        let found = violations("//! [`Jump`](node::Request::Jump)\n", EXAMPLE);
        assert!(
            found.len() == 1 && found[0].contains("Context::jump is not in"),
            "{found:?}"
        );
        let found = violations("//! [`jump`](node::Context::jump)\n", EXAMPLE);
        assert!(
            found.len() == 1 && found[0].contains("Request::Jump is not in"),
            "{found:?}"
        );
        for docs in [
            "/// Does.\n",
            "/// ```ignore\n/// it();\n/// ```\n",
            "/// ```text\n/// it();\n/// ```\n",
        ] {
            let found = violations(LISTED, docs);
            assert!(
                found.len() == 1 && found[0].contains("has no example"),
                "{docs}: {found:?}"
            );
        }
    }

    #[test]
    fn a_type_that_is_gone_is_found() {
        let files = [SourceFile::new(PAGE, "")];
        assert_eq!(check(&files).len(), TYPES.len());
    }
}
