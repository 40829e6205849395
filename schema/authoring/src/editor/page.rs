//! An incomplete file during editing: its elements as far as they can be recognised.
//!
//! The compiler's reader stops at the first fault. Here an unclosed element ends where an element around it ends, a
//! start tag without an end is an element by itself, and an end tag that closes nothing is skipped.

use std::ops::Range;

use annals_def::MAX_XML_DEPTH;

/// A file's text and its elements, in the order of their start tags.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    /// Elements nested more deeply than the compiler allows are empty.
    pub(super) nodes: Vec<Node>,
    /// The line starts.
    lines: Vec<usize>,
}

/// An element. All places are bytes of the text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its name in the start tag.
    pub(super) name: Range<usize>,
    /// Its name in the end tag, if it has one.
    pub(super) end_name: Option<Range<usize>>,
    /// The range between its tags.
    pub(super) inner: Range<usize>,
    /// The first text in it, trimmed.
    pub(super) words: Range<usize>,
    /// The position behind its end tag.
    pub(super) end: usize,
    /// The element that contains it.
    pub(super) parent: Option<usize>,
    /// Whether it is self-closing.
    pub(super) is_closed_at_once: bool,
}

/// The syntax at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// The name of a start tag, in an element.
    StartTag {
        within: Option<usize>,
        name: Range<usize>,
        is_finished: bool,
    },
    /// The name of an end tag, in an element.
    EndTag { within: Option<usize>, name: Range<usize> },
    /// The attributes, behind the name of a start tag.
    Attributes { name: Range<usize>, word: Range<usize> },
    /// A word, or nothing, between the tags of an element.
    Words { within: Option<usize>, word: Range<usize> },
    /// A comment.
    Nothing,
}

/// A token of a text.
#[derive(Clone, Debug)]
enum Token {
    Start {
        name: Range<usize>,
        is_closed: bool,
        is_finished: bool,
    },
    End {
        name: Range<usize>,
    },
    Words,
    Other,
}

impl Page {
    pub(super) fn of(text: String) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            lines: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect(),
            nodes: nodes(&text),
            text,
        }
    }

    /// The bytes of `width` characters from a column of a line, both from 1.
    pub(super) fn characters(&self, line: u32, column: u32, width: u32) -> Option<Range<usize>> {
        let line_start = *self.lines.get((line as usize).saturating_sub(1))?;
        let behind = |from: usize, characters: usize| {
            let rest = &self.text[from..];
            let length = rest.char_indices().nth(characters).map_or(rest.len(), |(at, _)| at);
            from + length
        };
        let start = behind(line_start, (column as usize).saturating_sub(1));
        Some(start..behind(start, width as usize))
    }

    pub(super) fn name(&self, node: usize) -> &str {
        &self.text[self.nodes[node].name.clone()]
    }

    /// The first text in an element.
    pub(super) fn words(&self, node: usize) -> &str {
        &self.text[self.nodes[node].words.clone()]
    }

    /// The child elements of an element, or the top-level ones.
    pub(super) fn children(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        let first = parent.map_or(0, |parent| parent + 1);
        let end = parent.map_or(self.text.len(), |parent| self.nodes[parent].end);
        (first..self.nodes.len())
            .take_while(move |&node| self.nodes[node].name.start <= end)
            .filter(move |&node| self.nodes[node].parent == parent)
    }

    /// The child of this name.
    pub(super) fn child(&self, parent: usize, name: &str) -> Option<usize> {
        self.children(Some(parent)).find(|&child| self.name(child) == name)
    }

    /// The innermost element whose tags enclose a place.
    pub(super) fn around(&self, at: usize) -> Option<usize> {
        let holds = |node: &Node| !node.is_closed_at_once && node.inner.start <= at && at <= node.inner.end;
        self.nodes.iter().rposition(holds)
    }

    /// The element whose name, in either tag, is at a place.
    pub(super) fn named_at(&self, at: usize) -> Option<usize> {
        let touches = |name: &Range<usize>| name.start <= at && at <= name.end;
        self.nodes
            .iter()
            .position(|node| touches(&node.name) || node.end_name.as_ref().is_some_and(touches))
    }

    /// The syntax at a place; the start of a character counts as the whole character, the end of the text as what is
    /// behind it.
    pub(super) fn spot(&self, at: usize) -> Spot {
        let text = &self.text;
        let at = text.floor_char_boundary(at);
        for (token, range) in (Tokens { text, at: 0 }) {
            // Directly behind the end of a tag is outside of it; an unfinished tag can continue.
            let is_in = range.start < at && (at < range.end || (at == range.end && !text[..at].ends_with('>')));
            match token {
                Token::Words if range.start <= at && at <= range.end => {
                    // The cursor may be before what begins here.
                    if at == range.end && text[at..].starts_with('<') && range.is_empty() {
                        continue;
                    }
                    let word = word_around(text, at, &range);
                    let within = self.around(at);
                    return Spot::Words { within, word };
                }
                Token::Start { name, is_finished, .. } if is_in => {
                    if at <= name.end {
                        let within = self.around(range.start);
                        return Spot::StartTag {
                            within,
                            name,
                            is_finished,
                        };
                    }
                    let word = word_around(text, at, &(name.end..range.end));
                    return Spot::Attributes { name, word };
                }
                Token::End { name } if is_in => {
                    let within = self.around(range.start);
                    return Spot::EndTag { within, name };
                }
                Token::Other if is_in => return Spot::Nothing,
                _ if range.start > at => break,
                _ => {}
            }
        }
        Spot::Words {
            within: self.around(at),
            word: at..at,
        }
    }
}

