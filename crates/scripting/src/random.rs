//! `math.random` and `math.randomseed` with Redis's generator (`drand48` of the C library), so that a seed gives the
//! same numbers everywhere.

use core::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table};

use crate::args::integer;
use crate::raise::bad_argument;

/// The state of the generator at the start of a process, as Redis has it.
const START: u64 = 0x1234_ABCD_330E;
const BITS: u64 = (1 << 48) - 1;
const MAX: f64 = 2_147_483_647.0;

struct Generator(Cell<u64>);

impl Generator {
    fn seed(&self, seed: u32) {
        self.0.set((u64::from(seed) << 16) | 0x330E);
    }

    /// Returns a number from 0 to below 1.
    fn draw(&self) -> f64 {
        let next = self.0.get().wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & BITS;
        self.0.set(next);
        let number = (next >> 17) % 2_147_483_647;
        number as f64 / MAX
    }
}

/// Replaces the functions of `math`.
pub(crate) fn install(lua: &Lua, math: &Table) -> Result<()> {
    let generator = Rc::new(Generator(Cell::new(START)));
    let seeded = Rc::clone(&generator);
    let seed = lua.create_function(move |lua, args: MultiValue| {
        let seed = integer(lua, &args, 0, "randomseed")?;
        seeded.seed(seed as u32);
        Ok(())
    })?;
    math.raw_set("randomseed", seed)?;
    let random = lua.create_function(move |lua, args: MultiValue| {
        let part = generator.draw();
        let between = |low: i64, high: i64, number| {
            if low > high {
                return Err(bad_argument(lua, number, "random", "interval is empty"));
            }
            Ok((part * (high as f64 - low as f64 + 1.0)).floor() + low as f64)
        };
        match args.len() {
            0 => Ok(part),
            1 => between(1, integer(lua, &args, 0, "random")?, 1),
            2 => between(integer(lua, &args, 0, "random")?, integer(lua, &args, 1, "random")?, 2),
            _ => Err(crate::raise::raise(lua, "wrong number of arguments")),
        }
    })?;
    math.raw_set("random", random)
}
