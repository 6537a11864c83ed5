//! Named documents: small pieces of data that all nodes keep alike, such as settings. They are part of the map,
//! so every change is agreed on through the log, and a joining node has all of them before it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::LogIndex;

/// Begin of the name of a document that holds a setting of all nodes; the setting's name follows.
pub const SETTING_PREFIX: &str = "settings/";
/// Maximum length of a name.
pub const DOCUMENT_NAME_BYTES_MAX: usize = 128;
/// Maximum size of one document.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 10;
/// Maximum size of all documents together, names included: the whole map travels in one message.
pub const DOCUMENTS_BYTES_MAX: usize = 4 << 20;

/// All documents of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Documents {
    /// Log index of the last change of any document.
    version: LogIndex,
    by_name: BTreeMap<String, Document>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Document {
    /// Log index of the change that wrote this content.
    pub version: LogIndex,
    pub content: Arc<[u8]>,
}

/// A document with its new content; `None` removes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DocumentWrite {
    pub name: String,
    pub content: Option<Arc<[u8]>>,
}

impl DocumentWrite {
    pub fn put(name: impl Into<String>, content: impl Into<Arc<[u8]>>) -> DocumentWrite {
        DocumentWrite { name: name.into(), content: Some(content.into()) }
    }

    pub fn remove(name: impl Into<String>) -> DocumentWrite {
        DocumentWrite { name: name.into(), content: None }
    }
}

impl Documents {
    /// Creates the documents with which a cluster is founded.
    pub fn found(writes: &[DocumentWrite]) -> Result<Documents, DocumentError> {
        let mut documents = Documents::default();
        documents.check(writes)?;
        documents.write(LogIndex::FIRST, writes);
        Ok(documents)
    }

    /// Returns the log index of the last change of any document. A write names the version it has seen.
    pub fn version(&self) -> LogIndex {
        self.version
    }

    pub fn get(&self, name: &str) -> Option<&Document> {
        self.by_name.get(name)
    }

    /// Returns all documents, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.by_name.iter().map(|(name, document)| (name.as_str(), document))
    }

    /// Returns whether every written document is as these writes leave it.
    pub fn shows(&self, writes: &[DocumentWrite]) -> bool {
        let has = |write: &DocumentWrite| {
            self.get(&write.name).map(|document| &document.content) == write.content.as_ref()
        };
        writes.iter().all(has)
    }

    /// Returns the reason these writes are not allowed, if there is one.
    pub fn check(&self, writes: &[DocumentWrite]) -> Result<(), DocumentError> {
        for write in writes {
            if write.name.is_empty() || write.name.len() > DOCUMENT_NAME_BYTES_MAX {
                return Err(DocumentError::BadName);
            }
            let size = write.content.as_ref().map_or(0, |content| content.len());
            if size > DOCUMENT_BYTES_MAX {
                return Err(DocumentError::TooLarge);
            }
        }
        let mut after = self.clone();
        after.write(self.version, writes);
        if after.bytes() > DOCUMENTS_BYTES_MAX { Err(DocumentError::Full) } else { Ok(()) }
    }

    /// Writes at a log index, without checks.
    pub(super) fn write(&mut self, index: LogIndex, writes: &[DocumentWrite]) {
        for write in writes {
            match &write.content {
                Some(content) => {
                    let document = Document { version: index, content: Arc::clone(content) };
                    self.by_name.insert(write.name.clone(), document);
                }
                None => drop(self.by_name.remove(&write.name)),
            }
        }
        self.version = index;
    }

    /// Returns the size of all names and contents.
    pub(super) fn bytes(&self) -> usize {
        self.by_name.iter().map(|(name, document)| name.len() + document.content.len()).sum()
    }
}

/// The reason a document cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DocumentError {
    BadName,
    TooLarge,
    /// All documents together would be too large.
    Full,
}

impl std::fmt::Display for DocumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DocumentError::BadName => {
                write!(f, "the name of a document must have 1 to {DOCUMENT_NAME_BYTES_MAX} bytes")
            }
            DocumentError::TooLarge => {
                write!(f, "a document can have at most {} KiB", DOCUMENT_BYTES_MAX >> 10)
            }
            DocumentError::Full => {
                let limit = DOCUMENTS_BYTES_MAX >> 20;
                write!(f, "all documents of a cluster together can have at most {limit} MiB")
            }
        }
    }
}

impl std::error::Error for DocumentError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(name: &str, bytes: usize) -> DocumentWrite {
        DocumentWrite::put(name, vec![b'x'; bytes])
    }

    #[test]
    fn a_write_is_shown_until_another_one_replaces_it() {
        let mut documents = Documents::found(&[put("a", 1)]).unwrap();
        let writes = [put("a", 2), put("b", 3)];
        assert!(!documents.shows(&writes));
        documents.write(LogIndex(7), &writes);
        assert!(documents.shows(&writes));
        assert_eq!(documents.get("a").unwrap().version, LogIndex(7));
        documents.write(LogIndex(8), &[DocumentWrite::remove("b")]);
        assert!(!documents.shows(&writes) && documents.shows(&[DocumentWrite::remove("b")]));
        assert_eq!((documents.version(), documents.iter().count()), (LogIndex(8), 1));
    }

    #[test]
    fn names_and_sizes_have_limits() {
        let documents = Documents::default();
        let refused = |write: DocumentWrite| documents.check(&[write]).unwrap_err();
        assert_eq!(refused(put("", 1)), DocumentError::BadName);
        assert_eq!(refused(put(&"n".repeat(129), 1)), DocumentError::BadName);
        assert_eq!(refused(put("a", DOCUMENT_BYTES_MAX + 1)), DocumentError::TooLarge);
        let many: Vec<_> = (0..9).map(|it| put(&format!("d{it}"), DOCUMENT_BYTES_MAX)).collect();
        assert_eq!(documents.check(&many), Err(DocumentError::Full));
        assert_eq!(documents.check(&many[..7]), Ok(()));
    }
}
