//! This node's timers in Prometheus's text format, for `/metrics`. Called by `metrics.rs` of the server.

use std::fmt::Write;

use timers::{LATENESS_BOUNDS, Stats};

/// Returns each number with its name, its kind and its help text.
fn numbers(stats: &Stats) -> [(&'static str, &'static str, &'static str, u64); 9] {
    [
        ("pending", "gauge", "Pending timers whose primary is this node.", stats.primary),
        ("held", "gauge", "Pending timers of which this node has a copy.", stats.held),
        ("due", "gauge", "Timers whose pop is under way on this node.", stats.due),
        ("tombstones", "gauge", "Tombstones of ended timers.", stats.tombstones),
        ("calls_in_flight", "gauge", "Callbacks being made.", stats.calls_in_flight),
        ("calls_waiting", "gauge", "Callbacks that wait for their turn.", stats.calls_waiting),
        ("popped_total", "counter", "Callbacks that succeeded.", stats.popped),
        ("failed_total", "counter", "Callbacks that failed.", stats.failed),
        ("dead_letters_total", "counter", "Pops given up after all retries.", stats.given_up),
    ]
}

pub(crate) fn prometheus(stats: &Stats) -> String {
    let mut page = String::with_capacity(2048);
    for (name, kind, help, value) in numbers(stats) {
        head(&mut page, name, kind, help);
        let _ = writeln!(page, "opencluster_timers_{name} {value}");
    }
    lateness(&mut page, stats);
    page
}

/// Writes the histogram of lateness. Each bucket includes the counts of the smaller ones.
fn lateness(page: &mut String, stats: &Stats) {
    let help = "Delay between a timer's due time and the start of its callback.";
    head(page, "lateness_seconds", "histogram", help);
    let mut upto = 0;
    for (bound, count) in LATENESS_BOUNDS.iter().zip(stats.lateness.counts) {
        upto += count;
        let bound = *bound as f64 / 1000.0;
        let _ =
            writeln!(page, "opencluster_timers_lateness_seconds_bucket{{le=\"{bound}\"}} {upto}");
    }
    let count = stats.lateness.count();
    let sum = stats.lateness.total_ms as f64 / 1000.0;
    let _ = writeln!(page, "opencluster_timers_lateness_seconds_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(page, "opencluster_timers_lateness_seconds_sum {sum}");
    let _ = writeln!(page, "opencluster_timers_lateness_seconds_count {count}");
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP opencluster_timers_{name} {help}");
    let _ = writeln!(page, "# TYPE opencluster_timers_{name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_lateness_holds_the_smaller_ones() {
        let mut stats = Stats { popped: 4, ..Stats::default() };
        stats.lateness.counts[0] = 2;
        stats.lateness.counts[5] = 1;
        stats.lateness.counts[13] = 1;
        stats.lateness.total_ms = 20_045;
        let page = prometheus(&stats);
        for line in [
            "opencluster_timers_popped_total 4",
            "opencluster_timers_lateness_seconds_bucket{le=\"0.001\"} 2",
            "opencluster_timers_lateness_seconds_bucket{le=\"0.05\"} 3",
            "opencluster_timers_lateness_seconds_bucket{le=\"10\"} 3",
            "opencluster_timers_lateness_seconds_bucket{le=\"+Inf\"} 4",
            "opencluster_timers_lateness_seconds_sum 20.045",
            "# TYPE opencluster_timers_lateness_seconds histogram",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
