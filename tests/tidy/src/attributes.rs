//! Each suppressed lint states its reason.

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta, Token};

use crate::Violation;
use crate::repository::SourceFile;

/// Minimum length of a reason, letters.
const SHORTEST_REASON: usize = 8;

/// `allow` and `expect` attributes without a reason, also inside `cfg_attr`.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let Ok(tree) = syn::parse_file(&file.text) else {
        return Vec::new();
    };
    let mut attributes = Attributes {
        path: &file.path,
        found: Vec::new(),
    };
    attributes.visit_file(&tree);
    attributes.found
}

/// Whether one of these attributes suppresses `lint`, with the reason that [`check`] requires.
pub fn switches_off(attributes: &[Attribute], lint: &str) -> bool {
    attributes
        .iter()
        .filter(|attribute| is_switch(&attribute.meta))
        .any(|attribute| {
            parts(&attribute.meta)
                .iter()
                .any(|part| part.path().segments.last().is_some_and(|last| last.ident == lint))
                && has_reason(&attribute.meta)
        })
}

struct Attributes<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl Attributes<'_> {
    fn examine(&mut self, meta: &Meta) {
        if meta.path().is_ident("cfg_attr") {
            for inner in parts(meta) {
                self.examine(&inner);
            }
        } else if is_switch(meta) && !has_reason(meta) {
            let line = meta
                .path()
                .segments
                .first()
                .map_or(0, |first| first.ident.span().start().line);
            self.found.push(Violation::at(
                self.path,
                line,
                "a lint is suppressed without a reason = \"…\"",
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Attributes<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.examine(&attribute.meta);
        visit::visit_attribute(self, attribute);
    }
}

fn is_switch(meta: &Meta) -> bool {
    meta.path().is_ident("allow") || meta.path().is_ident("expect")
}

fn has_reason(meta: &Meta) -> bool {
    parts(meta).iter().any(|part| match part {
        Meta::NameValue(pair) if pair.path.is_ident("reason") => match &pair.value {
            Expr::Lit(literal) => {
                matches!(&literal.lit, Lit::Str(text) if text.value().trim().len() >= SHORTEST_REASON)
            }
            _ => false,
        },
        _ => false,
    })
}

/// The items between the parentheses.
fn parts(meta: &Meta) -> Vec<Meta> {
    match meta {
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .map(|parts| parts.into_iter().collect())
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&SourceFile::new("a.rs", text)).len()
    }

    #[test]
    fn a_suppressed_lint_without_a_reason_is_found_anywhere() {
        for bad in [
            "#![allow(dead_code)]",
            "#[allow(dead_code)] fn a() {}",
            "#[expect(clippy::unwrap_used)] mod a {}",
            "#[cfg_attr(test, allow(dead_code))] fn a() {}",
            "fn a() { #[allow(unused)] let b = 1; }",
            "struct A { #[allow(dead_code)] b: u8 }",
            "#[allow(dead_code, reason = \"\")] fn a() {}",
        ] {
            assert_eq!(found(bad), 1, "{bad}");
        }
    }

    #[test]
    fn a_suppressed_lint_with_a_reason_is_accepted() {
        assert_eq!(
            found("#[allow(dead_code, reason = \"read by the debugger only\")] fn a() {}"),
            0
        );
        assert_eq!(found("#[derive(Debug)] #[must_use] struct A;"), 0);
    }
}
