//! Bytes per key: a million keys of 16 bytes with values of 32, with and without a time to live.
use std::fmt;
use std::io;
use std::time::Duration;

use load::process;
use load::request::Requests;
use load::{KeySpace, Load, Loop, Operation, Plan, Popularity, Until};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::{self, CONNECTIONS};
use crate::servers::{Kind, Server, Tools};

const KEYS: u64 = 1_000_000;
const KEYS_QUICK: u64 = 100_000;
const VALUE_BYTES: usize = 32;
/// Interval between two measurements. When they agree, tables that grow in the background have done so.
const SETTLE: Duration = Duration::from_millis(500);
const LOOKS_MAX: usize = 20;

#[derive(Serialize, Deserialize)]
pub(crate) struct MemoryResults {
    pub(crate) keys: u64,
    pub(crate) rows: Vec<MemoryRow>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct MemoryRow {
    pub(crate) server: Kind,
    pub(crate) version: String,
    pub(crate) allocator: String,
    pub(crate) plain: PerKey,
    pub(crate) expiring: PerKey,
}

/// Growth while filling, divided by the number of keys.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PerKey {
    /// Resident memory of the process, by the kernel.
    pub(crate) resident_bytes: f64,
    /// Memory that the server requested from its allocator, by INFO's `used_memory`.
    pub(crate) used_bytes: Option<f64>,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<MemoryResults> {
    let keys = if options.quick { KEYS_QUICK } else { KEYS };
    let mut rows = Vec::new();
    for kind in tools.kinds() {
        let row = measure_kind(tools, kind, keys)?;
        print(&row);
        rows.push(row);
    }
    Ok(MemoryResults { keys, rows })
}

fn measure_kind(tools: &Tools, kind: Kind, keys: u64) -> io::Result<MemoryRow> {
    let plain = filled(&tools.start(kind, &measure::alone())?, Operation::Set, keys)?;
    let server = tools.start(kind, &measure::alone())?;
    let expiring = filled(&server, Operation::SetExpiring, keys)?;
    let allocator = server.info("memory", "mem_allocator")?;
    Ok(MemoryRow {
        server: kind,
        version: server.version()?,
        allocator: allocator.unwrap_or_else(|| "unknown".to_owned()),
        plain,
        expiring,
    })
}

fn filled(server: &Server, operation: Operation, keys: u64) -> io::Result<PerKey> {
    let space = KeySpace { keys, popularity: Popularity::Sequence };
    let plan = Plan {
        address: server.address,
        connections: CONNECTIONS,
        requests: Requests { operation, keys: space, value_bytes: VALUE_BYTES },
        style: Loop::Closed { pipeline: 64 },
        seed: 0,
    };
    // The connections are open at both measurements, so that their buffers do not count as keys.
    let mut load = Load::connect(plan)?;
    let before = Look::settled(server)?;
    measure::sound(server, &load.run(Until::Requests(keys))?)?;
    let after = Look::settled(server)?;
    let per_key = |after: u64, before: u64| after.saturating_sub(before) as f64 / keys as f64;
    Ok(PerKey {
        resident_bytes: per_key(after.resident, before.resident),
        used_bytes: after.used.zip(before.used).map(|(after, before)| per_key(after, before)),
    })
}

#[derive(Clone, Copy, PartialEq)]
struct Look {
    resident: u64,
    used: Option<u64>,
}

impl Look {
    fn now(server: &Server) -> io::Result<Look> {
        let used = server.info("memory", "used_memory")?;
        Ok(Look {
            resident: process::resident_bytes(server.pid())?,
            used: used.and_then(|used| used.parse().ok()),
        })
    }

    /// Measures until two results differ by less than a hundredth, or the attempts run out; returns the last.
    fn settled(server: &Server) -> io::Result<Look> {
        let mut last = Look::now(server)?;
        for _ in 0..LOOKS_MAX {
            std::thread::sleep(SETTLE);
            let look = Look::now(server)?;
            let calm = look.is_like(last);
            last = look;
            if calm {
                break;
            }
        }
        Ok(last)
    }

    fn is_like(self, other: Look) -> bool {
        let near = |a: u64, b: u64| a.abs_diff(b) <= b / 100;
        near(self.resident, other.resident)
            && near(self.used.unwrap_or_default(), other.used.unwrap_or_default())
    }
}

impl fmt::Display for PerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.used_bytes {
            Some(used) => write!(f, "{:.1} ({used:.1})", self.resident_bytes),
            None => write!(f, "{:.1}", self.resident_bytes),
        }
    }
}

fn print(row: &MemoryRow) {
    let MemoryRow { version, allocator, plain, expiring, .. } = row;
    println!(
        "{version:<20} {allocator:<16} bytes per key, resident (used): plain {plain}, with a TTL {expiring}"
    );
}
