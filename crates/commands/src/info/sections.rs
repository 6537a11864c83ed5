//! The sections of INFO, each a function that writes its lines. The names are Redis's, since tools look for them;
//! figures that do not apply here (forks, replicas, scripts) are reported as zero or none.

use core::fmt::{Display, Write as _};

use cluster::map::Member;
use settings::Settings;

use super::Section;
use super::number::{human_bytes, ratio};
use crate::connection::REDIS_VERSION;
use crate::{CommandCounts, CommandEnv, Host, KeyspaceNumbers, NodeFacts};

/// The text of INFO while it is written.
pub(super) struct InfoPage<'a> {
    text: String,
    host: &'a mut dyn Host,
    env: &'a CommandEnv,
    facts: NodeFacts,
    settings: std::sync::Arc<Settings>,
    /// This node's master as a replica, on the replica port.
    master: Option<Member>,
}

impl<'a> InfoPage<'a> {
    pub(super) fn new(
        host: &'a mut dyn Host,
        env: &'a CommandEnv,
        master: Option<Member>,
    ) -> InfoPage<'a> {
        let facts = host.facts();
        let settings = host.settings();
        InfoPage { text: String::new(), host, env, facts, settings, master }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn section(&mut self, section: Section) {
        if !self.text.is_empty() {
            self.text.push_str("\r\n");
        }
        let _ = write!(self.text, "# {}\r\n", section.title());
        match section {
            Section::Server => self.server(),
            Section::Clients => self.clients(),
            Section::Memory => self.memory(),
            Section::Persistence => self.persistence(),
            Section::Stats => self.stats(),
            Section::Replication => self.replication(),
            Section::Cpu => self.cpu(),
            Section::Modules => {}
            Section::CommandStats => self.command_stats(),
            Section::ErrorStats => self.error_stats(),
            Section::LatencyStats => self.latency_stats(),
            Section::Cluster => self.cluster(),
            Section::Keyspace => self.keyspace(),
        }
    }

