//! Maps are switched and keys moved under two proxies while clients keep running: no client sees an error, an
//! older value, or a deleted key.
#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod migrator;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use e2e::{Client, Rng, Server};
use fleet::Address;
use migrator::Migrator;
use proxy::{Options, Proxy};
use resp::Value;

struct Fleet {
    proxies: Vec<Proxy>,
    servers: Vec<Server>,
    map: &'static str,
}

impl Fleet {
    fn of(map: &'static str) -> Fleet {
        let servers = map.split('.').map(|_| Server::redis()).collect();
        let mut fleet = Fleet { proxies: Vec::new(), servers, map };
        fleet.proxies = (0..2).map(|_| Proxy::start(fleet.options()).unwrap()).collect();
        fleet
    }

    fn addresses(&self) -> Vec<Address> {
        let address = |server: &Server| Address::plain("127.0.0.1", server.port());
        self.servers.iter().map(address).collect()
    }

    fn options(&self) -> Options {
        let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
        let map = Some(self.map.parse().unwrap());
        Options { threads: 2, map, ..Options::new(listen, self.addresses()) }
    }

    fn client(&self, number: usize) -> Client {
        let proxy = &self.proxies[number % self.proxies.len()];
        Client::try_connect(proxy.address().port()).unwrap()
    }

    fn migrator(&self) -> Migrator {
        Migrator::new(self.addresses())
    }
}

/// Writes keys and checks them. Each key has one writer, which knows its expected value; `number` is the client's.
fn write_and_check(client: &mut Client, number: usize, stop: &AtomicBool) -> u64 {
    const KEYS: usize = 40;
    let mut rng = Rng::new(number as u64);
    let mut expected: Vec<Option<u64>> = vec![None; KEYS];
    let mut counters = vec![0i64; KEYS];
    let mut commands = 0;
    while !stop.load(Relaxed) {
        let key = rng.below(KEYS as u64) as usize;
        let name = format!("w{number}:k{key}");
        let value = commands;
        match rng.below(6) {
            0 => {
                assert!(client.run(&format!("SET {name} {value}")).is_ok());
                expected[key] = Some(value);
            }
            1 => {
                let existed = i64::from(expected[key].take().is_some());
                assert_eq!(client.run(&format!("DEL {name}")), Value::Integer(existed), "{name}");
            }
            2 => {
                counters[key] += 1;
                let answer = client.run(&format!("INCR {name}:counter"));
                assert_eq!(answer, Value::Integer(counters[key]), "{name}:counter");
            }
            3 => {
                let list = format!("{name}:list");
                let Value::Integer(_) = client.run(&format!("RPUSH {list} {value}")) else {
                    panic!()
                };
                let last = client.run(&format!("LINDEX {list} -1"));
                assert_eq!(last, Value::Bulk(value.to_string().into_bytes()), "{list}");
            }
            _ => {
                let answer = client.run(&format!("GET {name}"));
                let right = expected[key]
                    .map_or(Value::Null, |value| Value::Bulk(value.to_string().into_bytes()));
                assert_eq!(answer, right, "{name}");
            }
        }
        commands += 1;
    }
    for (key, count) in counters.iter().enumerate().filter(|(_, count)| **count > 0) {
        let answer = client.run(&format!("GET w{number}:k{key}:counter"));
        assert_eq!(answer, Value::Bulk(count.to_string().into_bytes()));
    }
    commands
}

/// Reads a counter that another client increments: the value must never decrease.
fn read_upwards(client: &mut Client, stop: &AtomicBool) -> u64 {
    let mut last = 0;
    let mut reads = 0;
    while !stop.load(Relaxed) {
        for number in 0..8 {
            client.send(&["GET", &format!("w{number}:k0:counter")]).unwrap();
        }
        for number in 0..8 {
            let answer = client.receive().unwrap().value;
            assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
            let read = answer.text().map_or(0, |text| resp::parse_integer(text).unwrap());
            if number == 0 {
                assert!(read >= last, "a counter went back from {last} to {read}");
                last = read;
            }
            reads += 1;
        }
    }
    reads
}

#[test]
fn clients_notice_nothing_while_a_server_is_emptied_and_another_filled() {
    let fleet = Fleet::of("4.4.4.0");
    let mut filler = fleet.client(0);
    for number in 0..2_000 {
        filler.run(&format!("SET still:{number} {number}"));
    }
    let stop = AtomicBool::new(false);
    let commands = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (fleet, stop, commands) = (&fleet, &stop, &commands);
            scope.spawn(move || {
                let mut client = fleet.client(number);
                let done = write_and_check(&mut client, number, stop);
                commands.fetch_add(done, Relaxed);
            });
        }
        scope.spawn(|| read_upwards(&mut fleet.client(1), &stop));
        let pause = || std::thread::sleep(Duration::from_millis(200));
        pause();
        for map in ["4.4.0.0", "4.4.0.4", "1.4.0.8"] {
            fleet.migrator().migrate(map);
            pause();
        }
        stop.store(true, Relaxed);
    });
    assert!(commands.load(Relaxed) > 100);
    for number in 0..2_000 {
        let answer = filler.run(&format!("GET still:{number}"));
        assert_eq!(answer, Value::Bulk(number.to_string().into_bytes()));
    }
    let mut emptied = fleet.servers[2].client();
    let Value::Array(left) = emptied.run("KEYS *") else { panic!() };
    let is_own = |key: &Value| key.text().is_some_and(|key| key.starts_with(b"server.config."));
    assert!(left.iter().all(is_own), "{left:?}");
}

