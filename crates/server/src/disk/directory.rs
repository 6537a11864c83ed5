//! File operations: few, so that every failure can be reasoned about and tests can make each one fail
//! (`memory.rs`).

use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

pub(crate) trait Directory {
    type Reader: Read;
    type Replacement: ReplacementFile;

    /// Returns the path of a file, for messages.
    fn path_of(&self, name: &str) -> PathBuf;

    /// Opens a file at its beginning. Returns `None` if there is no such file.
    fn read(&self, name: &str) -> io::Result<Option<Self::Reader>>;

    /// Appends to a file. On return, all of it is on disk; after an error, some of it may be.
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Begins new content for a file. When finished, it replaces the old content atomically.
    fn replace(&self, name: &str) -> io::Result<Self::Replacement>;

    fn remove(&self, name: &str) -> io::Result<()>;
}

/// New content for a file. Until it is finished, nothing has changed.
pub(crate) trait ReplacementFile: Write {
    /// Finishes. On return, the new content is on disk and in place.
    fn finish(self) -> io::Result<()>;
}

/// A directory of the file system.
pub(crate) struct Files(PathBuf);

impl Files {
    pub(super) fn at(path: &Path) -> Files {
        Files(path.to_owned())
    }
}

impl Directory for Files {
    type Reader = BufReader<fs::File>;
    type Replacement = FileReplacement;

    fn path_of(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> io::Result<Option<BufReader<fs::File>>> {
        match fs::File::open(self.path_of(name)) {
            Ok(file) => Ok(Some(BufReader::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().append(true).open(self.path_of(name))?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn replace(&self, name: &str) -> io::Result<FileReplacement> {
        let beside = self.path_of(&format!("{name}.new"));
        let file = BufWriter::new(fs::File::create(&beside)?);
        Ok(FileReplacement { file, beside, place: self.path_of(name) })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path_of(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => sync_directory(&self.0),
        }
    }
}

pub(crate) struct FileReplacement {
    file: BufWriter<fs::File>,
    beside: PathBuf,
    place: PathBuf,
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl ReplacementFile for FileReplacement {
    fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        sync_directory(self.place.parent().expect("a file of ours is in a directory"))
    }
}

/// Syncs a directory, so that a new name in it is on disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}
