//! A timer's JSON, in both directions. Input is validated here, completely and with a reason a client can act
//! on; after this a timer's description is always valid.
//!
//! Called by the server's HTTP routes and its `TIMER.*` commands. Unknown members are ignored, so that a client
//! written for a later version still gets its timer.

use serde_json::{Map, Value, json};

use crate::ids::{ReplicationFactor, TimeSpan, TimerId};
use crate::spec::{
    BODY_BYTES_MAX, CALL_TIMEOUT_DEFAULT, CALL_TIMEOUT_MAX, COMMAND_WORDS_MAX, Callback,
    REPEATED_INTERVAL_MIN, RETRY_ATTEMPTS_MAX, RETRY_BACKOFF_MAX, RETRY_BACKOFF_MIN, Retry,
    SPAN_MAX, TAG_BYTES_MAX, TAGS_MAX, TimerSpec, TimerTag,
};
use crate::target::HttpTarget;

/// The reason why a request was not accepted, in words for its sender. Nothing was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTimer(pub String);

/// A whole description: the timer, and its replication factor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    pub spec: TimerSpec,
    /// `None` if the request does not specify it.
    pub factor: Option<ReplicationFactor>,
}

type Checked<T> = Result<T, BadTimer>;

pub fn parse(body: &[u8]) -> Checked<Described> {
    if body.len() > BODY_BYTES_MAX {
        return bad(format!("the body is longer than {BODY_BYTES_MAX} bytes"));
    }
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| BadTimer(format!("the body is not JSON: {error}")))?;
    let Value::Object(root) = &value else { return bad("the body must be a JSON object") };
    let (interval, repeat_for) = timing(root)?;
    let spec = TimerSpec {
        interval,
        repeat_for,
        callback: callback(root)?,
        retry: retry(root)?,
        tags: tags(root)?,
    };
    Ok(Described { spec, factor: factor(root)? })
}

