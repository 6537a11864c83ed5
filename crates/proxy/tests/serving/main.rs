//! A proxy in front of real Redis servers: every kind of command gets the answer a single server
//! would give.

mod support;

use resp::Value;
use support::Fleet;

#[test]
fn single_keys_of_all_types_live_on_their_own_servers() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    for number in 0..100 {
        assert!(client.run(&format!("SET string:{number} {number}")).is_ok());
        assert_eq!(client.run(&format!("RPUSH list:{number} a b")), Value::Integer(2));
        assert_eq!(client.run(&format!("HSET hash:{number} f v")), Value::Integer(1));
    }
    for number in 0..100 {
        let text = number.to_string().into_bytes();
        assert_eq!(client.run(&format!("GET string:{number}")), Value::Bulk(text));
        assert_eq!(client.run(&format!("LLEN list:{number}")), Value::Integer(2));
    }
    assert_eq!(client.run("DBSIZE"), Value::Integer(300));
    for server in &fleet.servers {
        let Value::Integer(keys) = server.client().run("DBSIZE") else { panic!() };
        assert!((60..150).contains(&keys), "{keys}");
    }
}
