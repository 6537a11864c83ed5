//! Rust source reduced to its code: comments and the insides of literals become spaces, so that
//! a word in a string is not mistaken for a use. Offsets and lines stay as they were.
//!
//! This is a scanner for our own formatted code, not a parser of all of Rust.

/// Returns the source with comments and the insides of literals blanked out; its length stays the same.
pub(super) fn only(source: &str) -> String {
    let mut scanner = Scanner { bytes: source.as_bytes().to_vec(), at: 0 };
    while scanner.at < scanner.bytes.len() {
        scanner.step();
    }
    String::from_utf8(scanner.bytes).expect("whole literals and comments were blanked")
}

/// Blanks out modules and items marked `#[cfg(test)]` as well.
pub(super) fn without_tests(code: &str) -> String {
    let mut kept = code.to_owned();
    while let Some(start) = kept.find("#[cfg(test)]") {
        let end = item_end(&kept, start + "#[cfg(test)]".len());
        let blank: String = kept[start..end].chars().map(blank_char).collect();
        kept.replace_range(start..end, &blank);
    }
    kept
}

/// Returns the end of the item that begins at `start`: after its braces, or after its semicolon.
pub(super) fn item_end(code: &str, start: usize) -> usize {
    let mut nested = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' | b'{' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b'}' if nested <= 1 => return offset + 1,
            b'}' => nested -= 1,
            b';' if nested == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the line, counted from 1, of this offset.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn blank_char(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

struct Scanner {
    bytes: Vec<u8>,
    at: usize,
}

impl Scanner {
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"//") {
            let end = self.find(b"\n", self.at);
            self.blank_to(end);
        } else if rest.starts_with(b"/*") {
            let end = self.block_comment_end();
            self.blank_to(end);
        } else if rest[0] == b'"' {
            self.string();
        } else if let Some(hashes) = self.raw_string_hashes() {
            self.raw_string(hashes);
        } else if rest[0] == b'\'' {
            self.quote();
        } else {
            self.at += 1;
        }
    }

    /// Returns the position of `what` at or after `from`, or the end of the source.
    fn find(&self, what: &[u8], from: usize) -> usize {
        let mut windows = self.bytes[from.min(self.bytes.len())..].windows(what.len());
        windows.position(|window| window == what).map_or(self.bytes.len(), |found| from + found)
    }

    fn blank_to(&mut self, end: usize) {
        let end = end.min(self.bytes.len());
        for byte in &mut self.bytes[self.at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        self.at = end;
    }

    fn block_comment_end(&self) -> usize {
        let mut depth = 0;
        let mut at = self.at;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                at += 2;
            } else {
                at += 1;
            }
            if depth == 0 {
                break;
            }
        }
        at
    }

    fn string(&mut self) {
        let mut end = self.at + 1;
        while end < self.bytes.len() && self.bytes[end] != b'"' {
            end += if self.bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        self.blank_to(end);
        self.at += 1;
    }

    /// Returns the number of hashes if a raw string begins here: `r"`, `r#"`, `br##"` and the like.
    fn raw_string_hashes(&self) -> Option<usize> {
        let inside_word = self.at > 0 && is_word_byte(self.bytes[self.at - 1]);
        let b_before = self.at > 0
            && matches!(self.bytes[self.at - 1], b'b' | b'c')
            && (self.at < 2 || !is_word_byte(self.bytes[self.at - 2]));
        if self.bytes[self.at] != b'r' || (inside_word && !b_before) {
            return None;
        }
        let hashes = self.bytes[self.at + 1..].iter().take_while(|byte| **byte == b'#').count();
        (self.bytes.get(self.at + 1 + hashes) == Some(&b'"')).then_some(hashes)
    }

    fn raw_string(&mut self, hashes: usize) {
        let close: Vec<u8> = [&b"\""[..], &vec![b'#'; hashes]].concat();
        self.at += 2 + hashes;
        let end = self.find(&close, self.at);
        self.blank_to(end);
        self.at = (self.at + close.len()).min(self.bytes.len());
    }

    /// Scans a character literal or a lifetime.
    fn quote(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let end = if rest.first() == Some(&b'\\') {
            self.find(b"'", self.at + 3)
        } else {
            let width = std::str::from_utf8(&rest[..rest.len().min(4)])
                .or_else(|error| std::str::from_utf8(&rest[..error.valid_up_to()]))
                .ok()
                .and_then(|text| text.chars().next())
                .map_or(1, char::len_utf8);
            self.at + 1 + width
        };
        self.at += 1;
        if self.bytes.get(end) == Some(&b'\'') {
            self.blank_to(end);
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_lines_stay() {
        let source = "let a = \"x{y\"; // z\n/* a /* b */\n c */ let b = r#\"q\"{\"#;\n";
        let code = only(source);
        assert_eq!(code.len(), source.len());
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(!code.contains(['x', 'y', 'z', 'q', '{']), "{code}");
        assert!(code.contains("let b = r#\""), "{code}");
    }

    #[test]
    fn escapes_do_not_end_a_string() {
        assert_eq!(only(r#"f("a\"b{"); g"#), r#"f("     "); g"#);
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        assert_eq!(only("fn f<'a>(x: &'a str) { '{' }"), "fn f<'a>(x: &'a str) { ' ' }");
        assert_eq!(only(r"['\'', '{', 'é', '\u{7d}']"), r"['  ', ' ', '  ', '      ']");
        assert_eq!(only("br\"{\" b'{'"), "br\" \" b' '");
    }

    #[test]
    fn test_modules_are_left_out() {
        let code = "use a;\n#[cfg(test)]\nmod tests { use b; fn c() { d } }\nuse e;\n";
        let kept = without_tests(code);
        assert!(kept.contains("use a;") && kept.contains("use e;"));
        assert!(!kept.contains('b') && !kept.contains('d'), "{kept}");
    }

    #[test]
    fn a_test_module_in_its_own_file_hides_nothing_after_it() {
        let kept = without_tests("#[cfg(test)]\nmod tests;\nuse e;\n");
        assert!(kept.contains("use e;"));
    }
}
