//! A request that blocks at its server, and its remaining timeout if it has to start again.

use std::time::{Duration, Instant};

pub(crate) struct Waits {
    args: Vec<Vec<u8>>,
    since: Instant,
    /// True if the server was asked to unblock it, so that it can start again under another map.
    pub called_back: bool,
}

/// Unit of a command's timeout argument.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Unit {
    Seconds,
    Millis,
}

impl Waits {
    pub(super) fn new(args: &[&[u8]], now: Instant) -> Waits {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        Waits { args, since: now, called_back: false }
    }

    /// Returns the request in wire format with its remaining timeout. An unlimited timeout stays unlimited.
    pub(super) fn rest(mut self, now: Instant) -> Vec<u8> {
        if let Some((place, unit)) = self.patience()
            && let Some(left) = left(&self.args[place], unit, now - self.since)
        {
            self.args[place] = left.into_bytes();
        }
        let args: Vec<&[u8]> = self.args.iter().map(Vec::as_slice).collect();
        let mut request = Vec::new();
        resp::encode_command(&mut request, &args);
        request
    }

    /// Returns the position and unit of the timeout argument.
    fn patience(&self) -> Option<(usize, Unit)> {
        let name = self.args[0].to_ascii_lowercase();
        let (place, unit) = match name.as_slice() {
            b"xread" | b"xreadgroup" => {
                let is_block = |arg: &Vec<u8>| arg.eq_ignore_ascii_case(b"block");
                (self.args.iter().position(is_block)? + 1, Unit::Millis)
            }
            b"blmpop" | b"bzmpop" => (1, Unit::Seconds),
            _ => (self.args.len() - 1, Unit::Seconds),
        };
        (place < self.args.len()).then_some((place, unit))
    }
}

/// Returns the remaining timeout, at least a moment. `None` if the text is no time, or means forever.
fn left(text: &[u8], unit: Unit, waited: Duration) -> Option<String> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    if !(number > 0.0 && number.is_finite()) {
        return None;
    }
    Some(match unit {
        Unit::Seconds => format!("{:.3}", (number - waited.as_secs_f64()).max(0.001)),
        Unit::Millis => format!("{:.0}", (number - waited.as_secs_f64() * 1e3).max(1.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(line: &str, waited: Duration) -> String {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let begun = Instant::now();
        let request = Waits::new(&args, begun).rest(begun + waited);
        let text = String::from_utf8(request).unwrap();
        let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
        words.join(" ")
    }

    #[test]
    fn a_command_that_begins_anew_waits_no_longer_than_it_said() {
        let second = Duration::from_secs(1);
        for (line, expected) in [
            ("BLPOP a b 5", "BLPOP a b 4.000"),
            ("BLPOP a 0.5", "BLPOP a 0.001"),
            ("BLPOP a 0", "BLPOP a 0"),
            ("BLMOVE a b LEFT RIGHT 2.5", "BLMOVE a b LEFT RIGHT 1.500"),
            ("BLMPOP 3 1 a LEFT", "BLMPOP 2.000 1 a LEFT"),
            ("XREAD BLOCK 1500 STREAMS s 0", "XREAD BLOCK 500 STREAMS s 0"),
            ("XREAD BLOCK 0 STREAMS s 0", "XREAD BLOCK 0 STREAMS s 0"),
        ] {
            assert_eq!(rest(line, second), expected);
        }
    }
}
