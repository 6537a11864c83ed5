//! SWAPDB: exchanges the contents of two databases.
//!
//! All slots are locked at once, so every client sees both databases exchanged, or neither. Another node could not do
//! that at the same moment, so a cluster refuses the command, as Redis Cluster and Valkey do.

use placement::Slot;

use crate::Error;
use crate::connection::database_of;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "swapdb",
    full_name: "swapdb",
    summary: "Exchanges two databases.",
    syntax: "index1 index2",
    since: "4.0.0",
    complexity: "O(1) for each slot.",
    group: Group::Server,
    arity: 3,
    flags: Flags::of(&[Flag::Write, Flag::Fast, Flag::WholeKeyspace, Flag::Dangerous]),
    run: Some(swapdb),
    ..BLANK
}];

fn swapdb(context: &mut Context<'_>) -> Result<(), Error> {
    if context.keys.env().one_slot_only || !context.keys.env().cluster.serves_all() {
        return Err(NOT_IN_CLUSTER);
    }
    let number = |index: usize| context.integer(index).ok().and_then(|it| i32::try_from(it).ok());
    let one = number(1).ok_or(Error::fixed("ERR invalid first DB index"))?;
    let other = number(2).ok_or(Error::fixed("ERR invalid second DB index"))?;
    let (one, other) = (database_of(context, one)?, database_of(context, other)?);
    // Another node may have begun to copy a slot before this one knows the map in which it is a member.
    if context.keys.has_copies() {
        return Err(NOT_IN_CLUSTER);
    }
    if one != other {
        Slot::all().for_each(|slot| {
            let table = context.keys.table(slot);
            if table.len_in(one) + table.len_in(other) > 0 {
                context.keys.swap_databases(slot, one, other);
            }
        });
    }
    context.reply.ok();
    Ok(())
}

const NOT_IN_CLUSTER: Error = Error::fixed("ERR SWAPDB is not allowed in cluster mode");

#[cfg(test)]
mod tests {
    use crate::testing::{TestNode, check, check_on};

    #[test]
    fn two_databases_are_exchanged_for_everybody() {
        check(
            r#"
            > SET a zero
            OK
            > SET gone 1
            OK
            2> SELECT 1
            OK
            2> SET a one PX 1000
            OK
            2> WATCH a missing
            OK
            > SWAPDB 0 1
            OK
            > GET a
            "one"
            > PTTL a
            (integer) 1000
            2> GET a
            "zero"
            2> MULTI
            OK
            2> EXEC
            (nil)
            2> DBSIZE
            (integer) 2
            > DBSIZE
            (integer) 1
            > SWAPDB 1 3
            OK
            2> DBSIZE
            (integer) 0
            2> SELECT 3
            OK
            2> KEYS a
            1) "a"
            > SWAPDB 0 0
            OK
            +1s
            > GET a
            (nil)
            > DBSIZE
            (integer) 0
            "#,
        );
    }

    #[test]
    fn a_transaction_may_swap() {
        check(
            r#"
            > SET a 1
            OK
            > MULTI
            OK
            > SWAPDB 0 2
            QUEUED
            > GET a
            QUEUED
            > SELECT 2
            QUEUED
            > GET a
            QUEUED
            > EXEC
            1) OK
            2) (nil)
            3) OK
            4) "1"
            > GET a
            "1"
            "#,
        );
    }

    #[test]
    fn numbers_are_checked_and_nothing_changes() {
        check(
            r"
            > SWAPDB x 1
            (error) ERR invalid first DB index
            > SWAPDB 0 x
            (error) ERR invalid second DB index
            > SWAPDB 0 99999999999
            (error) ERR invalid second DB index
            > SWAPDB 0 16
            (error) ERR DB index is out of range
            > SWAPDB -1 0
            (error) ERR DB index is out of range
            ",
        );
    }

    #[test]
    fn a_cluster_refuses_it() {
        let mut node = TestNode::default();
        node.env.one_slot_only = true;
        check_on(&mut node, "> SWAPDB 0 1\n(error) ERR SWAPDB is not allowed in cluster mode");
    }

    #[test]
    fn a_node_of_which_another_has_copies_refuses_it_and_changes_nothing() {
        let mut node = TestNode::default();
        node.slots.has_copies = true;
        let refused =
            "> SET a 1\nOK\n> SWAPDB 0 1\n(error) ERR SWAPDB is not allowed in cluster mode\n";
        check_on(&mut node, &format!("{refused}> DBSIZE\n(integer) 1"));
    }
}
