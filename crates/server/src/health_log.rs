//! Logs the cluster's health: one line when a problem begins, one when it is over.

use std::collections::BTreeMap;
use std::time::Instant;

use cluster::status::{Health, Problem, ProblemKind, Severity};

use crate::log;

/// A problem by its kind and its node.
type ProblemName = (ProblemKind, Option<String>);

/// The problems that last. A warning is logged when it is seen for the second time: many are over within a second, such
/// as an election.
#[derive(Default)]
pub(crate) struct HealthLog(BTreeMap<ProblemName, Lasting>);

struct Lasting {
    begun: Instant,
    is_logged: bool,
}

/// A line for the log.
#[derive(PartialEq, Eq, Debug)]
struct Entry {
    severity: Severity,
    text: String,
}

impl HealthLog {
    /// Logs the problems that have begun or ended since the last call.
    pub(crate) fn note(&mut self, now: Instant, health: &Health) {
        for Entry { severity, text } in self.entries(now, health) {
            match severity {
                Severity::Failing => log::error("health", &text),
                Severity::Warning => log::warn("health", &text),
                Severity::Ok => log::info("health", &text),
            }
        }
    }

    fn entries(&mut self, now: Instant, health: &Health) -> Vec<Entry> {
        let mut entries = Vec::new();
        let logged = health.problems.iter().filter(|problem| !has_own_lines(problem.kind));
        let current: BTreeMap<ProblemName, &Problem> =
            logged.map(|problem| ((problem.kind, problem.node.clone()), problem)).collect();
        self.0.retain(|name, Lasting { begun, is_logged }| {
            let lasts = current.contains_key(name);
            if !lasts && *is_logged {
                let seconds = now.saturating_duration_since(*begun).as_secs_f64();
                let text = format!("over after {seconds:.0} s: {}", words(name));
                entries.push(Entry { severity: Severity::Ok, text });
            }
            lasts
        });
        for (name, problem) in current {
            let severity = name.0.severity();
            let is_new = !self.0.contains_key(&name);
            let lasting = self.0.entry(name).or_insert(Lasting { begun: now, is_logged: false });
            if !lasting.is_logged && (severity == Severity::Failing || !is_new) {
                lasting.is_logged = true;
                entries.push(Entry { severity, text: problem.to_string() });
            }
        }
        entries
    }
}

/// Returns whether other parts of the node log such a problem themselves, with more details.
fn has_own_lines(kind: ProblemKind) -> bool {
    matches!(kind, ProblemKind::NotServing | ProblemKind::Sick | ProblemKind::ClockSkew)
}

fn words((kind, node): &ProblemName) -> String {
    let kind = kind.name();
    node.as_ref().map_or_else(|| kind.to_owned(), |node| format!("{kind} of node {node}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn problem(kind: ProblemKind, node: Option<&str>) -> Problem {
        Problem {
            kind,
            node: node.map(str::to_owned),
            what: "w".to_owned(),
            effect: "e".to_owned(),
            advice: "a".to_owned(),
        }
    }

    fn health(problems: Vec<Problem>) -> Health {
        Health { severity: Severity::Ok, problems }
    }

    #[test]
    fn a_problem_is_logged_when_it_begins_and_when_it_ends() {
        let (mut log, begun) = (HealthLog::default(), Instant::now());
        let ill = health(vec![
            problem(ProblemKind::LeaseLost, Some("a")),
            problem(ProblemKind::NoLeader, None),
            problem(ProblemKind::ClockSkew, Some("b")),
        ]);
        let entry = |severity, text: &str| Entry { severity, text: text.to_owned() };
        assert_eq!(log.entries(begun, &ill), [entry(Severity::Failing, "w: e; a")]);
        let second = begun + Duration::from_secs(1);
        assert_eq!(log.entries(second, &ill), [entry(Severity::Warning, "w: e; a")]);
        assert_eq!(log.entries(begun + Duration::from_secs(2), &ill), []);
        let later = begun + Duration::from_secs(7);
        let entries = log.entries(later, &health(vec![problem(ProblemKind::NoLeader, None)]));
        assert_eq!(entries, [entry(Severity::Ok, "over after 7 s: lease-lost of node a")]);
        let entries = log.entries(later, &health(Vec::new()));
        assert_eq!(entries, [entry(Severity::Ok, "over after 7 s: no-leader")]);
        let brief = health(vec![problem(ProblemKind::Silent, Some("b"))]);
        assert_eq!(log.entries(later, &brief), []);
        assert_eq!(log.entries(later, &health(Vec::new())), [], "it was over before it was logged");
    }
}
