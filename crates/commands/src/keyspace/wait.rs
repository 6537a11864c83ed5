//! WAIT: the number of backups that have everything this connection has written. By default a backup has
//! acknowledged a write before the client gets its reply; with `ack = "primary"` WAIT is the way to be sure.

use std::time::Duration;

use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Spec};
use crate::{Acknowledged, Block, Error};

pub(crate) const WAIT: &str = "wait";

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: WAIT,
    full_name: WAIT,
    summary: "Waits until N backups have this connection's writes; returns how many have.",
    syntax: "numreplicas timeout",
    since: "3.0.0",
    arity: 3,
    flags: Flags::of(&[Flag::NoScript]),
    run: Some(wait),
    ..BLANK
}];

fn wait(context: &mut Context<'_>) -> Result<(), Error> {
    let wanted = context.integer(1)?;
    let timeout = resp::parse_integer(context.args.at(2))
        .ok_or(Error::fixed("ERR timeout is not an integer or out of range"))?;
    let millis = u64::try_from(timeout).map_err(|_| Error::fixed("ERR timeout is negative"))?;
    let block = match millis {
        0 => Block::ForEver,
        millis => Block::For(Duration::from_millis(millis)),
    };
    // EXEC holds locks, so that the backups were counted before it began.
    let acknowledged = if context.session.in_exec {
        context.session.acknowledged.unwrap_or(Acknowledged::By(0))
    } else {
        context.host.count_acknowledged(wanted, block)
    };
    if let Acknowledged::By(backups) = acknowledged {
        context.reply.integer(i64::try_from(backups).unwrap_or(i64::MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn there_is_nothing_to_wait_for() {
        check(
            r"
            > WAIT 0 0
            (integer) 0
            > WAIT 3 1000
            (integer) 0
            > WAIT x 1
            (error) ERR value is not an integer or out of range
            > WAIT 0 x
            (error) ERR timeout is not an integer or out of range
            > WAIT 0 -1
            (error) ERR timeout is negative
            ",
        );
    }
}
