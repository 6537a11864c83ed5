//! WAIT: how many backups have what was written. Mostly a backup has acknowledged a write before the
//! client hears of it at all; with `ack = "primary"` this is the way to be sure.

use crate::Error;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "wait",
    full_name: "wait",
    summary: "Waits until every backup has what was written, and tells how many there are.",
    syntax: "numreplicas timeout",
    since: "3.0.0",
    arity: 3,
    flags: Flags::of(&[Flag::NoScript]),
    run: Some(wait),
    ..BLANK
}];

fn wait(context: &mut Context<'_>) -> Result<(), Error> {
    context.integer(1)?;
    let timeout = resp::parse_integer(context.args.at(2))
        .ok_or(Error::fixed("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Error::fixed("ERR timeout is negative"));
    }
    // The reply leaves when all that was written here is acknowledged by every backup there is; whoever
    // runs this holds it until then.
    let backups = context.keys.around().cluster.map().copies_wanted().saturating_sub(1);
    context.reply.integer(i64::try_from(backups).unwrap_or(i64::MAX));
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
