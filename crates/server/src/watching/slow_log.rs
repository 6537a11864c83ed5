//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.

use std::collections::VecDeque;
use std::time::Duration;

use commands::{Args, OwnedArgs, SlowCommand, Spec, visible_args};
use parking_lot::Mutex;
use settings::Settings;

use crate::clients::ClientInfo;
use crate::clock;

/// Maximum number of arguments kept of a command, and of bytes of each: an entry stays small whatever was sent.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

#[derive(Default)]
pub(crate) struct SlowLog(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next_id: u64,
    /// Oldest first.
    entries: VecDeque<SlowCommand>,
}

/// A slow command and its client.
pub(crate) struct Slow<'a> {
    pub spec: &'static Spec,
    pub args: Args<'a>,
    pub client: &'a ClientInfo,
    pub client_name: &'a [u8],
}

impl SlowLog {
    #[cold]
    pub(crate) fn record(&self, slow: &Slow<'_>, took: Duration, settings: &Settings) {
        let args = short(&visible_args(slow.spec, slow.args));
        let mut log = self.0.lock();
        let entry = SlowCommand {
            id: log.next_id,
            unix_seconds: clock::now().0 / 1_000,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            args,
            client_address: slow.client.address.to_string(),
            client_name: slow.client_name.to_vec(),
        };
        log.next_id += 1;
        log.entries.push_back(entry);
        let max = usize::try_from(settings.slowlog_max_len).unwrap_or(usize::MAX);
        while log.entries.len() > max {
            log.entries.pop_front();
        }
    }

    pub(crate) fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.0.lock().entries.iter().rev().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().entries.clear();
    }
}

/// Returns the arguments truncated, with a note on what is missing.
fn short(args: &[&[u8]]) -> OwnedArgs {
    let shown = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
    let mut short: Vec<Vec<u8>> = args[..shown].iter().map(|arg| short_arg(arg)).collect();
    if shown < args.len() {
        let more = args.len() - shown;
        short.push(format!("... ({more} more arguments)").into_bytes());
    }
    OwnedArgs::new(short.iter().map(Vec::as_slice))
}

fn short_arg(arg: &[u8]) -> Vec<u8> {
    if arg.len() <= ARG_BYTES_MAX {
        return arg.to_vec();
    }
    let more = arg.len() - ARG_BYTES_MAX;
    let mut short = arg[..ARG_BYTES_MAX].to_vec();
    short.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_cut_short() {
        let long = vec![b'x'; 200];
        let many: Vec<&[u8]> = (0..40).map(|_| long.as_slice()).collect();
        let short = short(&many);
        let args = short.args();
        assert_eq!(args.len(), 32);
        assert_eq!(args.at(31), b"... (9 more arguments)");
        assert!(args.at(0).ends_with(b"x... (72 more bytes)"));
        assert_eq!(super::short(&many[..32]).args().len(), 32);
    }
}
