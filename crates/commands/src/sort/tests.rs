//! Tests of SORT as dialogues, recorded from redis-server 7.0.15, and of patterns.

use placement::Slot;

use super::pattern::{DerivedSlots, Pattern, derived_slots, fuzz_pattern, slot_of};
use crate::testing::{TestNode, check};
use crate::{LockSet, OwnedArgs};

const ELEMENTS_ARE_SORTED_BY_THEMSELVES: &str = r#"
> RPUSH l 3 1 10 2
(integer) 4
> SORT l
1) "1"
2) "2"
3) "3"
4) "10"
> SORT l DESC
1) "10"
2) "3"
3) "2"
4) "1"
> SORT l ALPHA
1) "1"
2) "10"
3) "2"
4) "3"
> SORT l ALPHA DESC LIMIT 1 2
1) "2"
2) "10"
> SORT l LIMIT 1 2
1) "2"
2) "3"
> SORT l LIMIT -5 2
1) "1"
2) "2"
> SORT l LIMIT 1 -1
1) "2"
2) "3"
3) "10"
> SORT l LIMIT 10 2
(empty array)
> SORT l LIMIT a 2
(error) ERR value is not an integer or out of range
> SORT l LIMIT 1
(error) ERR syntax error
> SORT l NOSUCH
(error) ERR syntax error
> SORT l BY
(error) ERR syntax error
> SADD s a b 1
(integer) 3
> SORT s
(error) ERR One or more scores can't be converted into double
> SORT s ALPHA
1) "1"
2) "a"
3) "b"
> SORT nosuch
(empty array)
> ZADD z 3 a 2 b 1 c
(integer) 3
> SORT z ALPHA
1) "a"
2) "b"
3) "c"
> SORT z BY nosort
1) "c"
2) "b"
3) "a"
> SORT z BY nosort DESC
1) "a"
2) "b"
3) "c"
> SORT z BY nosort DESC LIMIT 1 1
1) "b"
> SORT l BY nosort DESC LIMIT 1 2
1) "10"
2) "1"
> SORT l BY nosort LIMIT 1 2
1) "1"
2) "10"
> SET string x
OK
> SORT string
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSET hash f v
(integer) 1
> SORT hash
(error) WRONGTYPE Operation against a key holding the wrong kind of value
"#;

#[test]
fn elements_are_sorted_by_themselves() {
    check(ELEMENTS_ARE_SORTED_BY_THEMSELVES);
}

const ELEMENTS_ARE_SORTED_BY_OTHER_VALUES: &str = r#"
> RPUSH l 1 2 3 4
(integer) 4
> MSET w_1 30 w_2 20 w_3 10
OK
> MSET n_1 one n_2 two n_3 three
OK
> HSET h_1 f 5 g x
(integer) 2
> HSET h_2 f 4
(integer) 1
> HSET h_3 f 6
(integer) 1
> SORT l BY w_*
1) "4"
2) "3"
3) "2"
4) "1"
> SORT l BY w_* DESC
1) "1"
2) "2"
3) "3"
4) "4"
> SORT l BY w_* GET n_*
1) (nil)
2) "three"
3) "two"
4) "one"
> SORT l BY w_* GET # GET n_* GET h_*->g
 1) "4"
 2) (nil)
 3) (nil)
 4) "3"
 5) "three"
 6) (nil)
 7) "2"
 8) "two"
 9) (nil)
10) "1"
11) "one"
12) "x"
> SORT l BY h_*->f
1) "4"
2) "2"
3) "1"
4) "3"
> SORT l BY h_*->f GET h_*->f GET h_*-> GET w_*->f
 1) (nil)
 2) (nil)
 3) (nil)
 4) "4"
 5) (nil)
 6) (nil)
 7) "5"
 8) (nil)
 9) (nil)
