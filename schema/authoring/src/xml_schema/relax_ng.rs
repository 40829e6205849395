//! The grammar as RELAX NG, in XML syntax.

use annals_def::grammar::{BOOLEANS, Content, Dialect, Occurs, Tag, Text, Word};

use super::{Element, Patterns, flag_words, in_any_case};

/// The name of the pattern for ignored content.
const ANYTHING: &str = "any-content";

/// The schema of a kind of file.
pub(super) fn schema(patterns: &Patterns) -> Element {
    let root = &patterns.named[0];
    // The file may say where its schema is.
    let location = |name: &str| Element::new("optional").child(Element::new("attribute").with("name", name));
    let start = Element::new("element")
        .child(Element::new("anyName"))
        .child(location("xsi:schemaLocation"))
        .child(location("xsi:noNamespaceSchemaLocation"))
        .child(reference(&root.1));
    Element::new("grammar")
        .with("xmlns", "http://relaxng.org/ns/structure/1.0")
        .with("xmlns:a", "http://relaxng.org/ns/compatibility/annotations/1.0")
        .with("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
        .with("datatypeLibrary", "http://www.w3.org/2001/XMLSchema-datatypes")
        .child(Element::new("start").child(start))
        .children(patterns.named.iter().map(|(content, name)| {
            Element::new("define")
                .with("name", &**name)
                .children(pattern(patterns, content))
        }))
        .child(any_content())
}

fn reference(name: &str) -> Element {
    Element::new("ref").with("name", name)
}

/// Any elements, attributes and text, nested.
fn any_content() -> Element {
    let attribute = Element::new("attribute").child(Element::new("anyName"));
    let element = Element::new("element")
        .child(Element::new("anyName"))
        .child(reference(ANYTHING));
    let choice = Element::new("choice")
        .child(attribute)
        .child(element)
        .child(Element::new("text"));
    Element::new("define")
        .with("name", ANYTHING)
        .child(Element::new("zeroOrMore").child(choice))
}

/// The RELAX NG pattern of a content.
fn pattern(patterns: &Patterns, content: &Content) -> Vec<Element> {
    if content.text == Text::Anything || content.text == Text::Value {
        return vec![reference(ANYTHING)];
    }
    let tags = patterns.tags(content);
    if let Some(named) = content.named {
        return vec![names(patterns, &tags, named.content)];
    }
    if tags.is_empty() {
        let attributes = content.attributes.iter().map(|attribute| {
            let value = Element::new("attribute")
                .with("name", attribute.name)
                .child(documentation(attribute.says))
                .child(any_case(BOOLEANS));
            Element::new("optional").child(value)
        });
        return attributes.chain([text(patterns.dialect, content.text)]).collect();
    }
    let fields = tags.iter().map(|tag| {
        let element = element(patterns, tag);
        match tag.occurs {
            Occurs::Needed => element,
            Occurs::Many => Element::new("zeroOrMore").child(element),
            Occurs::Once | Occurs::Unused | Occurs::Misplaced => Element::new("optional").child(element),
        }
    });
    let fields = Element::new("interleave").children(fields);
    if patterns.is_mixed(content) {
        vec![Element::new("mixed").child(fields)]
    } else {
        vec![fields]
    }
}

fn element(patterns: &Patterns, tag: &Tag) -> Element {
    Element::new("element")
        .with("name", tag.name)
        .child(documentation(tag.says))
        .child(reference(patterns.name(tag.content)))
}

/// Elements of any name except those of the tags, and the tags.
fn names(patterns: &Patterns, tags: &[Tag], content: &Content) -> Element {
    let taken = tags.iter().map(|tag| Element::new("name").text(tag.name));
    let any = Element::new("nsName").with("ns", "");
    let any = if tags.is_empty() {
        any
    } else {
        any.child(Element::new("except").children(taken))
    };
    let named = Element::new("element")
        .child(any)
        .child(reference(patterns.name(content)));
    let tagged = tags.iter().map(|tag| element(patterns, tag));
    let choice = Element::new("choice").children(tagged).child(named);
    Element::new("zeroOrMore").child(choice)
}

fn documentation(says: &str) -> Element {
    Element::new("a:documentation").text(says)
}

fn text(dialect: Dialect, text: Text) -> Element {
    let data = |of: &str| Element::new("data").with("type", of);
    let param = |name: &str, value: &str| Element::new("param").with("name", name).text(value);
    let float = |least: f32| {
        let least = param("minInclusive", &least.to_string());
        let most = param("maxInclusive", &f32::MAX.to_string());
        data("float").child(least).child(most)
    };
    let choice = |children: Vec<Element>| Element::new("choice").children(children);
    match text {
        Text::Nothing => Element::new("empty"),
        Text::Boolean => any_case(BOOLEANS),
        Text::BooleanOrNothing => choice(vec![any_case(BOOLEANS), Element::new("empty")]),
        Text::Distance => float(0.0),
        Text::Reach => choice(vec![float(f32::MIN), Element::new("empty")]),
        Text::Integer(low, high) => data("unsignedInt")
            .child(param("minInclusive", &low.to_string()))
            .child(param("maxInclusive", &high.to_string())),
        Text::Word(words) => any_case(words),
        Text::WordOrNothing(words) => choice(words.iter().map(value).chain([Element::new("empty")]).collect()),
        Text::Flags => flags(dialect),
        Text::Type | Text::Value | Text::Name(_) | Text::Free | Text::Anything => {
            data("token").child(param("minLength", "1"))
        }
    }
}

fn value(word: &Word) -> Element {
    Element::new("value").with("type", "token").text(word.name)
}

/// Case-insensitive words, with their usual spelling for completion.
fn any_case(words: &[Word]) -> Element {
    let pattern = |word: &Word| {
        let pattern = Element::new("param")
            .with("name", "pattern")
            .text(&in_any_case(word.name));
        Element::new("data").with("type", "token").child(pattern)
    };
    Element::new("choice")
        .children(words.iter().map(value))
        .children(words.iter().map(pattern))
}

fn flags(dialect: Dialect) -> Element {
    let words = flag_words(dialect);
    match dialect {
        Dialect::BigWorld => Element::new("choice").children(words.iter().map(value)),
        Dialect::KBEngine => any_case(&words),
    }
}
