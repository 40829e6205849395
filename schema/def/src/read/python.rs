//! The subset of Python notation used in defaults: lists, tuples, dictionaries, numbers and quoted strings.

use crate::data_type::MAX_TYPE_DEPTH;

/// A literal.
#[derive(Debug, PartialEq)]
pub(super) enum Literal {
    /// A word or a number.
    Word(String),
    /// A quoted string.
    Text(String),
    /// `[…]` or `(…)`.
    List(Vec<Literal>),
    /// `{…}`: keys and values.
    Dict(Vec<(Literal, Literal)>),
}

/// How strictly a text is read as Python.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Lists of words, as designers write them.
    Lists,
    /// An expression: parentheses around one value are not a list, and strings have no significant escapes.
    Expression,
}

/// The value of the whole text, if it is one literal; without dictionaries.
pub(super) fn parse(text: &str) -> Option<Literal> {
    whole(text, Kind::Lists)
}

/// The value of an expression, if it is a literal.
pub(super) fn expression(text: &str) -> Option<Literal> {
    whole(text, Kind::Expression)
}

fn whole(text: &str, kind: Kind) -> Option<Literal> {
    let mut rest = text.trim_start();
    let literal = take(&mut rest, kind, 0)?;
    rest.trim().is_empty().then_some(literal)
}

fn take(rest: &mut &str, kind: Kind, depth: usize) -> Option<Literal> {
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        '[' | '(' if depth < MAX_TYPE_DEPTH => {
            *rest = &rest[1..];
            take_list(rest, kind, if first == '[' { ']' } else { ')' }, depth + 1)
        }
        '{' if kind == Kind::Expression && depth < MAX_TYPE_DEPTH => {
            *rest = &rest[1..];
            take_dict(rest, depth + 1)
        }
        '\'' | '"' => {
            let (text, behind) = rest[1..].split_once(first)?;
            *rest = behind;
            let is_plain = kind == Kind::Lists || !text.contains(['\\', '\n']);
            is_plain.then(|| Literal::Text(text.to_owned()))
        }
        _ => {
            let ends: &[char] = match kind {
                Kind::Lists => &[',', ']', ')', '[', '('],
                Kind::Expression => &[',', ']', ')', '[', '(', '{', '}', ':'],
            };
            let end = rest.find(ends).unwrap_or(rest.len());
            let word = rest[..end].trim();
            *rest = &rest[end..];
            (!word.is_empty()).then(|| Literal::Word(word.to_owned()))
        }
    }
}

fn take_list(rest: &mut &str, kind: Kind, close: char, depth: usize) -> Option<Literal> {
    let mut items = Vec::new();
    let mut ends_with_comma = true;
    while !closes(rest, close) {
        items.push(take(rest, kind, depth)?);
        ends_with_comma = takes_comma(rest, close)?;
    }
    if kind == Kind::Expression && close == ')' && items.len() == 1 && !ends_with_comma {
        return items.pop();
    }
    Some(Literal::List(items))
}

fn take_dict(rest: &mut &str, depth: usize) -> Option<Literal> {
    let mut items = Vec::new();
    while !closes(rest, '}') {
        let key = take(rest, Kind::Expression, depth)?;
        *rest = rest.trim_start().strip_prefix(':')?;
        items.push((key, take(rest, Kind::Expression, depth)?));
        takes_comma(rest, '}')?;
    }
    Some(Literal::Dict(items))
}

/// Whether a list ends here.
fn closes(rest: &mut &str, close: char) -> bool {
    *rest = rest.trim_start();
    let behind = rest.strip_prefix(close);
    *rest = behind.unwrap_or(rest);
    behind.is_some()
}

/// Whether a comma follows an item; required if the list continues.
fn takes_comma(rest: &mut &str, close: char) -> Option<bool> {
    *rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(behind) => *rest = behind,
        None => return rest.starts_with(close).then_some(false),
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Literal {
        Literal::Word(text.to_owned())
    }

    #[test]
    fn lists_nest() {
        let pair = Literal::List(vec![word("2"), Literal::Text("a, b".to_owned())]);
        assert_eq!(parse("[ 1, (2, 'a, b'), ]"), Some(Literal::List(vec![word("1"), pair])));
        assert_eq!(parse("[]"), Some(Literal::List(Vec::new())));
        assert_eq!(parse("3.5 m"), Some(word("3.5 m")));
        for wrong in ["", "[1", "[1]]", "(1]", "[1 (2)]", "'a", "[,]"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }

    #[test]
    fn an_expression_has_dictionaries_and_brackets_that_only_group() {
        let list = |items: Vec<Literal>| Some(Literal::List(items));
        assert_eq!(expression("(1)"), Some(word("1")));
        assert_eq!(expression("(1,)"), list(vec![word("1")]));
        assert_eq!(expression("()"), list(Vec::new()));
        assert_eq!(parse("(1)"), list(vec![word("1")]));
        let text = |text: &str| Literal::Text(text.to_owned());
        let items = vec![(text("a"), word("1")), (text("b"), Literal::List(Vec::new()))];
        assert_eq!(expression("{'a': 1, \"b\": [],}"), Some(Literal::Dict(items)));
        for wrong in ["{'a'}", "{'a': 1", "{1: }", "'a\\n'", "{", "{,}"] {
            assert_eq!(expression(wrong), None, "{wrong}");
        }
    }
}
