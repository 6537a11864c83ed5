//! `opencluster fleet migrate`: the plan, then the migration with its progress, for people or as
//! JSON, one object per line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use proxy::admin::AdminError;
use proxy::migrate::{
    Busy, Goal, MigrateOptions, MigrationPlan, Outcome, Phase, Progress, Report, plan,
    run as migrate,
};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::access::{AccessArgs, addresses, map};
use super::{failure, say, shown};
use crate::Failure;

#[derive(Args, Debug)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// The new weights, like 4.4.0.4
    #[arg(long, value_name = "MAP", conflicts_with_all = ["resume", "abort"])]
    map: Option<String>,
    /// Servers to add to the fleet, after the existing ones
    #[arg(long, value_name = "HOST:PORT,...", requires = "map")]
    add: Option<String>,
    /// Maximum rate, in megabytes per second
    #[arg(long, value_name = "MB/S")]
    rate: Option<f64>,
    /// Leave keys larger than this where they are, and list them
    #[arg(long, value_name = "SIZE")]
    skip_larger_than: Option<String>,
    /// Show what would move, and move nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait for a running migration to end
    #[arg(long)]
    wait: bool,
    /// Go on with a migration that was interrupted
    #[arg(long, conflicts_with = "abort")]
    resume: bool,
    /// Go back to the map before the migration in progress
    #[arg(long)]
    abort: bool,
    /// Print JSON, one object per line, for scripts
    #[arg(long)]
    json: bool,
}

/// Interval between progress lines for scripts.
const TOLD_EVERY: Duration = Duration::from_secs(1);
const SHOWN_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of left keys listed one by one.
const LEFT_SHOWN: usize = 20;

pub(super) fn run(args: &MigrateArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let plan = plan_or_wait(&options)?;
    let (keys, bytes) = (plan.estimate.total().keys, plan.estimate.total().bytes);
    if args.json {
        say_json(&plan_json(&plan))?;
    } else {
        say(&plan_text(&plan))?;
    }
    if args.dry_run {
        return Ok(());
    }
    let progress = Arc::new(Progress::default());
    pause_on_signal(&progress)?;
    let begun = Instant::now();
    let ended = Arc::new(AtomicBool::new(false));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| match args.json {
            true => tell(&progress, &ended),
            false => show(&progress, &ended, keys, bytes),
        });
        let report = migrate(&options, plan, &progress);
        ended.store(true, Ordering::Relaxed);
        report
    });
    conclude(args, &report.map_err(failure)?, begun.elapsed())
}

fn options(args: &MigrateArgs) -> Result<MigrateOptions, Failure> {
    let bad = |line: &str| Failure::BadInput(line.to_owned());
    let goal = match (&args.map, args.resume, args.abort) {
        (Some(text), _, _) => Goal::Map(map(text)?),
        (None, true, _) => Goal::Resume,
        (None, false, true) => Goal::Abort,
        (None, false, false) => {
            return Err(bad("no goal given; use --map MAP, --resume or --abort"));
        }
    };
    let rate = match args.rate {
        None => None,
        Some(rate) if rate.is_finite() && rate > 0.0 =>
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            Some((rate * 1024.0 * 1024.0) as u64)
        }
        Some(_) => return Err(bad("--rate is a number of megabytes a second, above 0")),
    };
    let skip = args.skip_larger_than.as_deref();
    let skip_larger_than = skip
        .map(|text| shown::size(text).ok_or_else(|| bad("--skip-larger-than is a size like 100mb")))
        .transpose()?;
    Ok(MigrateOptions {
        servers: args.access.servers()?,
        access: args.access.access()?,
        goal,
        add: args.add.as_deref().map_or(Ok(Vec::new()), addresses)?,
        rate,
        skip_larger_than,
        busy: if args.wait { Busy::Wait } else { Busy::Refuse },
    })
}

/// Makes the plan. With `--wait`, retries until the migration that blocks it has ended.
fn plan_or_wait(options: &MigrateOptions) -> Result<MigrationPlan, Failure> {
    loop {
        match plan(options) {
            Ok(plan) => return Ok(plan),
            Err(AdminError::Busy(_)) if options.busy == Busy::Wait => {
                std::thread::sleep(TOLD_EVERY);
            }
            Err(error) => return Err(failure(error)),
        }
    }
}

fn pause_on_signal(progress: &Arc<Progress>) -> Result<(), Failure> {
    let signals = Signals::new([SIGINT, SIGTERM]);
    let mut signals =
        signals.map_err(|error| Failure::Refused(format!("cannot listen to signals: {error}")))?;
    let progress = Arc::clone(progress);
    // Nobody waits for this thread: it ends with the process.
    std::thread::spawn(move || {
        for _ in signals.forever() {
            progress.stop();
        }
    });
    Ok(())
}

