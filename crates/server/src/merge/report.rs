//! Reports to people what became of the changes of another side: counts in the status and as metrics, a line
//! in the log, and every key that both sides had changed. These conflicts are in the file `conflicts` of the
//! data directory, one JSON document a line; `CLUSTER CONFLICTS` returns the latest of them.

use std::io::{self, Write};
use std::path::Path;

use cluster::merge::{Conflict, Side, Tally};
use serde_json::{Value, json};

use super::Merging;
use crate::clock;
use crate::disk::private;
use crate::log;

const FILE: &str = "conflicts";
/// Maximum size of the file. Nothing is appended to a larger one.
const FILE_BYTES_MAX: u64 = 256 << 20;

impl Merging {
    /// Returns the counts of keys that others have handed over to this node since it started.
    pub(crate) fn tally(&self) -> Tally {
        self.ledger.lock().tally
    }

    /// Returns the remembered conflicts, the latest last, as JSON documents.
    pub(crate) fn conflicts(&self) -> Vec<String> {
        let ledger = self.ledger.lock();
        ledger.conflicts().map(|conflict| document(conflict).to_string()).collect()
    }
}

/// Appends conflicts to the file, if there is a data directory.
pub(super) fn report_conflicts(directory: Option<&Path>, conflicts: &[Conflict]) {
    let Some(directory) = directory.filter(|_| !conflicts.is_empty()) else { return };
    if let Err(error) = append(directory, conflicts) {
        let told = format!(
            "cannot write conflicts to {}: {error}; use CLUSTER CONFLICTS to read them",
            directory.join(FILE).display()
        );
        log::error("merge", &told);
    }
}

fn append(directory: &Path, conflicts: &[Conflict]) -> io::Result<()> {
    let mut file = private().create(true).append(true).open(directory.join(FILE))?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        let max = FILE_BYTES_MAX >> 20;
        let why = format!("the file has reached its maximum size of {max} MiB; move it away");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let now = clock::now().0;
    let mut lines = String::new();
    for conflict in conflicts {
        let mut line = document(conflict);
        line["unix_millis"] = now.into();
        lines += &line.to_string();
        lines.push('\n');
    }
    file.write_all(lines.as_bytes())
}

/// Returns a conflict as JSON. A version is also given as the time at which it was made, in milliseconds
/// since 1970, and a count within that millisecond.
fn document(conflict: &Conflict) -> Value {
    let side = |side: &Side| {
        let (millis, count) = (side.version >> 16, side.version & 0xFFFF);
        json!({ "version": side.version, "unix_millis": millis, "count": count, "bytes": side.bytes })
    };
    json!({
        "database": conflict.database.number(),
        "key": String::from_utf8_lossy(&conflict.key),
        "standing": side(&conflict.ours),
        "yielding": side(&conflict.theirs),
        "winner": conflict.winner.name(),
    })
}
