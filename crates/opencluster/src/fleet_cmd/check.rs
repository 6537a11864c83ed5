//! `opencluster fleet check`: finds keys that are not in their place, and with `--fix` repairs that.

use clap::Args;
use proxy::admin::{CheckOptions, CheckReport, Finding, Mend, check};
use serde_json::{Value, json};

use super::access::AccessArgs;
use super::{failure, say, shown};
use crate::Failure;

#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// Bring keys to their place, remove copies that nobody reads, make the servers agree
    #[arg(long)]
    fix: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// Maximum number of findings listed one by one.
const SHOWN: usize = 20;

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let options = CheckOptions {
        servers: args.access.servers()?,
        access: args.access.access()?,
        mend: if args.fix { Mend::All } else { Mend::Nothing },
    };
    let report = check(&options).map_err(failure)?;
    match args.json {
        true => say(&format!("{:#}\n", as_json(&report)))?,
        false => say(&text(&report))?,
    }
    if report.is_sound() {
        return Ok(());
    }
    let hint = if args.fix { "" } else { "; --fix repairs what can be repaired" };
    Err(Failure::Refused(format!("the fleet is not in order{hint}")))
}

fn text(report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in report.findings.iter().take(SHOWN) {
        text.push_str(&line(report, finding));
        text.push('\n');
    }
    if report.findings.len() > SHOWN {
        text.push_str(&format!("and {} more\n", report.findings.len() - SHOWN));
    }
    let [walked, misplaced, twice, mended] =
        [report.walked, report.misplaced, report.twice, report.mended].map(shown::count);
    text.push_str(&format!(
        "{walked} keys checked: {misplaced} misplaced, {twice} duplicate, {mended} repaired\n"
    ));
    text
}

fn line(report: &CheckReport, finding: &Finding) -> String {
    let address = |server: &fleet::Server| &report.config.servers[server.0];
    match finding {
        Finding::Disagrees { what, .. } => what.clone(),
        Finding::Away { server, why } => format!("server {}: {why}", address(server)),
        Finding::Misplaced { key, on, belongs } => {
            let key = key.escape_ascii();
            format!("\"{key}\" is on {} and belongs on {}", address(on), address(belongs))
        }
        Finding::Twice { key, on, belongs } => {
            let key = key.escape_ascii();
            format!(
                "\"{key}\" is on {} and also on {}, where it belongs",
                address(on),
                address(belongs)
            )
        }
    }
}

fn as_json(report: &CheckReport) -> Value {
    let kind = |finding: &Finding| match finding {
        Finding::Disagrees { .. } => "disagrees",
        Finding::Away { .. } => "away",
        Finding::Misplaced { .. } => "misplaced",
        Finding::Twice { .. } => "twice",
    };
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| json!({ "kind": kind(finding), "text": line(report, finding) }))
        .collect();
    json!({
        "walked": report.walked,
        "misplaced": report.misplaced,
        "twice": report.twice,
        "mended": report.mended,
        "sound": report.is_sound(),
        "findings": findings,
    })
}
