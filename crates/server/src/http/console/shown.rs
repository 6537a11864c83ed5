//! The last hour and the slow log as JSON. The hour is sent in columns, so that each name appears once.

use commands::SlowCommand;
use serde_json::{Value, json};

use super::Sample;

pub(super) fn hour(samples: &[Sample]) -> String {
    let column = |of: &dyn Fn(&Sample) -> u64| -> Value {
        samples.iter().map(|sample| Value::from(of(sample))).collect()
    };
    json!({
        "at": column(&|sample| sample.at),
        "reads": column(&|sample| sample.reads),
        "writes": column(&|sample| sample.writes),
        "others": column(&|sample| sample.others),
        "in": column(&|sample| sample.bytes_in),
        "out": column(&|sample| sample.bytes_out),
        "read_p50": column(&|sample| sample.read_nanos[0]),
        "read_p99": column(&|sample| sample.read_nanos[1]),
        "write_p50": column(&|sample| sample.write_nanos[0]),
        "write_p99": column(&|sample| sample.write_nanos[1]),
        "memory": column(&|sample| sample.memory_bytes),
        "clients": column(&|sample| sample.clients),
    })
    .to_string()
}

pub(super) fn slow_log(commands: &[SlowCommand]) -> String {
    let entries: Vec<Value> = commands.iter().map(entry).collect();
    json!({ "entries": entries }).to_string()
}

fn entry(command: &SlowCommand) -> Value {
    let args = command.args.args();
    let text = |place: usize| String::from_utf8_lossy(args.at(place)).into_owned();
    json!({
        "id": command.id,
        "at": command.unix_seconds * 1_000,
        "micros": command.micros,
        "args": (0..args.len()).map(text).collect::<Vec<_>>(),
        "client": command.client_address,
        "name": String::from_utf8_lossy(&command.client_name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use commands::OwnedArgs;

    #[test]
    fn a_slow_command_is_told_with_its_arguments_as_text() {
        let slow = SlowCommand {
            id: 7,
            unix_seconds: 1_000,
            micros: 12_345,
            args: OwnedArgs::new([&b"SET"[..], b"key", b"\xff"]),
            client_address: "127.0.0.1:5".to_owned(),
            client_name: Vec::new(),
        };
        let told: Value = serde_json::from_str(&slow_log(&[slow])).unwrap();
        assert_eq!(told["entries"][0]["args"], json!(["SET", "key", "\u{fffd}"]));
    }

    #[test]
    fn an_hour_is_told_in_columns_that_fit_each_other() {
        let samples: Vec<Sample> =
            (0..3).map(|at| Sample { at, reads: at * 2, ..Sample::default() }).collect();
        let told: Value = serde_json::from_str(&hour(&samples)).unwrap();
        assert_eq!(told["reads"], json!([0, 2, 4]));
        let columns = told.as_object().unwrap().values();
        assert!(columns.clone().all(|column| column.as_array().unwrap().len() == 3));
    }
}
