//! Tests that configurations are read back as they were written, and that errors name the faulty key.

use super::*;

fn config() -> Config {
    let servers = Address::list("a:1,b:2,[::1]:3").unwrap();
    Config::first(servers, "4.4.0".parse().unwrap())
}

fn answer(config: &Config) -> Value {
    let pairs = config.pairs();
    let value = |key: &&str| pairs.iter().find(|(name, _)| name == key);
    let items = KEYS.iter().map(value);
    Value::Array(
        items
            .map(|pair| {
                pair.map_or(Value::Null, |(_, text)| Value::Bulk(text.clone().into_bytes()))
            })
            .collect(),
    )
}

fn with(index: usize, text: Option<&str>) -> Value {
    let Value::Array(mut items) = answer(&config()) else { unreachable!("it is an array") };
    items[index] = text.map_or(Value::Null, |text| Value::Bulk(text.as_bytes().to_vec()));
    Value::Array(items)
}

#[test]
fn a_configuration_is_read_as_it_was_written() {
    let mut config = config();
    assert_eq!(Config::read(&answer(&config)), Ok(Some(config.clone())));
    config.next = Some("4.4.4".parse().unwrap());
    config.runs = vec![Some("1f".to_owned()), None, Some("2e".to_owned())];
    assert_eq!(Config::read(&answer(&config)), Ok(Some(config.clone())));
    assert_eq!((config.run_of(Server(0)), config.run_of(Server(1))), (Some("1f"), None));
    assert_eq!(config.ended().runs, []);
}

#[test]
fn a_server_without_any_of_the_keys_belongs_to_no_fleet() {
    assert_eq!(Config::read(&Value::Array(vec![Value::Null; KEYS.len()])), Ok(None));
}

#[test]
fn what_is_wrong_is_named() {
    let text = |value: &Value| Config::read(value).unwrap_err().to_string();
    assert_eq!(text(&with(4, None)), "its key server.config.epoch is missing");
    assert_eq!(
        text(&with(4, Some("x"))),
        "its key server.config.epoch has the invalid value \"x\""
    );
    assert_eq!(
        text(&with(3, Some("3"))),
        "its key server.config.migration.status has the invalid value \"3\""
    );
    assert_eq!(
        text(&with(6, Some("1f,,2e"))),
        "its key server.config.runs has the invalid value \"1f,,2e\""
    );
    assert_eq!(
        text(&with(0, Some("a"))),
        "its key server.config.servers has the invalid value \"a\""
    );
    assert_eq!(
        text(&with(1, Some("0.0"))),
        "its key server.config.current is wrong: every weight of the server map is 0, so no server could keep a key"
    );
    assert_eq!(
        text(&with(5, Some("1.1.1.1"))),
        "its key server.config.next is 1.1.1.1, but there are only 3 servers"
    );
    assert_eq!(text(&Value::Error(b"NOAUTH".to_vec())), "it answers MGET with (error) NOAUTH");
}

#[test]
fn two_servers_that_disagree_are_named_with_what_they_say() {
    let (first, mut other) = (config(), config());
    assert_eq!(first.difference(&other), None);
    other.current = "4.4.4".parse().unwrap();
    let difference = first.difference(&other).unwrap();
    assert_eq!(
        difference.text(&first.servers[0], &first.servers[2]),
        "the servers disagree: server.config.current is \"4.4.0\" on a:1 and \"4.4.4\" on [::1]:3"
    );
}

#[test]
fn only_servers_with_a_weight_somewhere_are_needed() {
    let mut config = config();
    assert!(config.needs(Server(1)));
    assert!(!config.needs(Server(2)));
    config.next = Some("4.4.4".parse().unwrap());
    assert!(config.needs(Server(2)));
}

#[test]
fn addresses_are_checked() {
    let error = |text: &str| Address::list(text).unwrap_err().to_string();
    for text in ["", "a", "a:0", "a:65536", "a:b", ":1", "http://a:1", "::1:3"] {
        let expected = format!("{text:?} is not a server address; expected host:port,host:port");
        assert_eq!(error(text), expected);
    }
    assert_eq!(error("a:1,b:1,a:1"), "the server a:1 is named twice");
}

#[test]
fn a_cluster_is_named_by_some_of_its_nodes() {
    let text = "a:1,b:2+c:3/cluster";
    let servers = Address::list(text).unwrap();
    assert_eq!((servers[0].kind, servers[1].kind), (Kind::Plain, Kind::Cluster));
    let nodes: Vec<Address> = servers[1].nodes().collect();
    assert_eq!(nodes, [Address::plain("b", 2), Address::plain("c", 3)]);
    let shown: Vec<String> = servers.iter().map(ToString::to_string).collect();
    assert_eq!(shown.join(","), text);
    for wrong in ["a:1+b:2", "/cluster", "a:1+/cluster"] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
}
