//! A page of Markdown: its parts, and the edits that its blocks describe.

/// A part of a page: a fenced block, or the text between two.
#[derive(Debug)]
pub(crate) struct Block<'p> {
    pub(crate) kind: Kind<'p>,
    /// The whole part.
    pub(crate) whole: &'p str,
    /// Its first line.
    pub(crate) head: &'p str,
    /// The text between the fences.
    pub(crate) content: &'p str,
}

/// The kind of a part.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind<'p> {
    /// Text between blocks.
    Text,
    /// A block with XML for a file.
    Xml(Edit<'p>),
    /// Commands.
    Console { needs_realm: bool },
}

/// An edit of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edit<'p> {
    pub(crate) path: &'p str,
    pub(crate) what: What<'p>,
}

/// The kind of an edit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What<'p> {
    Write,
    AddAtEndOf(&'p str),
    PutInsteadOf(&'p str),
    TakeAway(&'p str),
}

/// A command, and its expected output.
#[derive(Debug)]
pub(crate) struct Typed<'p> {
    pub(crate) command: &'p str,
    pub(crate) wanted: Vec<&'p str>,
}

/// The parts of a page; together they are the whole page.
pub(crate) fn blocks(page: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = page;
    let mut caption = "";
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = match rest.strip_prefix("```") {
            Some(inner) => 3 + inner.find("\n```\n").expect("every block has an end") + "\n```\n".len(),
            None => rest.find("\n```").map_or(rest.len(), |at| at + 1),
        };
        let whole;
        (whole, rest) = rest.split_at(length);
        let block = block(whole, caption);
        caption = whole.lines().last().unwrap_or_default();
        Some(block)
    })
}

fn block<'p>(whole: &'p str, caption: &'p str) -> Block<'p> {
    let (head, inner) = whole.split_once('\n').unwrap_or((whole, ""));
    let kind = match head {
        "```console" => Kind::Console { needs_realm: false },
        "```console realm" => Kind::Console { needs_realm: true },
        "```xml" => Kind::Xml(edit(caption).unwrap_or_else(|| panic!("which file is this?\n{caption}\n{whole}"))),
        _ if head.starts_with("```") => panic!("no such block: {head}"),
        _ => Kind::Text,
    };
    Block {
        kind,
        whole,
        head,
        content: inner.strip_suffix("```\n").unwrap_or(inner),
    }
}

/// The edit that a line describes, if it does.
pub(crate) fn edit(line: &str) -> Option<Edit<'_>> {
    let (path, rest) = quoted(line)?;
    let section = |words| rest.strip_prefix(words).and_then(quoted);
    let what = if rest == ":" {
        What::Write
    } else if let Some((section, ":")) = section(", at the end of ") {
        What::AddAtEndOf(section)
    } else if let Some((section, ":")) = section(", instead of ") {
        What::PutInsteadOf(section)
    } else if let Some((section, ".")) = section(", without ") {
        What::TakeAway(section)
    } else {
        return None;
    };
    Some(Edit { path, what })
}

/// The text in back quotes at the beginning, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('`')?.split_once('`')
}

/// The commands of a block.
pub(crate) fn typed(content: &str) -> Vec<Typed<'_>> {
    let mut typed: Vec<Typed<'_>> = Vec::new();
    for line in content.lines() {
        match (line.strip_prefix("$ "), typed.last_mut()) {
            (Some(command), _) => typed.push(Typed {
                command,
                wanted: Vec::new(),
            }),
            (None, Some(typed)) => typed.wanted.push(line),
            (None, None) => panic!("a block begins with a command: {content}"),
        }
    }
    typed
}

/// The file after the edit; `None` if it has no such section.
pub(crate) fn edited(file: &str, what: What<'_>, content: &str) -> Option<String> {
    let (start, end) = match what {
        What::Write => (0, file.len()),
        What::AddAtEndOf(section) => {
            let end = line_of(file, file.find(&format!("</{section}>"))?);
            (end, end)
        }
        What::PutInsteadOf(section) | What::TakeAway(section) => {
            let start = file.find(&format!("<{section}>"))?;
            let close = format!("</{section}>");
            let close = start + file[start..].find(&close)? + close.len();
            (line_of(file, start), close + file[close..].find('\n')? + 1)
        }
    };
    Some([&file[..start], content, &file[end..]].concat())
}

/// The offset at which a line begins.
fn line_of(file: &str, offset: usize) -> usize {
    file[..offset].rfind('\n').map_or(0, |end| end + 1)
}
