//! The generated page: well-formed, safe and self-contained.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use annals_authoring::{Description, describe, to_page};
use annals_def::{
    Argument, DataType, Distribution, EntityType, Exposure, Field, Method, Property, Schema, Service, Tree,
    generate_type, split_mix, survey, survey_dir,
};

/// A tag: its name, after a `/` if it is an end tag, and its attributes.
#[derive(Debug)]
struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
}

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "input"];

/// All elements that the page uses.
const ELEMENTS: [&str; 39] = [
    "!DOCTYPE", "a", "b", "body", "code", "dd", "details", "div", "dl", "dt", "h1", "h2", "h3", "head", "header",
    "html", "input", "li", "main", "meta", "nav", "output", "p", "script", "section", "small", "span", "style",
    "summary", "table", "tbody", "td", "th", "thead", "title", "tr", "ul", "kbd", "label",
];

/// All attributes that it uses. None of them can run code.
const ATTRIBUTES: [&str; 25] = [
    "aria-describedby",
    "aria-label",
    "aria-live",
    "autocomplete",
    "charset",
    "class",
    "colspan",
    "content",
    "data-block",
    "data-find",
    "data-item",
    "data-label",
    "data-table",
    "for",
    "hidden",
    "href",
    "html",
    "http-equiv",
    "id",
    "lang",
    "name",
    "open",
    "spellcheck",
    "title",
    "type",
];

/// The tags of a page as a browser reads them, except the contents of the script and the style sheet.
fn tags(page: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (tag, behind) = one_tag(&rest[at + 1..]);
        rest = behind;
        if ["script", "style"].contains(&tag.name.as_str()) {
            let end = rest.find("</").expect("an end tag");
            rest = &rest[end..];
        }
        tags.push(tag);
    }
    tags
}

fn one_tag(text: &str) -> (Tag, &str) {
    let end = text.find(|c: char| c.is_whitespace() || c == '>').expect("a whole tag");
    let (name, mut rest) = text.split_at(end);
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('>') {
            let name = name.to_owned();
            return (Tag { name, attributes }, behind);
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || "=>".contains(c))
            .expect("a whole tag");
        let (attribute, behind) = rest.split_at(end);
        let (value, behind) = match behind.strip_prefix("=\"") {
            Some(value) => value.split_once('"').expect("a closed value"),
            None => ("", behind),
        };
        assert_eq!(
            attributes.insert(attribute.to_owned(), value.to_owned()),
            None,
            "{attribute} twice"
        );
        rest = behind;
    }
}

/// Checks that apply to every page; returns the tags.
fn check(page: &str) -> Vec<Tag> {
    let tags = tags(page);
    let mut open: Vec<&str> = Vec::new();
    for tag in &tags {
        let name = tag.name.trim_start_matches('/');
        assert!(ELEMENTS.contains(&name), "<{name}> was let in");
        for attribute in tag.attributes.keys() {
            assert!(
                ATTRIBUTES.contains(&attribute.as_str()),
                "{attribute} was let into <{name}>"
            );
        }
        match tag.name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "</{name}> closes another element"),
            None if VOID.contains(&name) || name.starts_with('!') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    let ids: Vec<&String> = tags.iter().filter_map(|tag| tag.attributes.get("id")).collect();
    let unique: BTreeSet<&String> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is there twice");
    for link in tags.iter().filter_map(|tag| tag.attributes.get("href")) {
        let target = link.strip_prefix('#').expect("a link within the page");
        assert!(unique.contains(&target.to_owned()), "{link} leads nowhere");
    }
    for outside in ["http:", "https:", "url(", "@import", "fetch(", "import("] {
        assert!(!page.contains(outside), "{outside} needs something else");
    }
    tags
}

fn sample() -> Description {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    Description::of_survey(&survey_dir(&folder)).expect("the sample world has no errors")
}

