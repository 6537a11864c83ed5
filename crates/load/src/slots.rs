//! `CLUSTER SLOTS` as clients read it. Used by the cluster bench and by chaos.

use std::net::SocketAddr;

use placement::Slot;
use resp::Value;

/// Returns the rows of `CLUSTER SLOTS`: first and last slot, and the primary's address for clients.
pub fn ranges(answer: &Value) -> Vec<(usize, usize, SocketAddr)> {
    let Value::Array(rows) = answer else { return Vec::new() };
    rows.iter().filter_map(range).collect()
}

fn range(row: &Value) -> Option<(usize, usize, SocketAddr)> {
    let Value::Array(row) = row else { return None };
    let [Value::Integer(first), Value::Integer(last), Value::Array(primary), ..] = &row[..] else {
        return None;
    };
    let [Value::Bulk(host), Value::Integer(port), ..] = &primary[..] else { return None };
    let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
    let host = std::str::from_utf8(host).ok()?.parse().ok()?;
    let at = SocketAddr::new(host, u16::try_from(*port).ok()?);
    (first <= last && last < usize::from(Slot::COUNT)).then_some((first, last, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_slots_is_read_and_what_is_none_is_left_out() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let node = |host: &str| Value::Array(vec![bulk(host), Value::Integer(7000), bulk("id")]);
        let row = |first, last, host: &str| {
            Value::Array(vec![Value::Integer(first), Value::Integer(last), node(host)])
        };
        let answer = Value::Array(vec![
            row(0, 63, "127.0.0.5"),
            row(64, 16_384, "127.0.0.6"),
            row(64, 100, "nowhere"),
        ]);
        let at = "127.0.0.5:7000".parse().unwrap();
        assert_eq!(ranges(&answer), [(0, 63, at)]);
    }
}
