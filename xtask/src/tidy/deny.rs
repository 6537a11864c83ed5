//! `deny.toml`, the rules for the code we depend on: licences, bans, and advisories that we accept with a reason.
//! The format is that of `cargo deny`; this reads the lists of it that tidy checks. Used by `deps.rs`.
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Deny {
    pub(super) licences: Vec<String>,
    pub(super) banned: Vec<Entry>,
    /// Advisories; a reason begins with the crate.
    pub(super) ignored: Vec<Entry>,
}

/// One line of a list of tables: `{ name = "...", reason = "..." }`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name of a crate, or the id of an advisory.
    pub(super) name: String,
    pub(super) reason: String,
}

impl Entry {
    /// Returns the crate that the reason begins with.
    pub(super) fn krate(&self) -> &str {
        self.reason.split(':').next().unwrap_or_default()
    }
}

impl Deny {
    pub(super) fn read(root: &Path) -> Result<Deny, String> {
        let text = std::fs::read_to_string(root.join("deny.toml"));
        Deny::parse(&text.map_err(|error| format!("deny.toml cannot be read: {error}"))?)
    }

    fn parse(text: &str) -> Result<Deny, String> {
        let (mut deny, mut section, mut list) = (Deny::default(), "", "");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
            } else if let Some((name, _)) = line.split_once(" = [") {
                list = name;
            } else if line == "]" {
                list = "";
            } else if !line.is_empty() && !list.is_empty() {
                deny.add((section, list), line)?;
            }
        }
        Ok(deny)
    }

    fn add(&mut self, list: (&str, &str), line: &str) -> Result<(), String> {
        let texts: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let entry = |texts: &[&str]| match texts {
            [name, reason] => Some(Entry { name: (*name).into(), reason: (*reason).into() }),
            _ => None,
        };
        let added = match list {
            ("licenses", "allow") => texts.first().map(|name| self.licences.push((*name).into())),
            ("bans", "deny") => entry(&texts).map(|entry| self.banned.push(entry)),
            ("advisories", "ignore") => entry(&texts).map(|entry| self.ignored.push(entry)),
            _ => Some(()),
        };
        added.ok_or_else(|| format!("deny.toml: `{line}` needs a name and a reason"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_their_reasons() {
        let text = "[advisories]\n# why\nignore = [\n    { id = \"R-1\", reason = \"old: unused\" },\n]\n\
                    [licenses]\nallow = [\n    \"MIT\",\n]\n\
                    [bans]\ndeny = [\n    { name = \"bad\", reason = \"leaks\" },\n]\n";
        let deny = Deny::parse(text).unwrap();
        let entry = |name: &str, reason: &str| Entry { name: name.into(), reason: reason.into() };
        assert_eq!(deny.ignored, [entry("R-1", "old: unused")]);
        assert_eq!(deny.ignored[0].krate(), "old");
        assert_eq!(deny.banned, [entry("bad", "leaks")]);
        assert_eq!(deny.licences, ["MIT"]);
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        let text = "[bans]\ndeny = [\n    { name = \"bad\" },\n]\n";
        assert!(Deny::parse(text).unwrap_err().contains("needs a name and a reason"));
    }

    #[test]
    fn our_own_file_can_be_read() {
        let deny = Deny::read(crate::workspace::root()).unwrap();
        assert!(deny.licences.contains(&"MIT".to_owned()));
        assert!(!deny.banned.is_empty() && !deny.ignored.is_empty());
    }
}
