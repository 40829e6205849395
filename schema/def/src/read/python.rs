//! The little of Python's notation that defaults are written in: lists, tuples, numbers and quoted strings.

use crate::data_type::MAX_TYPE_DEPTH;

/// A value as it is written.
#[derive(Debug, PartialEq)]
pub(super) enum Literal {
    /// A word or a number.
    Word(String),
    /// A quoted string.
    Text(String),
    /// `[…]` or `(…)`.
    List(Vec<Literal>),
}

/// The value that the whole text notes, if it is one.
pub(super) fn parse(text: &str) -> Option<Literal> {
    let mut rest = text.trim_start();
    let literal = take(&mut rest, 0)?;
    rest.trim().is_empty().then_some(literal)
}

fn take(rest: &mut &str, depth: usize) -> Option<Literal> {
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        '[' | '(' if depth < MAX_TYPE_DEPTH => {
            *rest = &rest[1..];
            take_list(rest, if first == '[' { ']' } else { ')' }, depth + 1)
        }
        '\'' | '"' => {
            let (text, behind) = rest[1..].split_once(first)?;
            *rest = behind;
            Some(Literal::Text(text.to_owned()))
        }
        _ => {
            let end = rest.find([',', ']', ')', '[', '(']).unwrap_or(rest.len());
            let word = rest[..end].trim();
            *rest = &rest[end..];
            (!word.is_empty()).then(|| Literal::Word(word.to_owned()))
        }
    }
}

fn take_list(rest: &mut &str, close: char, depth: usize) -> Option<Literal> {
    let mut items = Vec::new();
    loop {
        *rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(close) {
            *rest = behind;
            return Some(Literal::List(items));
        }
        items.push(take(rest, depth)?);
        *rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => *rest = behind,
            None if rest.starts_with(close) => {}
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_nest() {
        let word = |text: &str| Literal::Word(text.to_owned());
        let pair = Literal::List(vec![word("2"), Literal::Text("a, b".to_owned())]);
        assert_eq!(parse("[ 1, (2, 'a, b'), ]"), Some(Literal::List(vec![word("1"), pair])));
        assert_eq!(parse("[]"), Some(Literal::List(Vec::new())));
        assert_eq!(parse("3.5 m"), Some(word("3.5 m")));
        for wrong in ["", "[1", "[1]]", "(1]", "[1 (2)]", "'a", "[,]"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