10) "6"
11) (nil)
12) (nil)
> SORT l BY n_*
(error) ERR One or more scores can't be converted into double
> SORT l BY n_* ALPHA
1) "4"
2) "1"
3) "3"
4) "2"
> SORT l GET n_1
1) (nil)
2) (nil)
3) (nil)
4) (nil)
> SORT l GET * GET x*y*z
1) (nil)
2) (nil)
3) (nil)
4) (nil)
5) (nil)
6) (nil)
7) (nil)
8) (nil)
> SORT_RO l BY w_* GET n_*
1) (nil)
2) "three"
3) "two"
4) "one"
> SORT_RO l STORE d
(error) ERR syntax error
> SET w_1 abc
OK
> SORT l BY w_*
(error) ERR One or more scores can't be converted into double
> SET w_1 1e400
OK
> SORT l BY w_*
(error) ERR One or more scores can't be converted into double
> SORT l BY w_* BY nosort
1) "1"
2) "2"
3) "3"
4) "4"
> SORT l BY nosort BY w_*
1) "1"
2) "2"
3) "3"
4) "4"
"#;

#[test]
fn elements_are_sorted_by_other_values() {
    check(ELEMENTS_ARE_SORTED_BY_OTHER_VALUES);
}

const SORTED_ELEMENTS_ARE_STORED: &str = r#"
> RPUSH l 3 1 2
(integer) 3
> MSET n_1 one n_2 22
OK
> SORT l STORE d
(integer) 3
> LRANGE d 0 -1
1) "1"
2) "2"
3) "3"
> OBJECT ENCODING d
"listpack"
> SORT l GET n_* GET # STORE d
(integer) 6
> LRANGE d 0 -1
1) "one"
2) "1"
3) "22"
4) "2"
5) ""
6) "3"
> SORT l DESC STORE l
(integer) 3
> LRANGE l 0 -1
1) "3"
2) "2"
3) "1"
> SADD s c a b
(integer) 3
> SORT s BY nosort STORE d
(integer) 3
> LRANGE d 0 -1
1) "a"
2) "b"
3) "c"
> SET d string
OK
> SORT nosuch STORE d
(integer) 0
> EXISTS d
(integer) 0
> SORT s STORE d
(error) ERR One or more scores can't be converted into double
> EXISTS d
(integer) 0
> SORT l STORE a STORE b
(integer) 3
> EXISTS a b
(integer) 1
> SORT l LIMIT 5 1 STORE b
(integer) 0
> EXISTS b
(integer) 0
"#;

#[test]
fn sorted_elements_are_stored() {
    check(SORTED_ELEMENTS_ARE_STORED);
}

#[test]
fn a_pattern_has_one_star_and_one_arrow() {
    let key = |text: &'static str| {
        Pattern::new(text.as_bytes())
            .key(b"E")
            .map(|key| String::from_utf8_lossy(&key).into_owned())
    };
    let field = |text: &'static str| Pattern::new(text.as_bytes()).field();
    assert_eq!(key("w_*").as_deref(), Some("w_E"));
    assert_eq!(key("a*b*c").as_deref(), Some("aEb*c"));
    assert_eq!(key("w_"), None);
    assert_eq!(key("#"), None);
    assert_eq!((key("h_*->f").as_deref(), field("h_*->f")), (Some("h_E"), Some(&b"f"[..])));
    assert_eq!(
        (key("h->*x->f->g").as_deref(), field("h->*x->f->g")),
        (Some("h->Ex"), Some(&b"f->g"[..]))
    );
    assert_eq!((key("h_*->").as_deref(), field("h_*->")), (Some("h_E->"), None));
    assert_eq!((key("h_*-").as_deref(), field("h_*-")), (Some("h_E-"), None));
}

#[test]
fn a_slot_is_named_only_if_no_element_can_change_it() {
    let tag = Some(Slot::of(b"tag"));
    assert_eq!(slot_of(b"{tag}w_*"), tag);
    assert_eq!(slot_of(b"x{tag}w_*->{f}"), tag);
    assert_eq!(slot_of(b"w_*"), None);
    assert_eq!(slot_of(b"*{tag}"), None);
    assert_eq!(slot_of(b"{ta*g}"), None);
    assert_eq!(slot_of(b"{}{tag}*"), None);
    assert_eq!(slot_of(b"w"), Some(Slot::of(b"w")));
    for text in ["{tag}*\n}{x", "{}*\n{a}", "a{b*}\n}c{d}", "*->f\n", "#", "\0*\nx"] {
        fuzz_pattern(text.as_bytes());
    }
}

