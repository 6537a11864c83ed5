//! The node's identity: its id, drawn once, and the cluster it belongs to.

use std::io;

use cluster::map::{ClusterId, NodeId};
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::record::{Magic, NextRecord, RecordsReader, RecordsWriter};
use super::{Damage, DiskError};

pub(super) const FILE: &str = "node";
const MAGIC: Magic = *b"OCNODE01";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct StoredIdentity {
    pub(super) node: NodeId,
    pub(super) cluster: Option<ClusterId>,
}

impl StoredIdentity {
    /// Reads the identity. Returns `None` if the directory is new.
    pub(super) fn read<D: Directory>(files: &D) -> Result<Option<StoredIdentity>, DiskError> {
        let Some(mut reader) = RecordsReader::open(files, FILE, MAGIC)? else { return Ok(None) };
        let identity = match reader.next()? {
            NextRecord::Record(record) => postcard::from_bytes(record).ok(),
            NextRecord::End | NextRecord::Torn => return Err(reader.damaged(Damage::CutOff)),
        };
        identity.map(Some).ok_or_else(|| reader.unreadable())
    }

    pub(super) fn write<D: Directory>(&self, files: &D) -> io::Result<()> {
        let mut writer = RecordsWriter::begin(files, FILE, MAGIC)?;
        writer.put(&postcard::to_allocvec(self).expect("two numbers can be written"))?;
        writer.finish()
    }
}