#[test]
fn every_type_and_member_has_an_anchor() {
    let description = sample();
    let page = to_page(&description, "sample");
    let tags = check(&page);
    let ids: BTreeSet<&str> = tags
        .iter()
        .filter_map(|tag| tag.attributes.get("id"))
        .map(String::as_str)
        .collect();
    for one in &description.types {
        let name = &one.name;
        assert!(ids.contains(format!("type:{name}").as_str()), "{name}");
        for property in &one.properties {
            assert!(
                ids.contains(format!("type:{name}:{}", property.name).as_str()),
                "{}",
                property.name
            );
        }
        for (part, methods) in [
            ("base", &one.base_methods),
            ("cell", &one.cell_methods),
            ("client", &one.client_methods),
        ] {
            for method in methods {
                assert!(
                    ids.contains(format!("type:{name}:{part}:{}", method.name).as_str()),
                    "{}",
                    method.name
                );
            }
        }
    }
    for alias in &description.aliases {
        assert!(ids.contains(format!("alias:{}", alias.name).as_str()), "{}", alias.name);
    }
    for part in [
        "object:PatrolNode:wait",
        "definition:interface:Combat",
        "overview",
        "search",
    ] {
        assert!(ids.contains(part), "{part}");
    }
    for said in [
        "A player in the world.",
        "How somebody looks.",
        "Who can be hurt.",
        "MEDIUM <small>100 m",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn members_are_found_by_name_type_flag_receiver_and_advice() {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    let share = "<!-- Of the loot. --> <share> <Type> FLOAT64 </Type> <Flags> OWN_CLIENT </Flags> </share>";
    tree.insert(
        "entity_defs/Avatar.def",
        format!("<root> <Properties>\n{share} </Properties> </root>"),
    );
    let page = to_page(&Description::of_survey(&survey(&tree)).expect("no errors"), "world");
    let tags = check(&page);
    let share = tags
        .iter()
        .find(|tag| tag.attributes.get("id").is_some_and(|id| id == "type:Avatar:share"));
    let find = &share.expect("there").attributes["data-find"];
    for word in [
        "avatar",
        "share",
        "float64",
        "own_client",
        "own client",
        "lint",
        "d0702",
        "fixed",
    ] {
        assert!(find.contains(&word.to_lowercase()), "{word} does not find {find}");
    }
    assert_eq!(find, &find.to_lowercase());
    assert!(
        page.contains("<b>D0702</b> <code>share</code> is sent to clients with 64 bits"),
        "advice is shown"
    );
}

/// Texts that would inject markup or scripts if the page did not escape them.
const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</code></td></table><h1>",
    "--><!-- ]]> &lt;b&gt; `<i>` {…}",
    "javascript:alert(1) \u{202e}\u{0}",
];

#[test]
fn file_contents_are_escaped_in_the_page() {
    for (at, hostile) in HOSTILE.into_iter().enumerate() {
        let dict = DataType::FixedDict(annals_def::FixedDict::of(vec![Field::of(hostile, DataType::Int8)]).into());
        let mut one = EntityType::new(hostile);
        one.temp_properties.push(hostile.to_owned());
        let mut property = Property::new(hostile, dict, Distribution::AllClients);
        property.persistent = true;
        one.properties.push(property);
        let mut text = Property::new("text", DataType::Unicode, Distribution::Base);
        text.default = annals_def::Value::Unicode(hostile.to_owned());
        one.properties.push(text);
        let mut method = Method::new(
            hostile,
            vec![Argument::new(hostile, DataType::UserType(hostile.to_owned()))],
        );
        method.exposed = Exposure::AllClients;
        one.cell_methods.push(method.clone());
        let service = Service {
            name: hostile.to_owned(),
            methods: vec![method],
        };
        let mut description = describe(&Schema::new(vec![one], vec![service], Vec::new()));
        description.aliases.clear();
        check(&to_page(&description, hostile));
        let mut tree = Tree::new();
        tree.insert("entities.xml", "<root> <Avatar/> </root>");
        let comment = hostile.replace("--", "- -");
        let alias = format!("<root>\n<!-- {comment} -->\n<GOLD> UINT32 </GOLD> </root>");
        tree.insert("entity_defs/alias.xml", alias);
        tree.insert(
            "entity_defs/Avatar.def",
            format!("<!-- {comment} -->\n<root> <Properties>\n<!-- {comment} -->\n<hp> <Type> UINT8 </Type> <Flags> BASE </Flags> </hp> </Properties> </root>"),
        );
        let description = Description::of_survey(&survey(&tree)).expect("no errors");
        let is_kept = description.aliases[0].documentation.is_some();
        assert_eq!(
            is_kept,
            !comment.starts_with('<'),
            "comments are shown unless they hide elements: {at}"
        );
        check(&to_page(&description, hostile));
    }
}

#[test]
fn only_the_own_script_and_style_sheet_are_allowed() {
    let page = to_page(&sample(), "sample");
    let policy = check(&page)
        .into_iter()
        .find(|tag| tag.attributes.contains_key("http-equiv"))
        .expect("a policy")
        .attributes["content"]
        .clone();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(
        policy.contains("script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(
        (page.matches("<script>").count(), page.matches("<style>").count()),
        (1, 1)
    );
    assert_eq!(page.matches(" style=").count(), 0, "a style in a tag would be refused");
}

/// Maximum bytes of a page without its members, and maximum bytes per member on average.
const FRAME: usize = 32_000;
const MEMBER: usize = 2_500;

#[test]
fn the_page_of_a_large_world_is_bounded() {
    let seed = 0x0d13;
    let mut dice = split_mix(seed);
    let mut types = Vec::new();
    for number in 0..40 {
        let mut one = EntityType::new(format!("Type{number}"));
        for at in 0..50 {
            let distribution = Distribution::ALL[dice() as usize % Distribution::ALL.len()];
            one.properties.push(Property::new(
                format!("p{at}"),
                generate_type(4, &mut dice),
                distribution,
            ));
        }
        types.push(one);
    }
    let description = describe(&Schema::new(types, Vec::new(), Vec::new()));
    let page = to_page(&description, "large");
    check(&page);
    assert!(
        page.len() < FRAME + 40 * 50 * MEMBER,
        "seed {seed}: {} bytes",
        page.len()
    );
    let small = to_page(&describe(&Schema::new(Vec::new(), Vec::new(), Vec::new())), "empty");
    check(&small);
    assert!(small.len() < FRAME, "{} bytes", small.len());
}