    fn cluster(&mut self) {
        self.line("cluster_enabled", u8::from(self.env.one_slot_only));
        let stalls = self.host.handover_stalls();
        self.lines(&[
            ("handover_waits", stalls.count),
            ("handover_longest_micros", stalls.longest_micros),
            ("handover_total_micros", stalls.total_micros),
        ]);
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    fn lines(&mut self, lines: &[(&str, u64)]) {
        for (name, value) in lines {
            self.line(name, value);
        }
    }

    fn server(&mut self) {
        let identity = self.facts.identity.clone();
        let mode = if self.env.one_slot_only { "cluster" } else { "standalone" };
        let micros = self.host.time_of_day().as_micros();
        let uptime = self.facts.uptime.as_secs();
        self.line("redis_version", REDIS_VERSION);
        self.line("redis_git_sha1", "00000000");
        self.line("redis_git_dirty", 0);
        self.line("redis_build_id", 0);
        self.line("redis_mode", mode);
        self.line("opencluster_version", identity.version);
        self.line("os", &identity.os);
        self.line("arch_bits", usize::BITS);
        self.line("multiplexing_api", "epoll");
        self.line("process_id", identity.process);
        self.line("process_supervised", "no");
        self.line("run_id", &identity.id);
        self.line("tcp_port", identity.port);
        self.line("server_time_usec", micros);
        self.line("uptime_in_seconds", uptime);
        self.line("uptime_in_days", uptime / 86_400);
        self.line("hz", 10);
        self.line("configured_hz", 10);
        self.line("lru_clock", micros / 1_000_000 % (1 << 24));
        self.line("executable", &identity.executable);
        self.line("config_file", &identity.config_file);
        self.line("io_threads_active", u8::from(identity.io_threads > 1));
        self.line("io_threads", identity.io_threads);
    }

    fn clients(&mut self) {
        let clients = self.facts.clients;
        self.line("connected_clients", clients.connected);
        self.line("cluster_connections", 0);
        self.line("maxclients", clients.max);
        self.line("client_recent_max_input_buffer", clients.input_bytes_max);
        self.line("client_recent_max_output_buffer", clients.output_bytes_max);
        self.line("blocked_clients", clients.blocked);
        self.line("tracking_clients", 0);
        self.line("pubsub_clients", clients.pubsub);
        self.line("clients_in_timeout_table", clients.with_timeout);
    }

    fn memory(&mut self) {
        let memory = self.facts.memory;
        let maxmemory = self.settings.maxmemory;
        let dataset = memory.allocated.saturating_sub(memory.startup + memory.links);
        self.bytes("used_memory", memory.allocated);
        self.bytes("used_memory_rss", memory.process);
        self.bytes("used_memory_peak", memory.peak);
        let share = ratio(memory.allocated, memory.peak) * 100.0;
        self.line("used_memory_peak_perc", format_args!("{share:.2}%"));
        self.line("used_memory_overhead", memory.startup + memory.links + memory.clients);
        self.line("used_memory_startup", memory.startup);
        self.line("used_memory_dataset", dataset);
        let share = ratio(dataset, memory.allocated) * 100.0;
        self.line("used_memory_dataset_perc", format_args!("{share:.2}%"));
        self.line("allocator_allocated", memory.allocated);
        self.line("allocator_active", memory.active);
        self.line("allocator_resident", memory.resident);
        self.bytes("total_system_memory", self.facts.machine_bytes);
        self.bytes("used_memory_lua", 0);
        self.bytes("used_memory_scripts", 0);
        self.line("number_of_cached_scripts", 0);
        self.bytes("maxmemory", maxmemory);
        self.line("maxmemory_policy", self.settings.maxmemory_policy.word());
        self.gap("allocator_frag", memory.active, memory.allocated);
        self.gap("allocator_rss", memory.resident, memory.active);
        self.gap("rss_overhead", memory.process, memory.resident);
        self.gap("mem_fragmentation", memory.process, memory.allocated);
        self.line("mem_not_counted_for_evict", memory.links);
        self.line("mem_replication_backlog", 0);
        self.line("mem_clients_slaves", 0);
        self.line("mem_clients_normal", memory.clients);
        self.line("mem_cluster_links", memory.links);
        self.line("mem_aof_buffer", 0);
        self.line("mem_allocator", "jemalloc");
        self.line("active_defrag_running", 0);
        self.line("lazyfree_pending_objects", 0);
        self.line("lazyfreed_objects", 0);
    }

    /// Writes a size twice: as a number, and for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.line(name, bytes);
        let _ = write!(self.text, "{name}_human:{}\r\n", human_bytes(bytes));
    }

    /// Writes the ratio and the difference of two sizes.
    fn gap(&mut self, name: &str, larger: u64, smaller: u64) {
        let _ = write!(self.text, "{name}_ratio:{:.2}\r\n", ratio(larger, smaller));
        let gap = i128::from(larger) - i128::from(smaller);
        let _ = write!(self.text, "{name}_bytes:{gap}\r\n");
    }

    fn persistence(&mut self) {
        let started = self.host.time_of_day().saturating_sub(self.facts.uptime).as_secs();
        self.lines(&[
            ("loading", 0),
            ("async_loading", 0),
            ("rdb_changes_since_last_save", self.facts.traffic.changes),
            ("rdb_bgsave_in_progress", 0),
            ("rdb_last_save_time", started),
        ]);
        self.line("rdb_last_bgsave_status", "ok");
        self.line("rdb_last_bgsave_time_sec", -1);
        self.line("rdb_current_bgsave_time_sec", -1);
        self.lines(&[
            ("rdb_saves", 0),
            ("aof_enabled", 0),
            ("aof_rewrite_in_progress", 0),
            ("aof_rewrite_scheduled", 0),
        ]);
        self.line("aof_last_rewrite_time_sec", -1);
        self.line("aof_last_bgrewrite_status", "ok");
        self.line("aof_last_write_status", "ok");
    }