/// The word around a place, within a range of a text.
fn word_around(text: &str, at: usize, part: &Range<usize>) -> Range<usize> {
    let is_letter = |c: char| !c.is_whitespace() && !"<>/=\"'".contains(c);
    let before = &text[part.start..at];
    let behind = &text[at..part.end.max(at)];
    let start = before.trim_end_matches(is_letter).len() + part.start;
    let end = at + behind.find(|c| !is_letter(c)).unwrap_or(behind.len());
    start..end
}

fn nodes(text: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (token, range) in (Tokens { text, at: 0 }) {
        match token {
            Token::Start {
                name,
                is_closed,
                is_finished,
            } => {
                let is_closed_at_once = is_closed || !is_finished || open.len() == MAX_XML_DEPTH;
                if name.is_empty() {
                    continue;
                }
                if !is_closed_at_once {
                    open.push(nodes.len());
                }
                let parent = open.iter().rev().find(|&&node| node != nodes.len()).copied();
                nodes.push(Node {
                    name,
                    end_name: None,
                    inner: range.end..range.end,
                    words: range.end..range.end,
                    end: range.end,
                    parent,
                    is_closed_at_once,
                });
            }
            Token::End { name } => {
                let Some(depth) = open
                    .iter()
                    .rposition(|&node| text[nodes[node].name.clone()] == text[name.clone()])
                else {
                    continue;
                };
                for node in open.drain(depth..) {
                    nodes[node].inner.end = range.start;
                    nodes[node].end = range.start;
                    if text[nodes[node].name.clone()] == text[name.clone()] {
                        nodes[node].end_name = Some(name.clone());
                        nodes[node].end = range.end;
                    }
                }
            }
            Token::Words => {
                let Some(&node) = open.last() else { continue };
                let words = text[range.clone()].trim();
                if nodes[node].words.is_empty() && !words.is_empty() {
                    let start = range.start + (text[range.clone()].len() - text[range].trim_start().len());
                    nodes[node].words = start..start + words.len();
                }
            }
            Token::Other => {}
        }
    }
    for node in open {
        nodes[node].inner.end = text.len();
        nodes[node].end = text.len();
    }
    nodes
}

/// The tokens of a text, each beginning where the previous one ends.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let begin = self.at;
        let rest = &self.text[begin..];
        let first = rest.chars().next()?;
        let (token, length) = if first == '<' {
            markup(rest, begin)
        } else {
            (Token::Words, rest.find('<').unwrap_or(rest.len()))
        };
        self.at += length;
        Some((token, begin..self.at))
    }
}