fn plan_text(plan: &MigrationPlan) -> String {
    let mut text = format!("from {} to {}\n", plan.from, plan.map);
    for line in &plan.warnings {
        text.push_str(&format!("warning: {line}\n"));
    }
    let about = if plan.estimate.exact { "" } else { "about " };
    let mut rows = Vec::new();
    for (route, load) in &plan.estimate.routes {
        let (from, to) = (&plan.servers[route.from.0], &plan.servers[route.to.0]);
        let keys = format!("{about}{} keys", shown::count(load.keys));
        rows.push(vec![
            format!("  {from} -> {to}"),
            keys,
            format!("~{}", shown::bytes(load.bytes)),
        ]);
    }
    let total = plan.estimate.total();
    let keys = format!("{about}{} keys", shown::count(total.keys));
    rows.push(vec!["  to be moved".to_owned(), keys, format!("~{}", shown::bytes(total.bytes))]);
    text.push_str(&shown::table(&rows));
    text
}

fn plan_json(plan: &MigrationPlan) -> Value {
    let routes: Vec<Value> = plan
        .estimate
        .routes
        .iter()
        .map(|(route, load)| {
            let (from, to) = (&plan.servers[route.from.0], &plan.servers[route.to.0]);
            json!({
                "from": from.to_string(), "to": to.to_string(),
                "keys": load.keys, "bytes": load.bytes,
            })
        })
        .collect();
    let total = plan.estimate.total();
    json!({
        "event": "plan",
        "from_map": plan.from.to_string(),
        "to_map": plan.map.to_string(),
        "keys": total.keys,
        "bytes": total.bytes,
        "exact": plan.estimate.exact,
        "routes": routes,
        "warnings": plan.warnings,
    })
}

fn tell(progress: &Progress, ended: &AtomicBool) {
    let mut last = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        if last.elapsed() >= TOLD_EVERY {
            last = Instant::now();
            let event = json!({
                "event": "progress", "phase": progress.phase().words(),
                "keys": progress.keys(), "bytes": progress.bytes(),
            });
            let _ = say_json(&event);
        }
        std::thread::sleep(SHOWN_EVERY);
    }
}

fn show(progress: &Progress, ended: &AtomicBool, keys: u64, bytes: u64) {
    let bar = ProgressBar::new(keys.max(1));
    let template = "{msg} [{bar:32}] {pos}/{len} keys  {prefix}  {per_sec}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    while !ended.load(Ordering::Relaxed) {
        let phase = progress.phase();
        bar.set_message(phase.words());
        bar.set_prefix(format!("{} of ~{}", shown::bytes(progress.bytes()), shown::bytes(bytes)));
        if phase == Phase::Moving {
            // Clients move keys too, by writing them: then the migration ends sooner.
            bar.set_length(keys.max(progress.keys()));
            bar.set_position(progress.keys());
        }
        std::thread::sleep(SHOWN_EVERY);
    }
    bar.finish_and_clear();
}

fn conclude(args: &MigrateArgs, report: &Report, took: Duration) -> Result<(), Failure> {
    let word = match report.outcome {
        Outcome::Done => "done",
        Outcome::Paused => "paused",
        Outcome::Incomplete => "incomplete",
    };
    let key_text = |key: &Option<Vec<u8>>| key.as_ref().map(|key| key.escape_ascii().to_string());
    if args.json {
        let left: Vec<Value> = report
            .left
            .iter()
            .map(|left| json!({ "key": key_text(&left.key), "why": left.why }))
            .collect();
        say_json(&json!({
            "event": "end", "outcome": word, "keys": report.keys, "bytes": report.bytes,
            "seconds": took.as_secs_f64(), "left": left,
        }))?;
    } else {
        let (keys, bytes) = (shown::count(report.keys), shown::bytes(report.bytes));
        say(&format!("{word}: {keys} keys, {bytes}, in {:.1} s\n", took.as_secs_f64()))?;
        for left in report.left.iter().take(LEFT_SHOWN) {
            let what = key_text(&left.key).unwrap_or_else(|| "keys".to_owned());
            say(&format!("  left: {what}: {}\n", left.why))?;
        }
        if report.left.len() > LEFT_SHOWN {
            say(&format!("  and {} more\n", report.left.len() - LEFT_SHOWN))?;
        }
    }
    let resume = "continue with `opencluster fleet migrate --resume`";
    match report.outcome {
        Outcome::Done => Ok(()),
        Outcome::Paused => Err(Failure::Refused(format!("paused; {resume}"))),
        Outcome::Incomplete => Err(Failure::Refused(format!(
            "some keys are left where they were, and the migration stays in progress; {resume}"
        ))),
    }
}

fn say_json(value: &Value) -> Result<(), Failure> {
    say(&format!("{value}\n"))
}
