//! A directory in memory, for tests, with the faults of a disk: after a power cut, unsynced data may be lost or
//! only partly there, and a write may fail for lack of space.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::directory::{Directory, ReplacementFile};

#[derive(Clone, Default)]
pub(super) struct Memory(Rc<RefCell<MemoryFiles>>);

#[derive(Clone, Default)]
struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
    /// Number of bytes still accepted; after that, every write fails.
    room: Option<usize>,
}

impl Memory {
    /// Fills the disk after this many more bytes.
    pub(super) fn leave_room(&self, bytes: usize) {
        self.0.borrow_mut().room = Some(bytes);
    }

    pub(super) fn make_room(&self) {
        self.0.borrow_mut().room = None;
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.0.borrow().files.get(name).cloned()
    }

    pub(super) fn set_content(&self, name: &str, content: Vec<u8>) {
        self.0.borrow_mut().files.insert(name.to_owned(), content);
    }

    /// Returns a copy on a separate disk, as a power cut would leave it.
    pub(super) fn copy(&self) -> Memory {
        Memory(Rc::new(RefCell::new(self.0.borrow().clone())))
    }
}

impl MemoryFiles {
    /// Takes space for a write. Returns the number of bytes that fit.
    fn admit(&mut self, bytes: usize) -> (usize, io::Result<()>) {
        match &mut self.room {
            None => (bytes, Ok(())),
            Some(room) if *room >= bytes => {
                *room -= bytes;
                (bytes, Ok(()))
            }
            Some(room) => (std::mem::take(room), Err(io::ErrorKind::StorageFull.into())),
        }
    }
}

impl Directory for Memory {
    type Reader = Cursor<Vec<u8>>;
    type Replacement = MemoryReplacement;

    fn path_of(&self, name: &str) -> PathBuf {
        Path::new("/memory").join(name)
    }

    fn read(&self, name: &str) -> io::Result<Option<Cursor<Vec<u8>>>> {
        Ok(self.content(name).map(Cursor::new))
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        let (admitted, result) = inner.admit(bytes.len());
        let file = inner.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        file.extend_from_slice(&bytes[..admitted]);
        result
    }

    fn replace(&self, name: &str) -> io::Result<MemoryReplacement> {
        let (directory, name) = (self.clone(), name.to_owned());
        Ok(MemoryReplacement { directory, name, content: Vec::new() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().files.remove(name);
        Ok(())
    }
}

pub(super) struct MemoryReplacement {
    directory: Memory,
    name: String,
    content: Vec<u8>,
}

impl Write for MemoryReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (admitted, result) = self.directory.0.borrow_mut().admit(bytes.len());
        self.content.extend_from_slice(&bytes[..admitted]);
        result.map(|()| admitted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReplacementFile for MemoryReplacement {
    fn finish(self) -> io::Result<()> {
        self.directory.set_content(&self.name, self.content);
        Ok(())
    }
}
