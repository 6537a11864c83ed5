//! MEMORY DOCTOR: explains the memory figures in words.

use super::stats::{MemoryStats, ratio};
use crate::context::Context;
use crate::{Error, MemoryFigures};

/// Minimum memory in use; below this, ratios are not meaningful.
const WORTH_JUDGING_BYTES: u64 = 5 << 20;
/// Minimum difference in bytes for a ratio to be reported.
const WORTH_TELLING_BYTES: u64 = 10 << 20;

pub(super) fn doctor(context: &mut Context<'_>) -> Result<(), Error> {
    let stats = MemoryStats::gather(context);
    let report = report(&stats.node);
    context.reply.verbatim("txt", report.as_bytes());
    Ok(())
}

fn report(node: &MemoryFigures) -> String {
    if node.allocated < WORTH_JUDGING_BYTES {
        return "There is too little in memory to judge: less than 5 MB.\n".to_owned();
    }
    let findings = findings(node);
    if findings.is_empty() {
        return "The memory is in order.\n".to_owned();
    }
    findings.iter().map(|finding| format!("* {finding}\n")).collect()
}

fn findings(node: &MemoryFigures) -> Vec<String> {
    let mut findings = Vec::new();
    if is_much_more(node.peak, node.allocated, 1.5) {
        findings.push(format!(
            "Peak: {} bytes were in use once, {} are now. The allocator gives the difference back \
             to the system little by little.",
            node.peak, node.allocated
        ));
    }
    if is_much_more(node.active, node.allocated, 1.1) {
        findings.push(format!(
            "Fragmentation: {} bytes are used, in pages of {} bytes together. Values of changing \
             sizes cause this; a restart, or moving the buckets away and back, compacts the \
             memory.",
            node.allocated, node.active
        ));
    }
    if is_much_more(node.resident, node.active, 1.1) {
        findings.push(format!(
            "Unused pages: the allocator holds {} bytes and uses {}. They are there for the next \
             writes, and go back to the system after a while.",
            node.resident, node.active
        ));
    }
    if is_much_more(node.process, node.resident, 1.1) {
        findings.push(format!(
            "Outside the allocator: the process has {} bytes, the allocator {}. Code, stacks and \
             buffers of the system are the rest.",
            node.process, node.resident
        ));
    }
    findings
}

fn is_much_more(whole: u64, part: u64, factor: f64) -> bool {
    ratio(whole, part) > factor && whole - part > WORTH_TELLING_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const SOUND: MemoryFigures = MemoryFigures {
        allocated: 100 * MB,
        peak: 100 * MB,
        startup: MB,
        active: 101 * MB,
        resident: 105 * MB,
        process: 110 * MB,
        links: 0,
        clients: MB,
    };

    #[test]
    fn each_fault_is_found_and_nothing_else() {
        assert_eq!(report(&SOUND), "The memory is in order.\n");
        let faulty = [
            ("* Peak", MemoryFigures { peak: 200 * MB, ..SOUND }),
            ("* Fragmentation", MemoryFigures { allocated: 80 * MB, ..SOUND }),
            ("* Unused pages", MemoryFigures { resident: 150 * MB, process: 151 * MB, ..SOUND }),
            ("* Outside", MemoryFigures { process: 150 * MB, ..SOUND }),
        ];
        for (begin, figures) in faulty {
            let told = report(&figures);
            assert!(told.starts_with(begin), "{told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }

    #[test]
    fn little_memory_is_not_judged() {
        let small = MemoryFigures { allocated: MB, peak: 50 * MB, ..SOUND };
        assert!(report(&small).starts_with("There is too little"));
    }
}