    fn stats(&mut self) {
        let traffic = self.facts.traffic;
        self.lines(&[
            ("total_connections_received", traffic.connections_accepted),
            ("total_commands_processed", traffic.commands),
            ("instantaneous_ops_per_sec", traffic.commands_per_second),
            ("total_net_input_bytes", traffic.bytes_in),
            ("total_net_output_bytes", traffic.bytes_out),
        ]);
        let kilobytes = |bytes: u64| ratio(bytes, 1_024);
        let (input, output) = (traffic.bytes_in_per_second, traffic.bytes_out_per_second);
        self.line("instantaneous_input_kbps", format_args!("{:.2}", kilobytes(input)));
        self.line("instantaneous_output_kbps", format_args!("{:.2}", kilobytes(output)));
        self.lines(&[
            ("rejected_connections", traffic.connections_rejected),
            ("sync_full", 0),
            ("sync_partial_ok", 0),
            ("sync_partial_err", 0),
            ("expired_keys", traffic.expired),
            ("evicted_keys", traffic.evicted),
            ("evicted_clients", 0),
            ("keyspace_hits", traffic.hits),
            ("keyspace_misses", traffic.misses),
            ("pubsub_channels", traffic.channels as u64),
            ("pubsub_patterns", traffic.patterns as u64),
            ("pubsubshard_channels", traffic.sharded_channels as u64),
            ("latest_fork_usec", 0),
            ("total_forks", 0),
            ("migrate_cached_sockets", 0),
            ("tracking_total_keys", 0),
            ("unexpected_error_replies", 0),
            ("total_error_replies", traffic.errors),
        ]);
    }

    fn replication(&mut self) {
        match self.master.take() {
            None => self.line("role", "master"),
            Some(master) => {
                self.line("role", "slave");
                self.line("master_host", master.at.host);
                self.line("master_port", master.at.client);
                self.line("master_link_status", "up");
                self.line("slave_read_only", 1);
            }
        }
        self.line("connected_slaves", 0);
        self.line("master_failover_state", "no-failover");
        let id = self.facts.identity.id.clone();
        self.line("master_replid", id);
        self.line("master_replid2", "0000000000000000000000000000000000000000");
        self.line("master_repl_offset", 0);
        self.line("second_repl_offset", -1);
        self.line("repl_backlog_active", 0);
        self.line("repl_backlog_size", 0);
        self.line("repl_backlog_first_byte_offset", 0);
        self.line("repl_backlog_histlen", 0);
    }

    fn cpu(&mut self) {
        let cpu = self.facts.cpu;
        let times = [
            ("used_cpu_sys", cpu.system),
            ("used_cpu_user", cpu.user),
            ("used_cpu_sys_children", cpu.system_children),
            ("used_cpu_user_children", cpu.user_children),
        ];
        for (name, time) in times {
            self.line(name, format_args!("{:.6}", time.as_secs_f64()));
        }
    }

    fn command_stats(&mut self) {
        for counts in self.host.command_counts() {
            let CommandCounts { spec, calls, time, failed, rejected, .. } = counts;
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            let _ = write!(
                self.text,
                "cmdstat_{}:calls={calls},usec={micros},usec_per_call={:.2},\
                 rejected_calls={rejected},failed_calls={failed}\r\n",
                spec.full_name,
                time.as_secs_f64() * 1e6 * ratio(1, calls),
            );
        }
    }

    fn error_stats(&mut self) {
        for (code, count) in self.host.error_counts() {
            let _ = write!(self.text, "errorstat_{code}:count={count}\r\n");
        }
    }

    fn latency_stats(&mut self) {
        for CommandCounts { spec, histogram, .. } in self.host.command_counts() {
            if histogram.total() == 0 {
                continue;
            }
            let micros = |thousandths| histogram.percentile(thousandths).as_secs_f64() * 1e6;
            let _ = write!(
                self.text,
                "latency_percentiles_usec_{}:p50={:.3},p99={:.3},p99.9={:.3}\r\n",
                spec.full_name,
                micros(500),
                micros(990),
                micros(999),
            );
        }
    }

    fn keyspace(&mut self) {
        for (database, numbers) in core::mem::take(&mut self.facts.keyspace) {
            let KeyspaceNumbers { keys, expiring, average_ttl } = numbers;
            let name = format!("db{}", database.number());
            self.line(&name, format_args!("keys={keys},expires={expiring},avg_ttl={average_ttl}"));
        }
    }
}
