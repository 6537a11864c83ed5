//! Suggests the intended name for an unknown one. Called by `Settings::set` and the command line.

/// Returns the candidate closest to `word`, if it is close enough for a typing error.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let slips_max = (word.len() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(&word, candidate), candidate))
        .min()
        .filter(|(slips, _)| *slips <= slips_max)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of typing errors that turn `a` into `b`: a letter too many, too few, wrong, or two swapped.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // slips[i][j] is the distance between the first i letters of a and the first j of b.
    let mut slips = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            slips[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let wrong = usize::from(a[i - 1] != b[j - 1]);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let letter = (slips[i - 1][j - 1] + wrong).min(slips[i - 1][j] + 1);
                    let swap = if swapped { slips[i - 2][j - 2] + 1 } else { usize::MAX };
                    letter.min(slips[i][j - 1] + 1).min(swap)
                }
            };
        }
    }
    slips[a.len()][b.len()]
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
        assert_eq!(near("prot"), Some("port"));
        assert_eq!(near("root"), None, "two slips in four letters are one too many");
        assert_eq!(near("bnd"), Some("bind"));
        assert_eq!(near("replication-factor"), None);
    }
}
