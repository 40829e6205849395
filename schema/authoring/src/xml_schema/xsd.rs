//! The grammar as XSD 1.0.
//!
//! Authors choose the names of members, which XSD can only describe as "any". But validators check such an element's
//! content against the top-level declarations, where there is one of its name: so the tags of members are declared
//! there if they are capitalised; lower-case names are those of members.

use annals_def::grammar::{BOOLEANS, Content, Dialect, Occurs, Tag, Text, Word};

use super::{Element, Patterns, flag_words, in_any_case};

/// The schema of a kind of file.
pub(super) fn schema(patterns: &Patterns) -> Element {
    let root = &patterns.named[0];
    let global = globals(patterns);
    let declared = global.iter().map(|(tag, contents)| match contents.as_slice() {
        [content] => element(tag, patterns.name(content)),
        _ => one_of(tag, contents, patterns),
    });
    let of_tags = patterns
        .named
        .iter()
        .filter(|(content, _)| !patterns.is_of_members_only(content));
    let definitions = of_tags.map(|(content, name)| definition(patterns, content, name));
    Element::new("xs:schema")
        .with("xmlns:xs", "http://www.w3.org/2001/XMLSchema")
        .child(Element::new("xs:element").with("name", "root").with("type", &*root.1))
        .children(declared)
        .children(definitions)
}

