//! Parses the arguments of TIMER.* into requests. A timer's description is converted to the JSON of the HTTP
//! interface and checked by the same code: both report the same errors in the same words.

use serde_json::{Map, Value, json};
use timers::{ReplicationFactor, TimerId, TimerRequest};

use crate::{Args, Error};

/// Placeholder for an id that the node chooses.
const NEW: &[u8] = b"*";
const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 1000;

pub(super) fn id(argument: &[u8]) -> Result<TimerId, Error> {
    let id = std::str::from_utf8(argument).ok().and_then(|text| text.parse().ok());
    id.ok_or(Error::fixed("ERR an id is 16 hexadecimal digits, a dash and the replication factor"))
}

/// Parses `id seconds [options ...] callback`.
pub(super) fn to_set(args: Args<'_>) -> Result<TimerRequest, Error> {
    let body = Value::Object(described(args)?).to_string();
    let parsed = timers::json::parse(body.as_bytes()).map_err(|bad| wrong(&bad.0))?;
    if args.at(1) == NEW {
        let factor = parsed.factor.unwrap_or(ReplicationFactor::DEFAULT);
        return Ok(TimerRequest::Create { spec: parsed.spec, factor });
    }
    let id = id(args.at(1))?;
    parsed.fits(id).map_err(|bad| wrong(&bad.0))?;
    Ok(TimerRequest::Put { id, spec: parsed.spec })
}

/// Returns the equivalent JSON.
fn described(args: Args<'_>) -> Result<Map<String, Value>, Error> {
    let mut root = Map::new();
    let mut timing = json!({ "interval": seconds(args, 2)? });
    let mut timeout = None;
    let mut tags = Vec::new();
    let mut at = 3;
    let callback = loop {
        match word(args, at)?.to_ascii_uppercase().as_str() {
            "REPEAT" => timing["repeat-for"] = seconds(args, at + 1)?,
            "REPLICAS" => {
                let factor = count(args, at + 1)?;
                root.insert("reliability".to_owned(), json!({ "replication-factor": factor }));
            }
            "RETRY" => {
                let (attempts, backoff) = (count(args, at + 1)?, seconds(args, at + 2)?);
                let retry = json!({ "attempts": attempts, "backoff": backoff });
                root.insert("retry".to_owned(), retry);
                at += 1;
            }
            "TIMEOUT" => timeout = Some(seconds(args, at + 1)?),
            "TAG" => {
                let (name, count) = (word(args, at + 1)?, count(args, at + 2)?);
                tags.push(json!({ "type": name, "count": count }));
                at += 1;
            }
            kind => break callback(kind, args, at + 1)?,
        }
        at += 2;
    };
    root.insert("timing".to_owned(), timing);
    root.insert("callback".to_owned(), with_timeout(callback, timeout)?);
    if !tags.is_empty() {
        root.insert("statistics".to_owned(), json!({ "tag-info": tags }));
    }
    Ok(root)
}

/// Parses the callback of this kind, whose words begin at `at` and are the last ones.
fn callback(kind: &str, args: Args<'_>, at: usize) -> Result<Value, Error> {
    let words: Result<Vec<&str>, Error> = (at..args.len()).map(|index| word(args, index)).collect();
    let words = words?;
    match (kind, words.as_slice()) {
        ("HTTP", [uri]) => Ok(json!({ "http": { "uri": uri } })),
        ("HTTP", [uri, opaque]) => Ok(json!({ "http": { "uri": uri, "opaque": opaque } })),
        ("PUBLISH", [channel, message]) => {
            Ok(json!({ "publish": { "channel": channel, "message": message } }))
        }
        ("COMMAND", [_, ..]) => Ok(json!({ "command": words })),
        _ => Err(Error::SYNTAX),
    }
}

fn with_timeout(mut callback: Value, timeout: Option<Value>) -> Result<Value, Error> {
    match (callback.get_mut("http"), timeout) {
        (Some(http), Some(timeout)) => http["timeout"] = timeout,
        (None, Some(_)) => return Err(wrong("only callbacks over HTTP have a timeout")),
        (_, None) => {}
    }
    Ok(callback)
}

/// Parses `[AFTER id] [LIMIT count]`.
pub(super) fn page(args: Args<'_>) -> Result<(Option<TimerId>, u32), Error> {
    let (mut after, mut limit) = (None, LIMIT_DEFAULT);
    for at in (1..args.len()).step_by(2) {
        match word(args, at)?.to_ascii_uppercase().as_str() {
            "AFTER" => after = Some(id(argument(args, at + 1)?)?),
            "LIMIT" => {
                let number = u32::try_from(count(args, at + 1)?).ok();
                let within = number.filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit = within.ok_or_else(|| wrong("LIMIT must be from 1 to 1000"))?;
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    Ok((after, limit))
}

fn argument<'a>(args: Args<'a>, index: usize) -> Result<&'a [u8], Error> {
    if index < args.len() { Ok(args.at(index)) } else { Err(Error::SYNTAX) }
}

fn word<'a>(args: Args<'a>, index: usize) -> Result<&'a str, Error> {
    let word = std::str::from_utf8(argument(args, index)?);
    word.map_err(|_| wrong("the words of a timer must be UTF-8"))
}

fn seconds(args: Args<'_>, index: usize) -> Result<Value, Error> {
    let number = word(args, index)?.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(|number| json!(number)).ok_or(Error::NOT_A_FLOAT)
}

fn count(args: Args<'_>, index: usize) -> Result<u64, Error> {
    let number = resp::parse_integer(argument(args, index)?);
    number.and_then(|number| u64::try_from(number).ok()).ok_or(Error::NOT_AN_INTEGER)
}

fn wrong(why: &str) -> Error {
    Error::new(format!("ERR {why}"))
}
