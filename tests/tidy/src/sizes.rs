//! Nothing grows until nobody reads it: lines per file and per function, bytes per file.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Violation;
use crate::repository::SourceFile;

/// Lines of a Rust file. Aim for 600.
pub const FILE_LINES: usize = 800;

/// Lines of a function, from its name to its last brace.
pub const FUNCTION_LINES: usize = 70;

/// Bytes of any file but the lock file, which is not ours to shorten.
pub const FILE_BYTES: u64 = 600_000;

/// Files that are too large, and functions that are too long.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    if file.size > FILE_BYTES && file.path != "Cargo.lock" {
        found.push(Violation::of(
            &file.path,
            format!("{} bytes; at most {FILE_BYTES}: does it belong here?", file.size),
        ));
    }
    if !file.has_extension("rs") {
        return found;
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        found.push(Violation::of(
            &file.path,
            format!("{lines} lines; at most {FILE_LINES}: it is more than one thing"),
        ));
    }
    found.extend(long_functions(file));
    found
}

fn long_functions(file: &SourceFile) -> Vec<Violation> {
    let Ok(tree) = syn::parse_file(&file.text) else {
        return vec![Violation::of(&file.path, "is not Rust that can be read")];
    };
    let mut functions = Functions {
        path: &file.path,
        found: Vec::new(),
    };
    functions.visit_file(&tree);
    functions.found
}

struct Functions<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line + 1 - first;
        if lines > FUNCTION_LINES {
            let name = &signature.ident;
            let what = format!("function {name} has {lines} lines; at most {FUNCTION_LINES}: say what its parts do");
            self.found.push(Violation::at(self.path, first, what));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.measure(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(body_lines: usize) -> String {
        format!(
            "/// Says.\n#[inline]\nfn long(\n    a: u8,\n) {{\n{}}}\n",
            "    f(1);\n".repeat(body_lines)
        )
    }

    #[test]
    fn a_long_function_is_caught_wherever_it_stands() {
        // Three lines of signature, one of closing brace.
        let fits = function(FUNCTION_LINES - 4);
        let long = function(FUNCTION_LINES - 3);
        assert_eq!(check(&SourceFile::new("a.rs", &fits)), []);
        for text in [
            long.clone(),
            format!("impl A {{ {long} }}"),
            format!("trait A {{ {long} }}"),
            format!("mod a {{ {long} }}"),
        ] {
            let found = check(&SourceFile::new("a.rs", &text));
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].what.contains("function long has 71 lines"), "{}", found[0]);
        }
    }

    #[test]
    fn a_long_file_is_caught() {
        let text = "// a\n".repeat(FILE_LINES);
        assert_eq!(check(&SourceFile::new("a.rs", &text)), []);
        assert_eq!(check(&SourceFile::new("a.rs", &(text + "// b\n"))).len(), 1);
    }

    #[test]
    fn a_large_file_is_caught_unless_it_is_the_lock_file() {
        let text = "x".repeat(600_001);
        assert_eq!(check(&SourceFile::new("docs/a.svg", &text)).len(), 1);
        assert_eq!(check(&SourceFile::new("Cargo.lock", &text)), []);
    }

    #[test]
    fn what_is_not_rust_is_caught() {
        assert_eq!(check(&SourceFile::new("a.rs", "fn (")).len(), 1);
    }
}
