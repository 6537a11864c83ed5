//! The file format: eight bytes for file type and version, then records, each preceded by its length and its
//! checksum.

use std::io::{self, Read};
use std::path::PathBuf;

use super::directory::{Directory, ReplacementFile};
use super::{Damage, DiskError};

pub(super) type Magic = [u8; 8];

const HEADER_BYTES: usize = 8;

/// Appends a record to a write buffer.
pub(super) fn put(record: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&header(record));
    to.extend_from_slice(record);
}

fn header(record: &[u8]) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(record.len()).expect("a record is far below 4 GiB");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    // The checksum covers the length too: a run of zeros is not a valid record.
    header[4..].copy_from_slice(&checksum(length, record).to_le_bytes());
    header
}

fn checksum(length: u32, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(record);
    hasher.finalize()
}

/// Writes new content for a file.
pub(super) struct RecordsWriter<R>(R);

impl<R: ReplacementFile> RecordsWriter<R> {
    pub(super) fn begin<D>(directory: &D, name: &str, magic: Magic) -> io::Result<RecordsWriter<R>>
    where
        D: Directory<Replacement = R>,
    {
        let mut file = directory.replace(name)?;
        file.write_all(&magic)?;
        Ok(RecordsWriter(file))
    }

    pub(super) fn put(&mut self, record: &[u8]) -> io::Result<()> {
        self.0.write_all(&header(record))?;
        self.0.write_all(record)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Reads a file record by record.
pub(super) struct RecordsReader<R> {
    path: PathBuf,
    file: R,
    record: Vec<u8>,
    /// Offset of the next record.
    at: u64,
}

/// Result of reading the next record.
pub(super) enum NextRecord<'a> {
    Record(&'a [u8]),
    /// The previous record was the last.
    End,
    /// The file ends in the middle of a record, as after an interrupted write.
    Torn,
}

impl<R: Read> RecordsReader<R> {
    /// Opens a file. Returns `None` if there is no such file.
    pub(super) fn open<D>(
        directory: &D,
        name: &str,
        magic: Magic,
    ) -> Result<Option<RecordsReader<R>>, DiskError>
    where
        D: Directory<Reader = R>,
    {
        let path = directory.path_of(name);
        let failed = |error| DiskError::Failed { file: path.clone(), error };
        let Some(mut file) = directory.read(name).map_err(failed)? else { return Ok(None) };
        let mut found = Magic::default();
        let whole = read_whole(&mut file, &mut found).map_err(failed)?;
        let reader = RecordsReader { path, file, record: Vec::new(), at: magic.len() as u64 };
        if whole != magic.len() || found != magic {
            return Err(reader.damaged(Damage::Foreign));
        }
        Ok(Some(reader))
    }

    pub(super) fn next(&mut self) -> Result<NextRecord<'_>, DiskError> {
        let mut header = [0; HEADER_BYTES];
        let read = read_whole(&mut self.file, &mut header);
        match read.map_err(|error| self.failed(error))? {
            0 => return Ok(NextRecord::End),
            HEADER_BYTES => {}
            _ => return Ok(NextRecord::Torn),
        }
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let (length, expected) = (number(&header[..4]), number(&header[4..]));
        self.record.clear();
        // The buffer grows with the data really there, whatever the length says.
        let read = (&mut self.file).take(u64::from(length)).read_to_end(&mut self.record);
        if read.map_err(|error| self.failed(error))? < length as usize {
            return Ok(NextRecord::Torn);
        }
        if checksum(length, &self.record) != expected {
            return self.judge_bad_record();
        }
        self.at += (HEADER_BYTES + self.record.len()) as u64;
        Ok(NextRecord::Record(&self.record))
    }

    /// Classifies a record with a wrong checksum. The last record may have reached the disk only in part before
    /// a power cut; a record with others behind it was once complete.
    fn judge_bad_record(&mut self) -> Result<NextRecord<'_>, DiskError> {
        let behind = read_whole(&mut self.file, &mut [0]);
        match behind.map_err(|error| self.failed(error))? {
            0 => Ok(NextRecord::Torn),
            _ => Err(self.unreadable()),
        }
    }

    /// Returns the error for a record that cannot be decoded.
    pub(super) fn unreadable(&self) -> DiskError {
        self.damaged(Damage::Record(self.at))
    }

    pub(super) fn damaged(&self, what: Damage) -> DiskError {
        DiskError::Damaged { file: self.path.clone(), what }
    }

    pub(super) fn failed(&self, error: io::Error) -> DiskError {
        DiskError::Failed { file: self.path.clone(), error }
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes read.
fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