fn args(line: &str) -> OwnedArgs {
    OwnedArgs::new(line.split(' ').map(str::as_bytes))
}

#[test]
fn the_slots_of_derived_keys_are_known_before() {
    let derived = |line: &str| derived_slots(args(line).args());
    let slot = |key: &str| Slot::of(key.as_bytes());
    assert_eq!(derived("SORT l"), DerivedSlots::These(Vec::new()));
    assert_eq!(derived("SORT l BY nosort GET # STORE by"), DerivedSlots::These(Vec::new()));
    assert_eq!(
        derived("SORT l BY {a}* GET {b}*->f LIMIT by get*"),
        DerivedSlots::These(vec![slot("a"), slot("b")])
    );
    assert_eq!(derived("SORT l BY {a}* GET w_*"), DerivedSlots::Any);
}

#[test]
fn derived_keys_are_locked() {
    let locks = |node: &mut TestNode, line: &str| node.locks(line);
    let mut node = TestNode::default();
    let slot = |key: &str| Slot::of(key.as_bytes());
    assert_eq!(locks(&mut node, "SORT l"), LockSet::One(slot("l")));
    let mut both = vec![slot("l"), slot("a")];
    both.sort_unstable();
    assert_eq!(locks(&mut node, "SORT l BY {a}*"), LockSet::Several(both.clone()));
    let all = LockSet::All { named: vec![slot("l")] };
    assert_eq!(locks(&mut node, "SORT l BY w_*"), all);
    node.run("MULTI");
    node.run("SORT l BY {a}*");
    assert_eq!(locks(&mut node, "EXEC"), LockSet::Several(both));
    node.run("SORT_RO l GET w_*");
    assert!(matches!(locks(&mut node, "EXEC"), LockSet::All { .. }));
}

#[test]
fn in_a_cluster_derived_keys_share_the_slot() {
    let mut node = TestNode::default();
    node.env.one_slot_only = true;
    node.run("RPUSH {a}l 3 1 2");
    let denied = |option: &str| {
        format!(
            "(error) ERR {option} option of SORT denied in Cluster mode when keys formed by the pattern \
             may be in different slots."
        )
    };
    let sorted = "1) \"1\"\n2) \"2\"\n3) \"3\"";
    for (options, reply) in [
        ("BY w_*", denied("BY")),
        ("BY {b}w_*", denied("BY")),
        ("BY *{a}", denied("BY")),
        ("BY {a}w_*", sorted.to_owned()),
        ("GET #", sorted.to_owned()),
        ("GET w_*", denied("GET")),
        ("GET foo", denied("GET")),
        ("GET {a}w_*", "1) (nil)\n2) (nil)\n3) (nil)".to_owned()),
        ("STORE x", "(error) CROSSSLOT Keys in request don't hash to the same slot".to_owned()),
    ] {
        assert_eq!(node.run(&format!("SORT {{a}}l {options}")), reply, "{options}");
    }
    assert_eq!(node.locks("SORT {a}l BY {a}w_*"), LockSet::One(Slot::of(b"a")));
}

#[test]
fn what_is_fetched_and_stored_has_a_limit() {
    let mut node = TestNode::default();
    node.run(&format!("SETRANGE v_1 {} x", 2 << 20));
    node.run(&format!("RPUSH l{}", " 1".repeat(40)));
    assert_eq!(
        node.run("SORT l GET v_* STORE d"),
        "(error) ERR SORT with GET and STORE stores at most 64 MiB; use LIMIT"
    );
    assert_eq!(node.run("EXISTS d"), "(integer) 0");
    assert_eq!(node.run("SORT l GET v_* LIMIT 0 3 STORE d"), "(integer) 3");
}