impl Described {
    /// Checks a `PUT`: the id contains the replication factor, which cannot change.
    pub fn fits(&self, id: TimerId) -> Checked<()> {
        match self.factor {
            Some(factor) if factor != id.factor => bad(format!(
                "reliability.replication-factor is {}, but the timer's id says {}; it cannot change",
                factor.count(),
                id.factor.count(),
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns the JSON that would create this timer.
pub fn spec_to_json(spec: &TimerSpec, factor: ReplicationFactor) -> Value {
    let callback = match &spec.callback {
        Callback::Http { target, opaque, timeout } => {
            json!({ "http": { "uri": target.uri(), "opaque": opaque, "timeout": seconds(*timeout) } })
        }
        Callback::Publish { channel, message } => {
            json!({ "publish": { "channel": channel, "message": message } })
        }
        Callback::Command(words) => json!({ "command": words }),
    };
    let mut root = json!({
        "timing": { "interval": seconds(spec.interval), "repeat-for": seconds(spec.repeat_for) },
        "callback": callback,
        "reliability": { "replication-factor": factor.count() },
    });
    if spec.retry != Retry::NONE {
        let backoff = seconds(spec.retry.backoff);
        root["retry"] = json!({ "attempts": spec.retry.attempts, "backoff": backoff });
    }
    if !spec.tags.is_empty() {
        let tag = |tag: &TimerTag| json!({ "type": tag.name, "count": tag.count });
        let tags: Vec<Value> = spec.tags.iter().map(tag).collect();
        root["statistics"] = json!({ "tag-info": tags });
    }
    root
}

/// Returns whole seconds as an integer, as they were most likely sent.
pub fn seconds(span: TimeSpan) -> Value {
    if span.0.is_multiple_of(1000) { json!(span.0 / 1000) } else { json!(span.0 as f64 / 1000.0) }
}

fn timing(root: &Map<String, Value>) -> Checked<(TimeSpan, TimeSpan)> {
    let Some(timing) = object(root, "timing", "timing")? else {
        return bad("timing.interval is missing");
    };
    let Some(interval) = span(timing, "interval", "timing.interval", SPAN_MAX)? else {
        return bad("timing.interval is missing");
    };
    let repeat = span(timing, "repeat-for", "timing.repeat-for", SPAN_MAX)?;
    let repeat_for = repeat.unwrap_or(interval);
    if interval == TimeSpan::ZERO && repeat_for != TimeSpan::ZERO {
        return bad("timing.interval is 0, and a timer that repeats needs an interval");
    }
    if repeat_for.0 >= interval.times(2).0
        && TimeSpan::ZERO < interval
        && interval < REPEATED_INTERVAL_MIN
    {
        return bad("timing.interval must be at least 0.01 seconds in a timer that repeats");
    }
    Ok((interval, repeat_for))
}

fn callback(root: &Map<String, Value>) -> Checked<Callback> {
    let Some(callback) = object(root, "callback", "callback")? else {
        return bad("callback is missing");
    };
    let known = ["http", "publish", "command"];
    let mut present = known.into_iter().filter(|kind| callback.contains_key(*kind));
    let kind = present.next();
    if present.next().is_some() {
        return bad("callback must be one of http, publish and command, not several");
    }
    match kind {
        Some("http") => http(callback),
        Some("publish") => publish(callback),
        Some(_) => command(&callback["command"]),
        None => bad("callback must hold http, publish or command"),
    }
}

fn http(callback: &Map<String, Value>) -> Checked<Callback> {
    let http = object(callback, "http", "callback.http")?.expect("the caller saw it");
    let Some(uri) = text(http, "uri", "callback.http.uri")? else {
        return bad("callback.http.uri is missing");
    };
    let target =
        HttpTarget::parse(uri).map_err(|why| BadTimer(format!("callback.http.uri {why}")))?;
    let opaque = text(http, "opaque", "callback.http.opaque")?.unwrap_or_default().to_owned();
    let timeout = span(http, "timeout", "callback.http.timeout", CALL_TIMEOUT_MAX)?;
    if timeout == Some(TimeSpan::ZERO) {
        return bad("callback.http.timeout must be more than 0");
    }
    Ok(Callback::Http { target, opaque, timeout: timeout.unwrap_or(CALL_TIMEOUT_DEFAULT) })
}

fn publish(callback: &Map<String, Value>) -> Checked<Callback> {
    let publish = object(callback, "publish", "callback.publish")?.expect("the caller saw it");
    let channel = text(publish, "channel", "callback.publish.channel")?.unwrap_or_default();
    if channel.is_empty() {
        return bad("callback.publish.channel is missing or empty");
    }
    let message = text(publish, "message", "callback.publish.message")?.unwrap_or_default();
    Ok(Callback::Publish { channel: channel.to_owned(), message: message.to_owned() })
}

fn command(words: &Value) -> Checked<Callback> {
    const SHAPE: &str = "callback.command must be a list of 1 to 128 strings";
    let Value::Array(words) = words else { return bad(SHAPE) };
    let words: Option<Vec<String>> =
        words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    match words {
        Some(words) if (1..=COMMAND_WORDS_MAX).contains(&words.len()) && !words[0].is_empty() => {
            Ok(Callback::Command(words))
        }
        Some(_) | None => bad(SHAPE),
    }
}

fn factor(root: &Map<String, Value>) -> Checked<Option<ReplicationFactor>> {
    let Some(reliability) = object(root, "reliability", "reliability")? else { return Ok(None) };
    let Some(value) = reliability.get("replication-factor") else { return Ok(None) };
    match value.as_u64().and_then(ReplicationFactor::new) {
        Some(factor) => Ok(Some(factor)),
        None => bad("reliability.replication-factor must be a whole number from 1 to 255"),
    }
}

fn retry(root: &Map<String, Value>) -> Checked<Retry> {
    let Some(retry) = object(root, "retry", "retry")? else { return Ok(Retry::NONE) };
    let attempts = retry.get("attempts").map_or(Some(1), Value::as_u64);
    let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
    let Some(attempts) = attempts.filter(|attempts| *attempts <= RETRY_ATTEMPTS_MAX) else {
        return bad(format!("retry.attempts must be a whole number up to {RETRY_ATTEMPTS_MAX}"));
    };
    let backoff = span(retry, "backoff", "retry.backoff", RETRY_BACKOFF_MAX)?;
    if backoff.is_some_and(|backoff| attempts > 0 && backoff < RETRY_BACKOFF_MIN) {
        return bad("retry.backoff must be at least 0.1 seconds");
    }
    Ok(Retry { attempts, backoff: backoff.unwrap_or(Retry::NONE.backoff) })
}

fn tags(root: &Map<String, Value>) -> Checked<Vec<TimerTag>> {
    let Some(statistics) = object(root, "statistics", "statistics")? else {
        return Ok(Vec::new());
    };
    let Some(list) = statistics.get("tag-info") else { return Ok(Vec::new()) };
    let Value::Array(list) = list else { return bad("statistics.tag-info must be a list") };
    if list.len() > TAGS_MAX {
        return bad(format!("statistics.tag-info holds more than {TAGS_MAX} tags"));
    }
    list.iter().map(tag).collect()
}

fn tag(value: &Value) -> Checked<TimerTag> {
    let Value::Object(tag) = value else {
        return bad("statistics.tag-info must hold objects with type and count");
    };
    let name = text(tag, "type", "statistics.tag-info type")?.unwrap_or_default();
    if !(1..=TAG_BYTES_MAX).contains(&name.len()) || !name.bytes().all(|b| b.is_ascii_uppercase()) {
        return bad("statistics.tag-info type must be 1 to 16 letters from A to Z");
    }
    let count = tag.get("count").map_or(Some(1), Value::as_u64);
    match count.and_then(|count| u32::try_from(count).ok()) {
        Some(count) => Ok(TimerTag { name: name.to_owned(), count }),
        None => bad("statistics.tag-info count must be a whole number below 4294967296"),
    }
}

fn object<'a>(
    parent: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Checked<Option<&'a Map<String, Value>>> {
    match parent.get(key) {
        None => Ok(None),
        Some(Value::Object(inside)) => Ok(Some(inside)),
        Some(_) => bad(format!("{path} must be an object")),
    }
}

fn text<'a>(parent: &'a Map<String, Value>, key: &str, path: &str) -> Checked<Option<&'a str>> {
    match parent.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => bad(format!("{path} must be a string")),
    }
}

fn span(
    parent: &Map<String, Value>,
    key: &str,
    path: &str,
    most: TimeSpan,
) -> Checked<Option<TimeSpan>> {
    let Some(value) = parent.get(key) else { return Ok(None) };
    let Some(secs) = value.as_f64().filter(|secs| *secs >= 0.0) else {
        return bad(format!("{path} must be a number of seconds, 0 or more"));
    };
    if secs > most.0 as f64 / 1000.0 {
        return bad(format!("{path} must be at most {} seconds", most.0 / 1000));
    }
    // Round up to the next millisecond, because a timer is never early; but 1.1 is 1100, although it is a
    // little more than that in binary.
    let micros = (secs * 1e6).round() as u64;
    Ok(Some(TimeSpan(micros.div_ceil(1000))))
}

fn bad<T>(why: impl Into<String>) -> Checked<T> {
    Err(BadTimer(why.into()))
}

#[cfg(test)]
mod tests;
