//! What an unknown name was probably meant to be. Called by `Settings::set` and the command line.

/// The candidate closest to `word`, if one is close enough that a slip explains the difference.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let slips_max = (word.len() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(&word, candidate), candidate))
        .min()
        .filter(|(slips, _)| *slips <= slips_max)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out or replaced to turn `a` into `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let words = ["maxmemory", "maxmemory-policy", "port", "bind"];
        let near = |word| nearest(word, words.into_iter());
        assert_eq!(near("maxmemry"), Some("maxmemory"));
        assert_eq!(near("max_memory_policy"), Some("maxmemory-policy"));
        assert_eq!(near("PORT"), Some("port"));
        assert_eq!(near("prot"), None, "two slips in four letters are one too many");
        assert_eq!(near("bnd"), Some("bind"));
        assert_eq!(near("replication-factor"), None);
    }
}
