//! Measures the memory per timer: a million timers on one node, with a typical address and a typical opaque
//! text. Prints the resident size that the system reports; `cargo bench -p timers --bench memory`.

use timers::{
    Callback, HttpTarget, MembersEpoch, MonotonicMillis, Now, ReplicationFactor, RequestId, Retry,
    TimeSpan, TimerAction, TimerInput, TimerMember, TimerPeer, TimerRequest, TimerSettings,
    TimerSpec, Timers,
};

const TIMERS: u64 = 1_000_000;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has a size");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("KiB");
    kib * 1024
}

fn spec(number: u64) -> TimerSpec {
    let uri = format!("http://10.0.0.{}:8080/callbacks/orders", number % 250);
    let target = HttpTarget::parse(&uri).expect("a good URI");
    let opaque = format!("{{\"order\":{number},\"step\":\"payment\"}}");
    let interval = TimeSpan(60_000 + number % 86_400_000);
    TimerSpec {
        tags: Vec::new(),
        interval,
        repeat_for: interval,
        callback: Callback::Http { target, opaque, timeout: TimeSpan::from_secs(2) },
        retry: Retry::NONE,
    }
}

fn main() {
    let now = Now::exact(MonotonicMillis(0), 0);
    let me = TimerPeer { id: 1, boot: 1 };
    let mut node = Timers::new(me, 1, now, TimerSettings::default());
    let mut actions: Vec<TimerAction> = Vec::new();
    let members = vec![TimerMember { id: me, name: "10.0.0.1:6379".into(), weight: 1 }];
    node.handle(now, TimerInput::Lease { until: MonotonicMillis(u64::MAX) }, &mut actions);
    node.handle(now, TimerInput::Members { epoch: MembersEpoch(1), members }, &mut actions);
    let before = resident_bytes();
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let begun = std::time::Instant::now();
    for number in 0..TIMERS {
        let wish = TimerRequest::Create { spec: spec(number), factor: ReplicationFactor::DEFAULT };
        let request = RequestId(number);
        node.handle(now, TimerInput::Request { request, wish }, &mut actions);
        actions.clear();
    }
    let took = begun.elapsed();
    let bytes = (resident_bytes() - before) / TIMERS;
    assert_eq!(node.pending() as u64, TIMERS);
    println!("{TIMERS} timers: {bytes} bytes each, made in {took:?}");
}
