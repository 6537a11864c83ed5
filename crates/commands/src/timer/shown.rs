//! Writes answers about timers as replies, in the words that TIMER.SET accepts.

use resp::Reply;
use timers::{Callback, Page, Record, TimeSpan, TimerLife};

/// Writes a timer as a map, or null if there is none or it has ended.
pub(super) fn timer(record: Option<&Record>, reply: &mut Reply<'_>) {
    let Some((record, TimerLife::Pending { spec, left, due_in, .. })) =
        record.map(|record| (record, &record.life))
    else {
        return reply.null();
    };
    reply.map(9);
    pair("id", &record.id.to_string(), reply);
    pair("due-in", &seconds(*due_in), reply);
    number("pops-left", u64::from(*left), reply);
    number("sequence-number", u64::from(record.sequence.0), reply);
    pair("interval", &seconds(spec.interval), reply);
    pair("repeat-for", &seconds(spec.repeat_for), reply);
    number("replicas", record.id.factor.count() as u64, reply);
    number("retries", u64::from(spec.retry.attempts), reply);
    reply.bulk(b"callback");
    words(&callback(&spec.callback), reply);
}

/// Writes the start of the next page, null at the end, and the ids of this page.
pub(super) fn page(page: &Page, reply: &mut Reply<'_>) {
    let ids: Vec<String> = page.timers.iter().map(|record| record.id.to_string()).collect();
    reply.array(2);
    match page.next {
        Some(next) => reply.bulk(next.to_string().as_bytes()),
        None => reply.null(),
    }
    words(&ids, reply);
}

fn callback(callback: &Callback) -> Vec<String> {
    match callback {
        Callback::Http { target, opaque, .. } => {
            vec!["HTTP".to_owned(), target.uri().to_owned(), opaque.clone()]
        }
        Callback::Publish { channel, message } => {
            vec!["PUBLISH".to_owned(), channel.clone(), message.clone()]
        }
        Callback::Command(words) => {
            let command = std::iter::once("COMMAND".to_owned());
            command.chain(words.iter().cloned()).collect()
        }
    }
}

fn seconds(span: TimeSpan) -> String {
    timers::json::seconds(span).to_string()
}

fn words(words: &[String], reply: &mut Reply<'_>) {
    reply.array(words.len());
    words.iter().for_each(|word| reply.bulk(word.as_bytes()));
}

fn pair(name: &str, value: &str, reply: &mut Reply<'_>) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn number(name: &str, value: u64, reply: &mut Reply<'_>) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}
