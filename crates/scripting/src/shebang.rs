//! The first line of a script: `#!lua flags=no-writes,allow-oom`.

/// The flags of a script. Without a shebang there are none, and the rules of old scripts apply.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScriptFlags {
    pub no_writes: bool,
    pub allow_oom: bool,
    pub allow_stale: bool,
    pub no_cluster: bool,
    pub allow_cross_slot_keys: bool,
}

/// The shebang of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shebang {
    pub flags: ScriptFlags,
    /// The name of a library of functions.
    pub name: Option<String>,
    /// Length of the line without its end.
    pub length: usize,
}

impl ScriptFlags {
    /// Sets the flag of this name. Returns false if there is none.
    pub fn set(&mut self, name: &[u8]) -> bool {
        let flag = match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return false,
        };
        *flag = true;
        true
    }
}

impl Shebang {
    /// Reads the shebang of a script for EVAL. `None` if it has none. An error is a text without its code.
    pub fn read(text: &[u8]) -> Result<Option<Shebang>, String> {
        if !text.starts_with(b"#!") {
            return Ok(None);
        }
        let Some(length) = text.iter().position(|byte| *byte == b'\n') else {
            return Err("Invalid script shebang".to_owned());
        };
        let mut words = text[..length].split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
        let engine = words.next().unwrap_or_default();
        if engine != b"#!lua" {
            let engine = String::from_utf8_lossy(engine);
            return Err(format!("Unexpected engine in script shebang: {engine}"));
        }
        let mut flags = ScriptFlags::default();
        for word in words {
            let Some(list) = word.strip_prefix(b"flags=") else {
                let word = String::from_utf8_lossy(word);
                return Err(format!("Unknown lua shebang option: {word}"));
            };
            for flag in list.split(|byte| *byte == b',').filter(|flag| !flag.is_empty()) {
                if !flags.set(flag) {
                    let flag = String::from_utf8_lossy(flag);
                    return Err(format!("Unexpected flag in script shebang: {flag}"));
                }
            }
        }
        Ok(Some(Shebang { flags, name: None, length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_unknown_ones_refused() {
        let read = |text: &str| Shebang::read(text.as_bytes());
        assert_eq!(read("return 1"), Ok(None));
        let shebang = read("#!lua flags=no-writes,allow-oom\nreturn 1").unwrap().unwrap();
        assert!(shebang.flags.no_writes && shebang.flags.allow_oom && !shebang.flags.no_cluster);
        assert_eq!(shebang.length, 31);
        assert_eq!(read("#!lua name=x\n").unwrap_err(), "Unknown lua shebang option: name=x");
        assert_eq!(read("#!lua flags=x\n").unwrap_err(), "Unexpected flag in script shebang: x");
        assert_eq!(read("#!py\n").unwrap_err(), "Unexpected engine in script shebang: #!py");
        assert_eq!(read("#!lua").unwrap_err(), "Invalid script shebang");
    }
}
