//! Metrics of the cluster as a node sees it, and command durations.

use std::time::Duration;

use cluster::status::{Health, ProblemKind, Severity};
use commands::Histogram;

use super::page::MetricsPage;

/// Bounds of the duration histogram (`le` labels), in microseconds: 1 us to 1 s.
const BOUNDS_MICROS: [u64; 11] =
    [1, 4, 16, 64, 256, 1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000];

/// The cluster, as this node sees it.
#[derive(Clone, Debug, Default)]
pub struct ClusterMetrics {
    pub epoch: u64,
    /// Maps that this process has followed.
    pub map_steps: u64,
    pub generation: u64,
    pub members: u64,
    /// True if this node is the leader, which keeps the log of map changes.
    pub leads: bool,
    pub health: Health,
    pub lease_valid: bool,
    /// Time until the lease expires; `None` for a node that needs none.
    pub lease_left: Option<Duration>,
    /// The largest difference between another node's wall clock and this one's.
    pub clock_skew: Duration,
    pub primaries: u64,
    pub backups: u64,
    pub buckets: u64,
    /// Buckets with fewer than two copies.
    pub buckets_without_backup: u64,
    /// Buckets with no copy at all.
    pub buckets_lost: u64,
    /// Moves that this node takes part in.
    pub moves: u64,
    /// Bytes sent by the current fill from this node.
    pub fill_sent_bytes: u64,
    pub fills_done: u64,
    pub fills_failed: u64,
    /// Commands that waited for a handover; below, the sum of their waits and the longest.
    pub handover_waits: u64,
    pub handover_waited: Duration,
    pub handover_longest: Duration,
    pub links: Vec<LinkMetrics>,
    pub durations: Vec<ClassDurations>,
}

/// Data sent to another node and not acknowledged yet.
#[derive(Clone, Debug)]
pub struct LinkMetrics {
    pub to: String,
    pub bytes: u64,
    pub frames: u64,
}

/// Durations of the commands of a class.
#[derive(Clone, Debug)]
pub struct ClassDurations {
    pub class: &'static str,
    pub total: Duration,
    pub histogram: Histogram,
}

impl ClusterMetrics {
    pub(crate) fn prometheus(&self) -> String {
        let mut page = MetricsPage::default();
        self.durations(&mut page);
        self.health(&mut page);
        self.map(&mut page);
        self.lease(&mut page);
        self.moves(&mut page);
        self.replication(&mut page);
        page.text()
    }

    fn durations(&self, page: &mut MetricsPage) {
        const NAME: &str = "command_duration_seconds";
        let help = "Time to run a command, by class, excluding queueing and the wait for a backup.";
        page.family(NAME, "histogram", help);
        for ClassDurations { class, total, histogram } in &self.durations {
            for micros in BOUNDS_MICROS {
                let bound = format!("{}", micros as f64 / 1e6);
                let count = histogram.within(Duration::from_micros(micros));
                let labels = [("class", *class), ("le", bound.as_str())];
                page.labelled(&format!("{NAME}_bucket"), &labels, count);
            }
            let count = histogram.total();
            page.labelled(&format!("{NAME}_bucket"), &[("class", *class), ("le", "+Inf")], count);
            let seconds = format!("{:.9}", total.as_secs_f64());
            page.labelled(&format!("{NAME}_sum"), &[("class", *class)], seconds);
            page.labelled(&format!("{NAME}_count"), &[("class", *class)], count);
        }
    }

    fn health(&self, page: &mut MetricsPage) {
        let help = "The verdict of `opencluster status`: 0 all is well, 1 warning, 2 failing.";
        page.gauge("health", help, self.health.severity as u64);
        page.family("health_problem", "gauge", "1 while there is a problem of this kind.");
        for kind in ProblemKind::ALL {
            let severity = match kind.severity() {
                Severity::Failing => "failing",
                Severity::Warning | Severity::Ok => "warning",
            };
            let labels = [("kind", kind.name()), ("severity", severity)];
            page.labelled("health_problem", &labels, u64::from(self.health.has(kind)));
        }
    }

    fn map(&self, page: &mut MetricsPage) {
        page.gauge("map_epoch", "Changes of the map so far.", self.epoch);
        let help = "Steps in which this node has followed the map since its start; each may be many changes.";
        page.counter("map_steps_total", help, self.map_steps);
        let help = "Generation of the map: 1, incremented by each takeover.";
        page.gauge("map_generation", help, self.generation);
        page.gauge("members", "Nodes in the map.", self.members);
        page.gauge("leader", "1 if this node is the leader.", u64::from(self.leads));
        page.gauge("buckets", "Buckets of the cluster.", self.buckets);
        page.family("buckets_held", "gauge", "Buckets that this node has a copy of, by role.");
        page.labelled("buckets_held", &[("role", "primary")], self.primaries);
        page.labelled("buckets_held", &[("role", "backup")], self.backups);
        let help = "Buckets of the cluster with one copy or none.";
        page.gauge("buckets_without_backup", help, self.buckets_without_backup);
        page.gauge("buckets_lost", "Buckets without any copy.", self.buckets_lost);
    }

