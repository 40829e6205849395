//! Suggestions for misspelt names.

/// Longest name that is compared, characters: the work grows with the square.
const MAX_COMPARED: usize = 40;

/// Maximum candidates that are compared.
const MAX_CANDIDATES: usize = 500;

/// The candidate with the fewest single-character edits from `word`, if they are few enough for a typing mistake; the
/// first of equals. Differences in case count little.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let length = word.chars().take(MAX_COMPARED + 1).count();
    if length > MAX_COMPARED {
        return None;
    }
    let limit = length / 3 + 1;
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance between two names: insertion, deletion, replacement and exchange of neighbours each count one.
fn distance(a: &str, b: &str) -> usize {
    if b.len() > MAX_COMPARED * 4 {
        return usize::MAX;
    }
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    if a.len().max(b.len()) > MAX_COMPARED {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let flags = ["ALL_CLIENTS", "OWN_CLIENT", "CELL_PUBLIC", "BASE"];
        assert_eq!(nearest("ALL_CLIENT", flags), Some("ALL_CLIENTS"));
        assert_eq!(nearest("own_client", flags), Some("OWN_CLIENT"));
        assert_eq!(nearest("CELL_PUBILC", flags), Some("CELL_PUBLIC"));
        assert_eq!(nearest("SOMETHING", flags), None);
        assert_eq!(nearest("", flags), None);
        assert_eq!(distance("ab", "ba"), 1);
    }
}
