//! PFDEBUG shows the registers of a HyperLogLog; PFSELFTEST tests the implementation on this machine.

use placement::SplitMix64;

use super::dense::{self, DENSE_BYTES};
use super::estimate::estimate;
use super::sketch::{REGISTERS, Sketch};
use super::{corrupted, found_sketch, sparse, store};
use crate::Error;
use crate::context::Context;
use crate::error::repeated;

/// Number of elements of the self test.
const TESTED_ELEMENTS: u64 = 50_000;
/// Six times the standard error of 1.04 / sqrt(16,384).
const ERROR_MAX: f64 = 6.0 * 0.008_125;
/// Maximum number of bytes of a subcommand's name that an error repeats.
const NAME_BYTES_MAX: usize = 128;

pub(super) fn pfdebug(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let found = context.keys.find(&key);
    let found = found.ok_or(Error::fixed("ERR The specified key does not exist"))?;
    let (sketch, expires_at) = (found_sketch(&found)?, found.expires_at);
    let name = context.args.at(1);
    match name.to_ascii_lowercase().as_slice() {
        b"getreg" => {
            let dense = as_dense(&sketch)?;
            let registers = dense.registers().map_err(corrupted)?;
            if !sketch.is_dense() {
                store(context, &key, &dense, expires_at);
            }
            context.reply.array(registers.len());
            registers.iter().for_each(|value| context.reply.integer(i64::from(*value)));
        }
        b"decode" if sketch.is_dense() => {
            return Err(Error::fixed("ERR HLL encoding is not sparse"));
        }
        b"decode" => {
            let runs: Vec<String> =
                sparse::runs(sketch.bytes()).map(sparse::Run::describe).collect();
            context.reply.bulk(runs.join(" ").as_bytes());
        }
        b"encoding" => context.reply.simple(if sketch.is_dense() { "dense" } else { "sparse" }),
        b"todense" => {
            let dense = as_dense(&sketch)?;
            if !sketch.is_dense() {
                store(context, &key, &dense, expires_at);
            }
            context.reply.integer((!sketch.is_dense()).into());
        }
        _ => {
            let name = repeated(name, NAME_BYTES_MAX);
            return Err(Error::new(format!("ERR Unknown PFDEBUG subcommand '{name}'")));
        }
    }
    Ok(())
}

fn as_dense(sketch: &Sketch) -> Result<Sketch, Error> {
    let mut dense = sketch.clone();
    dense.make_dense().map_err(corrupted)?;
    Ok(dense)
}

pub(super) fn pfselftest(context: &mut Context<'_>) -> Result<(), Error> {
    let mut rng = SplitMix64::new(context.keys.roll());
    test_registers(&mut rng)?;
    test_estimates(&mut rng)?;
    context.reply.ok();
    Ok(())
}

/// Sets all registers to random values, and reads them back.
fn test_registers(rng: &mut SplitMix64) -> Result<(), Error> {
    let mut bytes = vec![0; DENSE_BYTES];
    let values: Vec<u8> = (0..REGISTERS).map(|_| (rng.draw() % 64) as u8).collect();
    for (index, value) in values.iter().enumerate() {
        dense::set_register(&mut bytes, index, *value);
    }
    match (0..REGISTERS).find(|index| dense::register(&bytes, *index) != values[*index]) {
        Some(index) => Err(failed(&format!("register {index} has changed"))),
        None => Ok(()),
    }
}

/// Adds random elements to a sparse and to a dense HyperLogLog: both must estimate the same, and about right.
fn test_estimates(rng: &mut SplitMix64) -> Result<(), Error> {
    let (mut sparse, mut dense) = (Sketch::new(), as_dense(&Sketch::new())?);
    for count in 1..=TESTED_ELEMENTS {
        let element = rng.draw().to_le_bytes();
        let is_changed = sparse.add(&element).map_err(corrupted)?;
        if dense.add(&element).map_err(corrupted)? != is_changed {
            return Err(failed(&format!("the forms differ at element {count}")));
        }
        if count.is_power_of_two() || count == TESTED_ELEMENTS {
            let estimates =
                [&sparse, &dense].map(|sketch| sketch.registers().map(|it| estimate(&it)));
            let [Ok(one), Ok(other)] = estimates else { return Err(failed("corrupted registers")) };
            let error_max = (count as f64 * ERROR_MAX).max(1.0);
            if one != other || one.abs_diff(count) as f64 > error_max {
                return Err(failed(&format!("{one} and {other} estimated of {count}")));
            }
        }
    }
    Ok(())
}

fn failed(what: &str) -> Error {
    Error::new(format!("TESTFAILED {what}"))
}
