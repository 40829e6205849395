//! Documentation of public items: functions, types and traits of a library say what they do. Fields, variants and private
//! items need no comment that repeats their name.

use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

use crate::Violation;
use crate::repository::SourceFile;

/// Public items without documentation. Files of tests are not checked.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let Ok(tree) = syn::parse_file(&file.text) else {
        return vec![Violation::of(&file.path, "does not parse as Rust")];
    };
    let mut items = Items {
        path: &file.path,
        found: Vec::new(),
    };
    items.visit_file(&tree);
    items.found
}

struct Items<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl Items<'_> {
    fn expect_docs(&mut self, what: &str, name: &syn::Ident, attributes: &[Attribute]) {
        let is_documented = |attribute: &Attribute| attribute.path().is_ident("doc");
        if !attributes.iter().any(is_documented) {
            let line = name.span().start().line;
            self.found.push(Violation::at(
                self.path,
                line,
                format!("the public {what} {name} has no documentation: say what it is for"),
            ));
        }
    }

    fn expect_if_public(&mut self, what: &str, name: &syn::Ident, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) {
            self.expect_docs(what, name, attributes);
        }
    }
}

impl<'ast> Visit<'ast> for Items<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = |attribute: &Attribute| {
            attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
        };
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.expect_if_public("function", &item.sig.ident, &item.vis, &item.attrs);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.expect_if_public("type", &item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.expect_if_public("type", &item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.expect_if_public("type", &item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.expect_if_public("constant", &item.ident, &item.vis, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.expect_if_public("trait", &item.ident, &item.vis, &item.attrs);
        if matches!(item.vis, Visibility::Public(_)) {
            for part in &item.items {
                if let syn::TraitItem::Fn(function) = part {
                    self.expect_docs("method", &function.sig.ident, &function.attrs);
                }
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_some() {
            return;
        }
        for part in &item.items {
            if let syn::ImplItem::Fn(function) = part {
                self.expect_if_public("method", &function.sig.ident, &function.vis, &function.attrs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> Vec<String> {
        let file = SourceFile::new("schema/def/src/lib.rs", text);
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn public_items_need_documentation_and_fields_do_not() {
        let documented = "/// A.\npub struct A { pub b: u8 }\nimpl A {\n /// B.\n pub fn b(&self) {}\n fn c(&self) {}\n}\n\
                          impl Drop for A { fn drop(&mut self) {} }\nfn d() {}\npub(crate) fn e() {}\n\
                          #[cfg(test)]\nmod tests { pub fn f() {} }\n";
        assert!(violations(documented).is_empty(), "{:?}", violations(documented));
        for undocumented in [
            "pub struct A;",
            "pub enum A {}",
            "pub type A = u8;",
            "pub const A: u8 = 0;",
            "pub fn a() {}",
            "/// A.\npub struct A;\nimpl A { pub fn b(&self) {} }",
            "pub trait A {}",
            "/// A.\npub trait A { fn b(&self); }",
            "mod a { pub fn b() {} }",
        ] {
            assert_eq!(violations(undocumented).len(), 1, "{undocumented}");
        }
    }
}