#[test]
fn what_waits_at_a_server_follows_its_key_to_another() {
    let fleet = Fleet::of("1.0");
    let mut waiting = fleet.client(0);
    let mut watching = fleet.client(1);
    waiting.send(&["BLPOP", "queue", "0"]).unwrap();
    assert!(watching.run("WATCH watched").is_ok());
    std::thread::sleep(Duration::from_millis(100));
    let killed = fleet.migrator().migrate("0.1");
    assert_eq!(killed, 0, "every connection was renamed in time");
    assert!(waiting.receive_within(Duration::from_millis(100)).unwrap().is_none());
    assert_eq!(fleet.client(1).run("RPUSH queue job"), Value::Integer(1));
    let Value::Array(popped) = waiting.receive().unwrap().value else { panic!() };
    assert_eq!(popped[1].text(), Some(&b"job"[..]));
    watching.run("MULTI");
    watching.run("SET watched ours");
    assert_eq!(watching.run("EXEC"), Value::Null, "it cannot be known whether the key changed");
}

#[test]
fn channels_move_over_without_losing_a_message() {
    let fleet = Fleet::of("4.4.0");
    let mut listener = fleet.client(0);
    let channels: Vec<String> = (0..8).map(|number| format!("channel:{number}")).collect();
    listener.send(&[vec!["SUBSCRIBE".to_owned()], channels.clone()].concat()).unwrap();
    channels.iter().for_each(|_| drop(listener.receive().unwrap()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let speaker = scope.spawn(|| {
            let mut speaker = fleet.client(1);
            let mut said = 0u64;
            // On a slow machine the migration may be over before much was published.
            while !stop.load(Relaxed) || said < 100 {
                let channel = &channels[said as usize % channels.len()];
                speaker.call(&["PUBLISH", channel, &said.to_string()]);
                said += 1;
            }
            said
        });
        fleet.migrator().migrate("0.4.4");
        stop.store(true, Relaxed);
        let said = speaker.join().unwrap();
        let mut missing: std::collections::BTreeSet<String> =
            (0..said).map(|number| number.to_string()).collect();
        // On a busy machine the last messages may arrive late; lost ones never arrive.
        let patience = |is_complete| Duration::from_millis(if is_complete { 200 } else { 10_000 });
        while let Some(message) = listener.receive_within(patience(missing.is_empty())).unwrap() {
            let Value::Array(parts) = message.value else { panic!() };
            let text = String::from_utf8(parts[2].text().unwrap().to_vec()).unwrap();
            assert!(missing.remove(&text), "heard twice: {text}");
        }
        assert!(missing.is_empty(), "of {said} messages these were lost: {missing:?}");
    });
}

#[test]
fn an_announcement_whose_migrator_died_is_taken_back() {
    let fleet = Fleet::of("4.4");
    let mut client = fleet.client(0);
    client.run("SET k v");
    fleet.migrator().announce_and_die("0.4");
    let begun = Instant::now();
    for number in 0..50 {
        assert!(client.run(&format!("SET k:{number} v")).is_ok());
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    assert_eq!(fleet.proxies[0].config().current.to_string(), "4.4");
}

#[test]
fn transactions_scripts_and_scatters_work_while_keys_are_under_way() {
    let fleet = Fleet::of("4.4.0");
    let mut client = fleet.client(0);
    let keys: Vec<String> = (0..60).map(|number| format!("{{{number}}}k")).collect();
    for key in &keys {
        client.call(&["SET", key, "1"]);
    }
    let migrator = fleet.migrator();
    let begun = migrator.begin("0.4.4");
    let mut other = fleet.client(1);
    for key in &keys[..20] {
        client.run("MULTI");
        client.call(&["INCR", key]);
        client.call(&["GET", key]);
        let two = Value::Bulk(b"2".to_vec());
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::Integer(2), two]), "{key}");
    }
    let script = "return redis.call('incr', KEYS[1])";
    for key in &keys[20..40] {
        assert_eq!(other.call(&["EVAL", script, "1", key]).value, Value::Integer(2), "{key}");
    }
    for key in &keys[40..50] {
        assert!(client.call(&["WATCH", key]).value.is_ok());
        client.run("MULTI");
        client.call(&["INCR", key]);
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::Integer(2)]), "{key}");
    }
    let mget = [vec!["MGET".to_owned()], keys.clone()].concat();
    let Value::Array(values) = client.call(&mget).value else { panic!() };
    for (number, value) in values.iter().enumerate() {
        let right = if number < 50 { b"2" } else { b"1" };
        assert_eq!(value.text(), Some(&right[..]), "{}", keys[number]);
    }
    let del = [vec!["DEL".to_owned()], keys[..30].to_vec()].concat();
    assert_eq!(other.call(&del).value, Value::Integer(30));
    migrator.end(&begun);
    let exists = [vec!["EXISTS".to_owned()], keys.clone()].concat();
    assert_eq!(client.call(&exists).value, Value::Integer(30));
}
