//! BITOP: combines strings bit by bit. A shorter string is padded with zeros.

use std::sync::Arc;

use settings::NotifyClasses;
use store::{NewValue, SHARED_FROM_BYTES};

use crate::Error;
use crate::context::Context;
use crate::strings::{put, string_of, with_bytes};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BitOperation {
    And,
    Or,
    Xor,
    Not,
}

impl BitOperation {
    fn parse(word: &[u8]) -> Result<BitOperation, Error> {
        let names: [(&[u8], BitOperation); 4] = [
            (b"and", BitOperation::And),
            (b"or", BitOperation::Or),
            (b"xor", BitOperation::Xor),
            (b"not", BitOperation::Not),
        ];
        let named = names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        named.map(|(_, operation)| *operation).ok_or(Error::SYNTAX)
    }

    /// Combines one more string into the result.
    fn combine(self, result: &mut Vec<u8>, bytes: &[u8]) {
        if result.len() < bytes.len() {
            result.resize(bytes.len(), 0);
        }
        let (common, beyond) = result.split_at_mut(bytes.len());
        let pairs = common.iter_mut().zip(bytes);
        match self {
            BitOperation::And => {
                pairs.for_each(|(to, from)| *to &= from);
                beyond.fill(0);
            }
            BitOperation::Or => pairs.for_each(|(to, from)| *to |= from),
            BitOperation::Xor => pairs.for_each(|(to, from)| *to ^= from),
            BitOperation::Not => unreachable!("it takes a single string"),
        }
    }
}

pub(super) fn bitop(context: &mut Context<'_>) -> Result<(), Error> {
    let operation = BitOperation::parse(context.args.at(1))?;
    if operation == BitOperation::Not && context.args.len() != 4 {
        return Err(Error::fixed("ERR BITOP NOT must be called with a single source key."));
    }
    let result = combined(context, operation)?;
    let len = result.len();
    let target = context.key(2);
    if len > 0 {
        let value = if len < SHARED_FROM_BYTES {
            NewValue::Raw(&result)
        } else {
            NewValue::Shared(Arc::new(result))
        };
        put(&mut context.keys, &target, value, None);
        context.keys.notify(NotifyClasses::STRING, "set", target.bytes());
    } else if context.keys.remove(&target) {
        context.keys.notify(NotifyClasses::GENERIC, "del", target.bytes());
    }
    context.reply.integer(len.cast_signed() as i64);
    Ok(())
}

/// Returns the combined strings of all source keys; a missing one counts as empty.
fn combined(context: &mut Context<'_>, operation: BitOperation) -> Result<Vec<u8>, Error> {
    let first = context.key(3);
    let mut result = match context.keys.read(&first) {
        Some(found) => with_bytes(string_of(&found)?, <[u8]>::to_vec),
        None => Vec::new(),
    };
    if operation == BitOperation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for index in 4..context.args.len() {
        let key = context.key(index);
        match context.keys.read(&key) {
            Some(found) => {
                with_bytes(string_of(&found)?, |bytes| operation.combine(&mut result, bytes));
            }
            None => operation.combine(&mut result, b""),
        }
    }
    Ok(result)
}
