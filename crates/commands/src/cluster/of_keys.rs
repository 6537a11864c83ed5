//! CLUSTER KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT: keys by their slot. A slot served by another node appears
//! empty, even if this node has a copy of it. Keys are those of the selected database.

use placement::Slot;
use store::ScanPosition;

use crate::Error;
use crate::context::Context;

pub(super) fn key_slot(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(i64::from(Slot::of(context.args.at(2)).number()));
    Ok(())
}

pub(super) fn count_keys(context: &mut Context<'_>) -> Result<(), Error> {
    let slot = slot_at(context, 2)?.ok_or(Error::fixed("ERR Invalid slot"))?;
    let database = context.session.database;
    let count = context.keys.table(slot).len_in(database);
    context.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn get_keys(context: &mut Context<'_>) -> Result<(), Error> {
    let slot = slot_at(context, 2)?;
    let count = usize::try_from(context.integer(3)?).ok();
    let (Some(slot), Some(count)) = (slot, count) else {
        return Err(Error::fixed("ERR Invalid slot or number of keys"));
    };
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let (database, start) = (context.session.database, ScanPosition::START);
    context.keys.table(slot).scan_database(database, start, count, |found| {
        if keys.len() < count {
            keys.push(found.item.key().to_vec());
        }
    });
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

fn slot_at(context: &Context<'_>, index: usize) -> Result<Option<Slot>, Error> {
    let number = context.integer(index)?;
    Ok(u16::try_from(number).ok().and_then(Slot::new))
}
