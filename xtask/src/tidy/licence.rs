//! Licence expressions as crates state them: `MIT OR Apache-2.0`, `(MIT OR Zlib) AND ISC`, and the
//! old `MIT/Apache-2.0`. Used by `deps.rs`.

/// Returns whether allowed licences alone satisfy the expression.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, at: 0, allowed };
    let is_met = parser.any();
    is_met && parser.at == words.len()
}

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
}

impl Parser<'_> {
    fn any(&mut self) -> bool {
        let mut allowed = self.all();
        while self.take("OR") {
            allowed |= self.all();
        }
        allowed
    }

    fn all(&mut self) -> bool {
        let mut allowed = self.one();
        while self.take("AND") {
            allowed &= self.one();
        }
        allowed
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let allowed = self.any();
            return self.take(")") && allowed;
        }
        let Some(name) = self.words.get(self.at) else {
            self.at += 1; // Past the end: `is_allowed` sees that a name was missing.
            return false;
        };
        self.at += 1;
        if !self.take("WITH") {
            return self.allows(name);
        }
        let exception = self.words.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        self.allows(&format!("{name} WITH {exception}"))
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == name)
    }

    fn take(&mut self, word: &str) -> bool {
        let here = self.words.get(self.at) == Some(&word);
        self.at += usize::from(here);
        here
    }
}

#[cfg(test)]
mod tests {

    fn is_allowed(expression: &str) -> bool {
        let allowed = ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "MIT", "Unicode-3.0"];
        super::is_allowed(expression, &allowed.map(str::to_owned))
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        assert!(is_allowed("MIT"));
        assert!(is_allowed("GPL-3.0 OR MIT"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed("(MIT OR Apache-2.0) AND AGPL-3.0"));
        assert!(!is_allowed("Apache-2.0 WITH Some-other-exception"));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for broken in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "AND"] {
            assert!(!is_allowed(broken), "{broken}");
        }
    }
}
