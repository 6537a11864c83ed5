//! The text format of Prometheus, version 0.0.4: families with their help and kind, then samples.

use std::fmt::{Arguments, Display, Write};

/// A growing page of metrics. Every name gets the same prefix.
#[derive(Default)]
pub(super) struct MetricsPage(String);

impl MetricsPage {
    pub(super) fn text(self) -> String {
        self.0
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", help);
        self.value(name, format_args!("{value}"));
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.value(name, format_args!("{value}"));
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP opencluster_{name} {help}");
        let _ = writeln!(self.0, "# TYPE opencluster_{name} {kind}");
    }

    pub(super) fn value(&mut self, name: &str, value: Arguments<'_>) {
        let _ = writeln!(self.0, "opencluster_{name} {value}");
    }

    pub(super) fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escape(text))).collect();
        let _ = writeln!(self.0, "opencluster_{name}{{{}}} {value}", labels.join(","));
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
