//! File operations: few, so that every failure can be reasoned about and tests can make each one fail
//! (`memory.rs`).

use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

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
pub(crate) struct Files(Arc<OpenDirectory>);

/// A directory and its descriptors. They stay open: a process without free descriptors must still be able to write
/// its log.
struct OpenDirectory {
    path: PathBuf,
    /// The file that is appended to, positioned at its end, and its name.
    appended: Mutex<Option<(String, fs::File)>>,
    /// The directory itself. `None` until it is first synced.
    directory: Mutex<Option<fs::File>>,
}

impl Files {
    pub(super) fn at(path: &Path) -> Files {
        let (appended, directory) = (Mutex::default(), Mutex::default());
        Files(Arc::new(OpenDirectory { path: path.to_owned(), appended, directory }))
    }
}

impl OpenDirectory {
    /// Puts new content in place. If the old content was appended to, or nothing was, the new one will be.
    fn put_in_place(&self, name: &str, file: fs::File) -> io::Result<()> {
        let place = self.path.join(name);
        fs::rename(beside(&place), &place)?;
        let mut appended = self.appended.lock();
        if appended.as_ref().is_none_or(|(old, _)| old == name) {
            *appended = Some((name.to_owned(), file));
        }
        drop(appended);
        self.sync()
    }

    /// Syncs the directory, so that a new name in it is on disk.
    fn sync(&self) -> io::Result<()> {
        let mut directory = self.directory.lock();
        if directory.is_none() {
            *directory = Some(fs::File::open(&self.path)?);
        }
        directory.as_ref().expect("opened a moment ago").sync_all()
    }
}

/// Returns the path under which new content for a file is written.
fn beside(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Returns the options for a file that only this user may read. A link in its place is not followed.
pub(crate) fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

impl Directory for Files {
    type Reader = BufReader<fs::File>;
    type Replacement = FileReplacement;

    fn path_of(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    fn read(&self, name: &str) -> io::Result<Option<BufReader<fs::File>>> {
        match fs::File::open(self.path_of(name)) {
            Ok(file) => Ok(Some(BufReader::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut appended = self.0.appended.lock();
        if appended.as_ref().is_none_or(|(open, _)| open != name) {
            let file = private().append(true).open(self.path_of(name))?;
            *appended = Some((name.to_owned(), file));
        }
        let (_, file) = appended.as_mut().expect("opened a moment ago");
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn replace(&self, name: &str) -> io::Result<FileReplacement> {
        let beside = beside(&self.path_of(name));
        let file = private().write(true).create(true).truncate(true).open(beside)?;
        let (file, name) = (BufWriter::new(file), name.to_owned());
        Ok(FileReplacement { file, name, directory: Arc::clone(&self.0) })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path_of(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => self.0.sync(),
        }
    }
}

pub(crate) struct FileReplacement {
    file: BufWriter<fs::File>,
    name: String,
    directory: Arc<OpenDirectory>,
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
    fn finish(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        self.directory.put_in_place(&self.name, file)
    }
}
