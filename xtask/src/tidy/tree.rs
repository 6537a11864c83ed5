//! The files that tidy checks: all text files of the repository, read once.
use std::path::Path;

/// Directories of built, fetched or generated files, which are not ours to check.
const SKIPPED_DIRS: [&str; 4] = ["target", "node_modules", ".git", ".tools"];

const TEXT_ENDINGS: [&str; 10] =
    ["rs", "md", "toml", "txt", "js", "css", "html", "py", "sh", "yml"];

pub(super) struct File {
    /// Path from the top of the repository, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns whether the file holds nothing but tests, benchmarks or examples.
    pub(super) fn is_only_tests(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
    }

    /// Returns the crate in crates/ that this file belongs to.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Tree, String> {
        let mut tree = Tree { files: Vec::new() };
        tree.read_dir(root, "").map_err(|error| format!("{}: {error}", root.display()))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn read_dir(&mut self, dir: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                if !SKIPPED_DIRS.contains(&name.as_str()) {
                    self.read_dir(&entry.path(), &format!("{path}/"))?;
                }
            } else if is_text(&name) {
                let bytes = std::fs::read(entry.path())?;
                self.files.push(File { path, text: String::from_utf8_lossy(&bytes).into_owned() });
            }
        }
        Ok(())
    }
}

fn is_text(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| TEXT_ENDINGS.contains(&ending))
}

#[cfg(test)]
impl Tree {
    /// Returns a repository of invented files.
    pub(super) fn of<const N: usize>(files: [(&str, &str); N]) -> Tree {
        let file = |(path, text): (&str, &str)| File { path: path.into(), text: text.into() };
        Tree { files: files.into_iter().map(file).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_sources_are_found_and_what_is_built_is_not() {
        let tree = Tree::read(crate::workspace::root()).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").is_some());
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
    }

    #[test]
    fn a_file_knows_its_crate_and_whether_it_is_only_tests() {
        let tree = Tree::of([("crates/resp/src/parse/tests.rs", ""), ("xtask/src/main.rs", "")]);
        assert_eq!(tree.files[0].crate_name(), Some("resp"));
        assert!(tree.files[0].is_only_tests());
        assert_eq!(tree.files[1].crate_name(), None);
        assert!(!tree.files[1].is_only_tests());
    }
}
