//! Runs GET and SET against a node in this process, case by case, for `cargo xtask instructions`: it
//! runs this under callgrind, which zeroes its counters at `begin_case` and writes them at `end_case`.
//!
//! Prints one line for each case: the node's place, the operation, the pipeline, the number of commands.
//! The allocator is the one of the binary.

use std::hint::black_box;
use std::io;

use server::measure::{Bench, MeasuredCluster, Operation};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Pipeline depths, each with the number of commands to count.
const PIPELINES: [(usize, usize); 3] = [(1, 2_048), (16, 8_192), (64, 16_384)];

fn main() -> io::Result<()> {
    for place in [MeasuredCluster::Alone, MeasuredCluster::OfThree] {
        let mut bench = Bench::start(place)?;
        for operation in [Operation::Get, Operation::Set] {
            for (pipeline, count) in PIPELINES {
                bench.run(operation, pipeline, 4 * pipeline)?;
                begin_case(count);
                bench.run(operation, pipeline, count)?;
                end_case(pipeline);
                println!("{} {} {pipeline} {count}", place_name(place), operation_name(operation));
            }
        }
    }
    Ok(())
}

/// A symbol for callgrind to stop at. The body differs from that of `end_case`, which keeps the two apart.
#[inline(never)]
fn begin_case(count: usize) {
    black_box(count);
}

/// A symbol for callgrind to stop at.
#[inline(never)]
fn end_case(pipeline: usize) {
    black_box(pipeline + 1);
}

fn place_name(place: MeasuredCluster) -> &'static str {
    match place {
        MeasuredCluster::Alone => "alone",
        MeasuredCluster::OfThree => "of-three",
    }
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "GET",
        Operation::Set => "SET",
    }
}