/// The markup at the start of a text, and its length.
fn markup(rest: &str, begin: usize) -> (Token, usize) {
    for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")] {
        if let Some(inner) = rest.strip_prefix(start) {
            let length = inner.find(end).map_or(rest.len(), |at| start.len() + at + end.len());
            return (Token::Other, length);
        }
    }
    let lead = if rest.starts_with("</") { 2 } else { 1 };
    let behind = &rest[lead..];
    let is_end_of_name = |c: char| c.is_whitespace() || "/<>".contains(c);
    let name_length = behind.find(is_end_of_name).unwrap_or(behind.len());
    let name = begin + lead..begin + lead + name_length;
    let inner = &behind[name_length..];
    // A tag without an end before the next tag ends with its line.
    let (length, is_finished) = match end_of_tag(inner) {
        Some(end) => (lead + name_length + end + 1, true),
        None => {
            let end = inner.find(['\n', '<']).unwrap_or(inner.len());
            (lead + name_length + end, false)
        }
    };
    if lead == 2 {
        return (Token::End { name }, length);
    }
    let is_closed = is_finished && rest[..length].ends_with("/>");
    let token = Token::Start {
        name,
        is_closed,
        is_finished,
    };
    (token, length)
}

/// The position of a tag's `>`, if it comes before the next tag.
fn end_of_tag(inner: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (_, '<') => return None,
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of a text, and the position of its `|`.
    fn at_cursor(text: &str) -> (Page, usize) {
        let at = text.find('|').expect("a cursor");
        (Page::of(text.replacen('|', "", 1)), at)
    }

    fn path(page: &Page, mut node: Option<usize>) -> String {
        let mut names = Vec::new();
        while let Some(inner) = node {
            names.push(page.name(inner));
            node = page.nodes[inner].parent;
        }
        names.reverse();
        names.join("/")
    }

    #[test]
    fn half_written_files_have_elements_too() {
        for (text, expected) in [
            ("<a> <b> | </b> </a>", "a/b"),
            ("<a> <b> x | </a>", "a/b"),
            ("<a> <b> x </a> |", ""),
            ("<a> <b|\n <c> </c> </a>", "a"),
            ("<a> </x> <b> | ", "a/b"),
            ("<a> <b/> | </a>", "a"),
            ("<a> <!-- <b> --> | </a>", "a"),
            ("<a> <b attr=\"<\" | </a>", "a"),
            ("<a> <b><c>|</c></b>", "a/b/c"),
            ("<a><", ""),
            ("|", ""),
        ] {
            let text = if text.contains('|') {
                text.to_owned()
            } else {
                format!("{text}|")
            };
            let (page, at) = at_cursor(&text);
            let within = match page.spot(at) {
                Spot::StartTag { within, .. } | Spot::EndTag { within, .. } | Spot::Words { within, .. } => within,
                Spot::Attributes { .. } | Spot::Nothing => page.around(at),
            };
            let expected = if text == "<a><|" { "a" } else { expected };
            assert_eq!(path(&page, within), expected, "{text}");
        }
    }

    #[test]
    fn the_spot_at_the_cursor_is_found() {
        for (text, expected) in [
            ("<a> <Ty|pe> </a>", "start Type true"),
            ("<a> <Ty|\n </a>", "start Ty false"),
            ("<a> <|</a>", "start  false"),
            ("<a> </|", "end "),
            ("<a> </a|>", "end a"),
            ("<a b|c=\"d\"/>", "attribute bc"),
            ("<a> AL|L </a>", "word ALL"),
            ("<a>|</a>", "word "),
            ("<a> | </a>", "word "),
            ("<a> 怪|物 </a>", "word 怪物"),
            ("<!-- | -->", "nothing"),
            ("<a/>|", "word "),
        ] {
            let (page, at) = at_cursor(text);
            let of = |range: &Range<usize>| page.text[range.clone()].to_owned();
            let found = match page.spot(at) {
                Spot::StartTag { name, is_finished, .. } => format!("start {} {is_finished}", of(&name)),
                Spot::EndTag { name, .. } => format!("end {}", of(&name)),
                Spot::Attributes { word, .. } => format!("attribute {}", of(&word)),
                Spot::Words { word, .. } => format!("word {}", of(&word)),
                Spot::Nothing => "nothing".to_owned(),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
