//! LATENCY: events that took longer than `latency-monitor-threshold`, and durations of commands.

use core::fmt::Write as _;

use super::{ADMIN, LOADING_STALE, SERVER};
use crate::context::Context;
use crate::help::help;
use crate::spec::{Spec, Table};
use crate::{Error, LatencyEvent};

pub(super) const SPEC: Spec = Spec {
    name: "latency",
    full_name: "latency",
    summary: "Shows causes of slow replies.",
    since: "2.8.13",
    complexity: "Depends on subcommand.",
    arity: -2,
    subcommands: SUBCOMMANDS,
    ..SERVER
};

const ADMIN_SERVER: Spec = Spec { flags: ADMIN, since: "2.8.13", ..SERVER };

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "doctor",
        full_name: "latency|doctor",
        summary: "Reports the recorded events and possible remedies as text.",
        arity: 2,
        run: Some(doctor),
        ..ADMIN_SERVER
    },
    Spec {
        name: "graph",
        full_name: "latency|graph",
        summary: "Draws the samples of an event.",
        syntax: "event",
        arity: 3,
        run: Some(graph),
        ..ADMIN_SERVER
    },
    Spec {
        name: "help",
        full_name: "latency|help",
        summary: "Shows this text.",
        arity: 2,
        flags: LOADING_STALE,
        run: Some(help),
        ..ADMIN_SERVER
    },
    Spec {
        name: "histogram",
        full_name: "latency|histogram",
        summary: "Returns histograms of the duration of commands.",
        syntax: "[command [command ...]]",
        since: "7.0.0",
        complexity: "O(N) where N is the number of commands with latency information being \
                     retrieved.",
        arity: -2,
        run: Some(histogram),
        ..ADMIN_SERVER
    },
    Spec {
        name: "history",
        full_name: "latency|history",
        summary: "Returns the samples of an event.",
        syntax: "event",
        arity: 3,
        run: Some(history),
        ..ADMIN_SERVER
    },
    Spec {
        name: "latest",
        full_name: "latency|latest",
        summary: "Returns the newest sample of each event.",
        arity: 2,
        run: Some(latest),
        ..ADMIN_SERVER
    },
    Spec {
        name: "reset",
        full_name: "latency|reset",
        summary: "Forgets some events, or all.",
        syntax: "[event [event ...]]",
        arity: -2,
        run: Some(reset),
        ..ADMIN_SERVER
    },
];

fn latest(context: &mut Context<'_>) -> Result<(), Error> {
    let events = context.host.latency_events();
    context.reply.array(events.len());
    for event in events {
        let newest = event.samples.last().expect("an event has samples");
        context.reply.array(4);
        context.reply.bulk(event.name.as_bytes());
        context.reply.integer(newest.unix_seconds.cast_signed());
        context.reply.integer(newest.millis.cast_signed());
        context.reply.integer(event.millis_max.cast_signed());
    }
    Ok(())
}

fn named(context: &Context<'_>) -> Option<LatencyEvent> {
    let name = context.args.at(2);
    context.host.latency_events().into_iter().find(|event| event.name.as_bytes() == name)
}

fn history(context: &mut Context<'_>) -> Result<(), Error> {
    let samples = named(context).map(|event| event.samples).unwrap_or_default();
    context.reply.array(samples.len());
    for sample in samples {
        context.reply.array(2);
        context.reply.integer(sample.unix_seconds.cast_signed());
        context.reply.integer(sample.millis.cast_signed());
    }
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<(), Error> {
    let events = context.host.latency_events();
    let mut forgotten = 0;
    for event in events {
        let wanted = context.args.len() == 2
            || context.args.from(2).any(|name| name == event.name.as_bytes());
        if wanted && context.host.forget_latency_event(event.name) {
            forgotten += 1;
        }
    }
    context.reply.integer(forgotten);
    Ok(())
}

fn histogram(context: &mut Context<'_>) -> Result<(), Error> {
    let mut counts = context.host.command_counts();
    counts.retain(|counts| counts.histogram.total() > 0);
    if context.args.len() > 2 {
        let table = Table::default();
        let names: Vec<&[u8]> = context.args.from(2).collect();
        // A container matches all of its subcommands.
        counts.retain(|counts| {
            let root = counts.spec.full_name.split('|').next().unwrap_or_default();
            names.iter().any(|name| {
                counts.spec.full_name.as_bytes().eq_ignore_ascii_case(name)
                    || (root.as_bytes().eq_ignore_ascii_case(name) && table.find(name).is_some())
            })
        });
    }
    let reply = &mut context.reply;
    reply.map(counts.len());
    for counts in counts {
        reply.bulk(counts.spec.full_name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(counts.histogram.total().cast_signed());
        reply.bulk(b"histogram_usec");
        let lines = counts.histogram.cumulative_micros();
        reply.map(lines.len());
        for (micros, count) in lines {
            reply.integer(micros.cast_signed());
            reply.integer(count.cast_signed());
        }
    }
    Ok(())
}

fn doctor(context: &mut Context<'_>) -> Result<(), Error> {
    let threshold = context.host.settings().latency_monitor_threshold;
    let events = context.host.latency_events();
    let mut text = String::new();
    if threshold.is_zero() && events.is_empty() {
        text.push_str(
            "The latency monitor is off. CONFIG SET latency-monitor-threshold MILLISECONDS turns it \
             on; operations that take longer are then recorded.\n",
        );
    } else if events.is_empty() {
        let millis = threshold.as_millis();
        let _ = writeln!(text, "Nothing has taken {millis} ms or more.");
    }
    for event in &events {
        let count = event.samples.len();
        let sum: u64 = event.samples.iter().map(|sample| sample.millis).sum();
        let _ = writeln!(
            text,
            "{}: {count} samples, {} ms on average, {} ms at worst. {}",
            event.name,
            sum / count as u64,
            event.millis_max,
            advice(event.name),
        );
    }
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn advice(event: &str) -> &'static str {
    match event {
        "command" => {
            "SLOWLOG GET shows which commands; those that walk over all keys are the usual ones."
        }
        "fast-command" => {
            "Commands that cannot be slow by themselves waited for something: another command on \
             the same slot, or a processor that others use too."
        }
        "expire-cycle" => "Many keys expired at the same moment; spread their times a little.",
        "eviction-cycle" => "Memory is full and writes must wait for room; see maxmemory.",
        _ => "",
    }
}

/// Height of the graph in rows.
const GRAPH_ROWS: u64 = 4;

fn graph(context: &mut Context<'_>) -> Result<(), Error> {
    let Some(event) = named(context) else {
        let name = String::from_utf8_lossy(context.args.at(2));
        return Err(Error::new(format!("ERR No samples available for event '{name}'")));
    };
    let high = event.samples.iter().map(|sample| sample.millis).max().unwrap_or(0);
    let low = event.samples.iter().map(|sample| sample.millis).min().unwrap_or(0);
    let mut text = format!(
        "{} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        event.name,
        event.millis_max,
        "-".repeat(80),
    );
    for row in (1..=GRAPH_ROWS).rev() {
        let line = event.samples.iter().map(|sample| {
            let height = (sample.millis * GRAPH_ROWS).div_ceil(high.max(1));
            if height >= row { '#' } else { ' ' }
        });
        text.push_str(line.collect::<String>().trim_end());
        text.push('\n');
    }
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}
