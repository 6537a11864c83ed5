//! COMMAND DOCS: the purpose and the arguments of commands; redis-cli takes its hints from it.

use resp::Reply;

use super::find;
use super::syntax::{Argument, Shape, arguments};
use crate::Error;
use crate::context::Context;
use crate::spec::{Spec, Table};

pub(super) fn docs(context: &mut Context<'_>) -> Result<(), Error> {
    let table = Table::default();
    let specs: Vec<&Spec> = if context.args.len() == 2 {
        table.iter().collect()
    } else {
        // Unknown names are skipped.
        context.args.from(2).filter_map(|name| find(&table, name)).collect()
    };
    context.reply.map(specs.len());
    specs.into_iter().for_each(|spec| named_docs(&mut context.reply, spec));
    Ok(())
}

fn named_docs(reply: &mut Reply<'_>, spec: &Spec) {
    reply.bulk(spec.full_name.as_bytes());
    let arguments = arguments(spec);
    let pairs = 4 + usize::from(!arguments.is_empty()) + usize::from(!spec.subcommands.is_empty());
    reply.map(pairs);
    pair(reply, "summary", spec.summary);
    pair(reply, "since", spec.since);
    pair(reply, "group", spec.group.name());
    pair(reply, "complexity", spec.complexity);
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        argument_list(reply, &arguments);
    }
    if !spec.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(spec.subcommands.len());
        spec.subcommands.iter().for_each(|sub| named_docs(reply, sub));
    }
}

fn pair(reply: &mut Reply<'_>, key: &str, value: &str) {
    reply.bulk(key.as_bytes());
    reply.bulk(value.as_bytes());
}

fn argument_list(reply: &mut Reply<'_>, arguments: &[Argument]) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| one_argument(reply, argument));
}

fn one_argument(reply: &mut Reply<'_>, argument: &Argument) {
    let flags: Vec<&str> = [("optional", argument.optional), ("multiple", argument.multiple)]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect();
    let inner = argument.shape.inner();
    let pairs = 2
        + usize::from(argument.key_spec_index.is_some())
        + usize::from(argument.token.is_some())
        + usize::from(!flags.is_empty())
        + usize::from(inner.is_some());
    reply.map(pairs);
    pair(reply, "name", &argument.name);
    pair(reply, "type", kind(argument));
    if let Some(index) = argument.key_spec_index {
        reply.bulk(b"key_spec_index");
        reply.integer(index);
    }
    if let Some(token) = &argument.token {
        pair(reply, "token", token);
    }
    if !flags.is_empty() {
        reply.bulk(b"flags");
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
    }
    if let Some(inner) = inner {
        reply.bulk(b"arguments");
        argument_list(reply, inner);
    }
}

fn kind(argument: &Argument) -> &'static str {
    match &argument.shape {
        Shape::OneOf(_) => "oneof",
        Shape::Block(_) => "block",
        Shape::Token => "pure-token",
        Shape::Value if argument.key_spec_index.is_some() => "key",
        Shape::Value => match argument.name.as_str() {
            "pattern" => "pattern",
            "increment" if argument.is_float => "double",
            "unix-time-seconds" | "unix-time-milliseconds" => "unix-time",
            "seconds" | "milliseconds" | "timeout" | "count" | "offset" | "start" | "end"
            | "increment" | "decrement" | "bit" | "value-of-bit" | "index" | "slot" | "cursor"
            | "client-id" | "protover" | "numreplicas" | "len" | "min-match-len" | "ttl"
            | "frequency" | "version" | "samples" => "integer",
            _ => "string",
        },
    }
}