    fn lease(&self, page: &mut MetricsPage) {
        let valid = "1 while this node's lease is valid and it may serve.";
        page.gauge("lease_valid", valid, u64::from(self.lease_valid));
        let left = "Seconds until the lease expires unless renewed; +Inf for a single node.";
        page.family("lease_left_seconds", "gauge", left);
        match self.lease_left {
            Some(left) => {
                page.value("lease_left_seconds", format_args!("{:.3}", left.as_secs_f64()));
            }
            None => page.value("lease_left_seconds", format_args!("+Inf")),
        }
        let help = "Largest known difference of another node's wall clock to this one's; the leader knows all.";
        page.family("clock_skew_seconds", "gauge", help);
        page.value("clock_skew_seconds", format_args!("{:.3}", self.clock_skew.as_secs_f64()));
    }

    fn moves(&self, page: &mut MetricsPage) {
        page.gauge("moves", "Moves of buckets that this node takes part in.", self.moves);
        let sent = "Bytes sent by the fill under way from this node.";
        page.gauge("fill_sent_bytes", sent, self.fill_sent_bytes);
        page.family(
            "fills_total",
            "counter",
            "Buckets copied from this node (done), and fills that failed (failed).",
        );
        page.labelled("fills_total", &[("result", "done")], self.fills_done);
        page.labelled("fills_total", &[("result", "failed")], self.fills_failed);
        let waits = "Commands that waited because their bucket was being handed over.";
        page.counter("handover_waits_total", waits, self.handover_waits);
        let waited = self.handover_waited.as_secs_f64();
        let help = "Total time that commands waited for a handover.";
        page.family("handover_wait_seconds_total", "counter", help);
        page.value("handover_wait_seconds_total", format_args!("{waited:.6}"));
        let longest = self.handover_longest.as_secs_f64();
        let help = "Longest time that a command waited for a handover.";
        page.family("handover_wait_longest_seconds", "gauge", help);
        page.value("handover_wait_longest_seconds", format_args!("{longest:.6}"));
    }

    fn replication(&self, page: &mut MetricsPage) {
        let help = "Bytes sent to another node and not acknowledged yet.";
        page.family("replication_lag_bytes", "gauge", help);
        for link in &self.links {
            page.labelled("replication_lag_bytes", &[("to", &link.to)], link.bytes);
        }
        let help = "Frames sent to another node and not acknowledged yet.";
        page.family("replication_lag_frames", "gauge", help);
        for link in &self.links {
            page.labelled("replication_lag_frames", &[("to", &link.to)], link.frames);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_steps_that_grow_to_the_count() {
        let mut histogram = Histogram { counts: vec![0; Histogram::STEPS] };
        histogram.counts[Histogram::step(500)] = 90;
        histogram.counts[Histogram::step(3_000)] = 10;
        let total = Duration::from_micros(75);
        let durations = vec![ClassDurations { class: "read", total, histogram }];
        let text = ClusterMetrics { durations, ..ClusterMetrics::default() }.prometheus();
        for wanted in [
            "# TYPE opencluster_command_duration_seconds histogram\n",
            "_bucket{class=\"read\",le=\"0.000001\"} 90\n",
            "_bucket{class=\"read\",le=\"0.000004\"} 100\n",
            "_bucket{class=\"read\",le=\"+Inf\"} 100\n",
            "_sum{class=\"read\"} 0.000075000\n",
            "_count{class=\"read\"} 100\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
        }
    }

    #[test]
    fn every_kind_of_problem_is_told_by_the_name_in_the_document() {
        let health = Health { severity: Severity::Failing, problems: Vec::new() };
        let text = ClusterMetrics { health, ..ClusterMetrics::default() }.prometheus();
        assert!(text.contains("\nopencluster_health 2\n"), "{text}");
        for kind in ProblemKind::ALL {
            let name = serde_json::to_string(&kind).expect("a name can be written");
            let wanted = format!("opencluster_health_problem{{kind={name},severity=");
            assert!(text.contains(&wanted), "{wanted} is missing in\n{text}");
        }
    }

    #[test]
    fn a_node_alone_needs_no_lease_and_a_link_is_named_after_its_end() {
        let links = vec![LinkMetrics { to: "b".to_owned(), bytes: 7, frames: 1 }];
        let text = ClusterMetrics { links, ..ClusterMetrics::default() }.prometheus();
        assert!(text.contains("\nopencluster_lease_left_seconds +Inf\n"), "{text}");
        assert!(text.contains("\nopencluster_replication_lag_bytes{to=\"b\"} 7\n"), "{text}");
    }
}