/// The tags in elements of any name, with their possible contents.
fn globals(patterns: &Patterns) -> Vec<(Tag, Vec<&'static Content>)> {
    let mut found: Vec<(Tag, Vec<&'static Content>)> = Vec::new();
    for (content, _) in &patterns.named {
        let beside = if content.named.is_some() {
            patterns.tags(content)
        } else {
            Vec::new()
        };
        let within = content.named.map_or(Vec::new(), |named| patterns.tags(named.content));
        for tag in beside.into_iter().chain(within) {
            if tag.name.starts_with(|first: char| first.is_lowercase()) {
                continue;
            }
            match found.iter_mut().find(|(known, _)| known.name == tag.name) {
                Some((_, contents)) if contents.iter().any(|known| std::ptr::eq(*known, tag.content)) => {}
                Some((_, contents)) => contents.push(tag.content),
                None => found.push((tag, vec![tag.content])),
            }
        }
    }
    found
}

/// An element with one of several contents.
fn one_of(tag: &Tag, contents: &[&Content], patterns: &Patterns) -> Element {
    let is_text = |content: &&Content| content.named.is_none() && patterns.tags(content).is_empty();
    let element = Element::new("xs:element")
        .with("name", tag.name)
        .child(documentation(tag.says));
    if let Some(of_type) = contents.iter().find(|content| content.text == Text::Type) {
        return element_of(element, patterns.name(of_type));
    }
    if contents.iter().all(is_text) {
        let names: Vec<&str> = contents.iter().map(|content| patterns.name(content)).collect();
        let union = Element::new("xs:union").with("memberTypes", names.join(" "));
        return element.child(Element::new("xs:simpleType").child(union));
    }
    element
}

fn element(tag: &Tag, of: &str) -> Element {
    let element = Element::new("xs:element").with("name", tag.name);
    element_of(element, of).child(documentation(tag.says))
}

fn element_of(element: Element, of: &str) -> Element {
    element.with("type", of)
}

fn documentation(says: &str) -> Element {
    let text = Element::new("xs:documentation").text(says);
    Element::new("xs:annotation").child(text)
}

/// The XSD definition of a content.
fn definition(patterns: &Patterns, content: &Content, name: &str) -> Element {
    let complex = || Element::new("xs:complexType").with("name", name);
    let tags = patterns.tags(content);
    if content.text == Text::Anything || content.text == Text::Value {
        let any = complex().with("mixed", "true");
        return any.child(Element::new("xs:sequence").child(any_element("skip")));
    }
    if content.named.is_some() {
        return complex().child(Element::new("xs:sequence").child(any_element("lax")));
    }
    if tags.is_empty() {
        return simple_type(patterns.dialect, content.text).with("name", name);
    }
    let complex = if patterns.is_mixed(content) {
        complex().with("mixed", "true")
    } else {
        complex()
    };
    let child = |tag: &Tag| element(tag, patterns.name(tag.content));
    if tags.iter().any(|tag| tag.occurs == Occurs::Many) {
        let choice = Element::new("xs:choice")
            .with("minOccurs", "0")
            .with("maxOccurs", "unbounded");
        return complex.child(choice.children(tags.iter().map(child)));
    }
    let all = tags.iter().map(|tag| {
        let least = if tag.occurs == Occurs::Needed { "1" } else { "0" };
        Element::new("xs:element")
            .with("name", tag.name)
            .with("type", patterns.name(tag.content))
            .with("minOccurs", least)
            .child(documentation(tag.says))
    });
    complex.child(Element::new("xs:all").children(all))
}

fn any_element(process: &str) -> Element {
    Element::new("xs:any")
        .with("minOccurs", "0")
        .with("maxOccurs", "unbounded")
        .with("processContents", process)
}

fn simple_type(dialect: Dialect, text: Text) -> Element {
    let facet = |name, value: &str| Element::new(name).with("value", value);
    let restriction = |base: &str| Element::new("xs:restriction").with("base", base);
    let simple = |child| Element::new("xs:simpleType").child(child);
    let nothing = || simple(restriction("xs:token").child(facet("xs:length", "0")));
    let union = |members: Vec<Element>| simple(Element::new("xs:union").children(members));
    let float = |least: f32| {
        let (least, most) = (least.to_string(), f32::MAX.to_string());
        let float = restriction("xs:float").child(facet("xs:minInclusive", &least));
        simple(float.child(facet("xs:maxInclusive", &most)))
    };
    match text {
        Text::Nothing => nothing(),
        Text::Boolean => any_case(BOOLEANS),
        Text::BooleanOrNothing => union(vec![nothing(), any_case(BOOLEANS)]),
        Text::Distance => float(0.0),
        Text::Reach => union(vec![float(f32::MIN), nothing()]),
        Text::Integer(low, high) => simple(
            // A widespread validator does not accept blanks around integer types.
            restriction("xs:decimal")
                .child(facet("xs:pattern", "[0-9]+"))
                .child(facet("xs:minInclusive", &low.to_string()))
                .child(facet("xs:maxInclusive", &high.to_string())),
        ),
        Text::Word(words) => any_case(words),
        Text::WordOrNothing(words) => union(vec![nothing(), enumeration(words)]),
        Text::Flags => flags(dialect),
        Text::Type | Text::Value | Text::Name(_) | Text::Free | Text::Anything => {
            simple(restriction("xs:token").child(facet("xs:minLength", "1")))
        }
    }
}

fn enumeration(words: &[Word]) -> Element {
    let value = |word: &Word| {
        Element::new("xs:enumeration")
            .with("value", word.name)
            .child(documentation(word.says))
    };
    let restriction = Element::new("xs:restriction").with("base", "xs:token");
    Element::new("xs:simpleType").child(restriction.children(words.iter().map(value)))
}

/// Case-insensitive words, with their usual spelling for completion.
fn any_case(words: &[Word]) -> Element {
    let pattern = |word: &Word| Element::new("xs:pattern").with("value", in_any_case(word.name));
    let restriction = Element::new("xs:restriction").with("base", "xs:token");
    let others = Element::new("xs:simpleType").child(restriction.children(words.iter().map(pattern)));
    let union = Element::new("xs:union").child(enumeration(words)).child(others);
    Element::new("xs:simpleType").child(union)
}

fn flags(dialect: Dialect) -> Element {
    let words = flag_words(dialect);
    match dialect {
        Dialect::BigWorld => enumeration(&words),
        Dialect::KBEngine => any_case(&words),
    }
}
