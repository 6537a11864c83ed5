//! Fills with large sets, which are written to meanwhile.

use super::*;

impl Pair {
    /// Makes a random write to a set. Three of them become large.
    pub(super) fn write_set(&mut self) {
        let name = match self.roll(8) {
            0 => format!("{{tag}}{}", self.roll(40)),
            _ => format!("{{tag}}s{}", self.roll(3)),
        };
        let (first, what) = (self.roll(6_000), self.roll(16));
        let members =
            (first..first + 600).map(|number| format!("member {number}")).collect::<Vec<_>>();
        let seed = self.seed.clone();
        let key = seed.spread(&name);
        let (all, one) = (row(members.iter().map(String::as_str)), row([members[0].as_str()]));
        let effect = match what {
            0 => Effect::Remove { key, cause: Cause::Deleted },
            1 => Effect::Put { key, value: NewValue::Set(&all), expires_at: None },
            2 => Effect::Expire { key, at: Some(UnixMillis(9_000_000 + self.now)) },
            3 | 4 => Effect::RemoveMembers { key, members: &all },
            5 | 6 => Effect::AddMembers { key, members: &one },
            _ => Effect::AddMembers { key, members: &all },
        };
        self.apply(&key, &effect);
    }
}

fn members(range: core::ops::Range<u64>) -> Vec<u8> {
    let members: Vec<String> = range.map(|number| format!("member {number}")).collect();
    row(members.iter().map(String::as_str))
}

#[test]
fn a_large_set_goes_in_parts_and_a_write_to_it_costs_what_it_changes() {
    let mut pair = Pair::new(1);
    let (seed, names) = (pair.seed.clone(), ["{tag}one", "{tag}two", "{tag}three"]);
    for name in names {
        let key = seed.spread(name);
        pair.apply(&key, &Effect::AddMembers { key, members: &members(0..40_000) });
    }
    pair.primary.replica.add_downstream(LINK, pair.outbox.last());
    let mut source = FillSource::new(FILL, bucket(), LINK, REIGN);
    source.start(FillSize::default(), &mut pair.outbox);
    let mut steps = 0;
    while source.slot().is_some() {
        let Held { table, replica } = &mut pair.primary;
        source.send_chunk(table, replica, &pair.seed, &mut pair.outbox);
        for name in names {
            let key = seed.spread(name);
            let added = members(40_000 + steps..40_002 + steps);
            pair.apply(&key, &Effect::AddMembers { key, members: &added });
            let removed = members(steps * 37..steps * 37 + 2);
            pair.apply(&key, &Effect::RemoveMembers { key, members: &removed });
        }
        steps += 1;
    }
    let bytes = pair.outbox.unacknowledged_bytes();
    pair.primary.replica.downstream_mut(LINK).unwrap().join_wait_set(pair.outbox.last());
    source.end(Epoch(9), &mut pair.outbox);
    pair.deliver();
    assert!(pair.same());
    assert!(steps >= 3 * 40_000 * 12 / CHUNK_BYTES as u64, "only {steps} chunks");
    // Three sets of some 520 KB, and 6 small writes at each step.
    assert!(bytes < 3 * 600_000 + steps as usize * 6 * 200, "{bytes} bytes in {steps} steps");
}
