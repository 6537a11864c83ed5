//! Walks all keys of a server, page by page, without the fleet's own. Used by the plan of a migration, by the
//! migration itself and by `check`.

use std::io;

use fleet::names;
use resp::Value;

use crate::servers::Control;

/// Number of keys per request: a fraction of a millisecond of the server's time.
const PAGE_KEYS: &str = "500";

/// A walk over one server. It meets every key that exists from its beginning to its end, some possibly twice.
pub(crate) struct Walk {
    cursor: Option<Vec<u8>>,
}

impl Walk {
    pub(crate) fn new() -> Walk {
        Walk { cursor: Some(b"0".to_vec()) }
    }

    /// Returns the next keys; `None` at the end.
    pub(crate) fn next(&mut self, control: &mut Control) -> io::Result<Option<Vec<Vec<u8>>>> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let answer = control.call(&[b"SCAN", cursor.as_slice(), b"COUNT", PAGE_KEYS.as_bytes()])?;
        let Some((next, keys)) = page(&answer) else {
            let text = format!("it answers SCAN with {answer}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        self.cursor = (next != b"0").then(|| next.to_vec());
        Ok(Some(keys))
    }
}

fn page(answer: &Value) -> Option<(&[u8], Vec<Vec<u8>>)> {
    let Value::Array(items) = answer else { return None };
    let [cursor, Value::Array(keys)] = items.as_slice() else { return None };
    let texts = keys.iter().filter_map(Value::text).filter(|key| !names::is_reserved(key));
    Some((cursor.text()?, texts.map(<[u8]>::to_vec).collect()))
}

/// Calls `each` with every page of a server's keys, until it returns `Go::Stop`.
pub(crate) fn pages(
    control: &mut Control,
    mut each: impl FnMut(&mut Control, Vec<Vec<u8>>) -> io::Result<Go>,
) -> io::Result<()> {
    let mut walk = Walk::new();
    while let Some(keys) = walk.next(control)? {
        if each(control, keys)? == Go::Stop {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Go {
    On,
    Stop,
}
