//! Tests of geo commands as dialogues, recorded from redis-server 7.0.15 (polygons: Valkey 9.1), and of the searched cells.

use placement::SplitMix64;

use super::cell::Position;
use super::cover;
use super::shape::Shape;
use crate::testing::{TestNode, check};

const POSITIONS_ARE_SET_AND_READ: &str = r#"
> GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOADD Sicily NX CH 13.361389 38.2 Palermo 13.583333 37.316667 Agrigento
(integer) 1
> GEOADD Sicily XX CH 13.583333 37.4 Agrigento 1 2 Nowhere
(integer) 1
> GEOADD Sicily CH 13.583333 37.316667 Agrigento
(integer) 1
> GEOADD Sicily NX XX 1 2 x
(error) ERR syntax error
> GEOADD Sicily 1 2 x 3
(error) ERR syntax error
> GEOADD Sicily 181 2 x
(error) ERR invalid longitude,latitude pair 181.000000,2.000000
> GEOADD Sicily 1 85.1 x
(error) ERR invalid longitude,latitude pair 1.000000,85.100000
> GEOADD Sicily inf 2 x
(error) ERR invalid longitude,latitude pair inf,2.000000
> GEOADD Sicily abc 2 x
(error) ERR value is not a valid float
> GEOADD Sicily nx ch ch
(error) ERR syntax error
> ZSCORE Sicily Agrigento
"3479030013248308"
> GEODIST Sicily Palermo Catania
"166274.1516"
> GEODIST Sicily Palermo Catania km
"166.2742"
> GEODIST Sicily Palermo Catania MI
"103.3182"
> GEODIST Sicily Palermo Catania ft
"545518.8700"
> GEODIST Sicily Palermo Palermo
"0.0000"
> GEODIST Sicily Palermo Foo
(nil)
> GEODIST Nosuch a b
(nil)
> GEODIST Sicily Palermo Catania parsec
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEODIST Sicily Palermo Catania km x
(error) ERR syntax error
> GEOHASH Sicily Palermo Foo Catania
1) "sqc8b49rny0"
2) (nil)
3) "sqdtr74hyu0"
> GEOHASH Sicily
(empty array)
> GEOHASH Nosuch a
1) (nil)
> GEOPOS Sicily Palermo Foo Catania
1) 1) "13.36138933897018433"
   2) "38.11555639549629859"
2) (nil)
3) 1) "15.08726745843887329"
   2) "37.50266842333162032"
> GEOPOS Nosuch a
1) (nil)
> SET string x
OK
> GEOPOS string a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GEOADD string 1 2 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GEOSEARCH string FROMLONLAT 1 2 BYRADIUS 1 km
(error) WRONGTYPE Operation against a key holding the wrong kind of value
"#;

#[test]
fn positions_are_set_and_read() {
    check(POSITIONS_ARE_SET_AND_READ);
}

const AREAS_ARE_SEARCHED: &str = r#"
> GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2
(integer) 2
> GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC
1) "Catania"
2) "Palermo"
> GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST
1) 1) "Catania"
   2) "56.4413"
   3) 1) "15.08726745843887329"
      2) "37.50266842333162032"
2) 1) "Palermo"
   2) "190.4424"
   3) 1) "13.36138933897018433"
      2) "38.11555639549629859"
3) 1) "edge2"
   2) "279.7403"
   3) 1) "17.24151045083999634"
      2) "38.78813451624225195"
4) 1) "edge1"
   2) "279.7405"
   3) 1) "12.7584877610206604"
      2) "38.78813451624225195"
> GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 200 km DESC WITHHASH WITHDIST
1) 1) "Catania"
   2) "166.2742"
   3) (integer) 3479447370796909
2) 1) "edge1"
   2) "91.4007"
   3) (integer) 3479273021651468
3) 1) "Palermo"
   2) "0.0000"
   3) (integer) 3479099956230698
> GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km COUNT 2
1) "Catania"
2) "Palermo"
> GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km COUNT 1 ANY WITHDIST
1) 1) "Palermo"
   2) "190.4424"
> GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 m
(empty array)
> GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 0 m
(empty array)
> GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 0 m
1) "Palermo"
> GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 50000 km ASC
1) "Catania"
2) "Palermo"
3) "edge2"
4) "edge1"
> GEOSEARCH Sicily FROMLONLAT -170 -80 BYRADIUS 50000 km ASC COUNT 3
1) "Catania"
2) "Palermo"
3) "edge2"
> GEORADIUS Sicily 15 37 200 km WITHDIST WITHCOORD
1) 1) "Palermo"
   2) "190.4424"
   3) 1) "13.36138933897018433"
      2) "38.11555639549629859"
2) 1) "Catania"
   2) "56.4413"
   3) 1) "15.08726745843887329"
      2) "37.50266842333162032"
> GEORADIUS_RO Sicily 15 37 200 km DESC
1) "Palermo"
2) "Catania"
> GEORADIUSBYMEMBER Sicily Palermo 200 km
1) "Palermo"
2) "edge1"
3) "Catania"
> GEORADIUSBYMEMBER_RO Sicily Catania 200 km WITHHASH
1) 1) "Palermo"
   2) (integer) 3479099956230698
2) 1) "Catania"
   2) (integer) 3479447370796909
> GEORADIUSBYMEMBER Nosuch Palermo abc km
(empty array)
> GEORADIUSBYMEMBER Nosuch Palermo 1 km STORE d
(integer) 0
> GEORADIUS Nosuch 15 37 200 km
(empty array)
> GEOSEARCH Nosuch FROMMEMBER x BYRADIUS 1 km
(empty array)
"#;

#[test]
fn areas_are_searched() {
    check(AREAS_ARE_SEARCHED);
}

const RESULTS_ARE_STORED: &str = r#"
> GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOSEARCHSTORE out Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC COUNT 1
(integer) 1
> ZRANGE out 0 -1 WITHSCORES
1) "Catania"
2) "3479447370796909"
> GEOSEARCHSTORE out Sicily FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST
(integer) 2
> ZRANGE out 0 -1 WITHSCORES
1) "Catania"
2) "56.441257870158204"
3) "Palermo"
4) "190.44242984775784"
> GEORADIUS Sicily 15 37 200 km STORE out
(integer) 2
> ZRANGE out 0 -1 WITHSCORES
1) "Palermo"
2) "3479099956230698"
3) "Catania"
4) "3479447370796909"
> GEORADIUSBYMEMBER Sicily Palermo 200 km STORE other STOREDIST out
(integer) 2
> ZRANGE out 0 -1 WITHSCORES
1) "Palermo"
2) "0"
3) "Catania"
4) "166.27415156960032"
> EXISTS other
(integer) 0
> GEOSEARCHSTORE out Sicily FROMLONLAT 1 2 BYRADIUS 1 m
(integer) 0
> EXISTS out
(integer) 0
> SET out x
OK
> GEORADIUSBYMEMBER Nosuch m 1 km STORE out
(integer) 0
> EXISTS out
(integer) 0
> GEOSEARCHSTORE Sicily Sicily FROMMEMBER Palermo BYBOX 1 1 m
(integer) 1
> ZRANGE Sicily 0 -1
1) "Palermo"
> GEOSEARCHSTORE out Sicily FROMMEMBER Palermo BYBOX 1 1 m WITHDIST
(error) ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS Sicily 15 37 200 km STORE out WITHCOORD
(error) ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS_RO Sicily 15 37 200 km STORE out
(error) ERR syntax error
"#;

#[test]
fn results_are_stored() {
    check(RESULTS_ARE_STORED);
}

const WRONG_SEARCHES_ARE_REFUSED: &str = r#"
> GEOADD k 1 2 a
(integer) 1
> GEOSEARCH k FROMMEMBER a FROMLONLAT 1 2 BYRADIUS 1 km
(error) ERR syntax error
> GEOSEARCH k FROMMEMBER b BYRADIUS 1 km
(error) ERR could not decode requested zset member
> GEOSEARCH k BYRADIUS 1 km ASC WITHDIST
(error) ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km BYBOX 1 1 km
(error) ERR syntax error
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS x km
(error) ERR need numeric radius
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS -1 km
(error) ERR radius cannot be negative
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 lightyear
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEOSEARCH k FROMLONLAT 1 2 BYBOX x 1 km
(error) ERR need numeric width
> GEOSEARCH k FROMLONLAT 1 2 BYBOX 1 x km
(error) ERR need numeric height
> GEOSEARCH k FROMLONLAT 1 2 BYBOX 1 -1 km
(error) ERR height or width cannot be negative
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km COUNT 0
(error) ERR COUNT must be > 0
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km COUNT x
(error) ERR value is not an integer or out of range
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km ANY
(error) ERR the ANY argument requires COUNT argument
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km COUNT
(error) ERR syntax error
> GEOSEARCH k FROMLONLAT 1 2 BYRADIUS 1 km STOREDIST
(error) ERR syntax error
> GEOSEARCH k FROMLONLAT 1 200 BYRADIUS 1 km
(error) ERR invalid longitude,latitude pair 1.000000,200.000000
> GEORADIUSBYMEMBER k b 1 km
(error) ERR could not decode requested zset member
> GEORADIUS k 1 2 1 km STORE
(error) ERR syntax error
"#;

#[test]
fn wrong_searches_are_refused() {
    check(WRONG_SEARCHES_ARE_REFUSED);
}

const POLYGONS_ARE_SEARCHED: &str = r#"
> GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 39 ASC WITHDIST WITHCOORD WITHHASH
1) 1) "Catania"
   2) "56101.2233"
   3) (integer) 3479447370796909
   4) 1) "15.08726745843887329"
      2) "37.50266842333162032"
> GEOSEARCH Sicily BYPOLYGON 4 12 36 16 36 16 39 12 39 DESC WITHDIST
1) 1) "Catania"
   2) "95942.2984"
2) 1) "Palermo"
   2) "87079.3757"
> GEOSEARCH Sicily BYPOLYGON 4 12 36 16 36 16 39 12 39 COUNT 1 WITHDIST
1) 1) "Palermo"
   2) "87079.3757"
> GEOSEARCH Sicily BYPOLYGON 3 0 0 1 0 1 1
(empty array)
> GEOSEARCH Nosuch BYPOLYGON 3 0 0 1 0 1 1
(empty array)
> GEOSEARCHSTORE out Sicily BYPOLYGON 3 15 37 16 38 14 39
(integer) 1
> ZRANGE out 0 -1
1) "Catania"
> GEOSEARCH Sicily BYPOLYGON 2 15 37 16 38 14 39
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH Sicily BYPOLYGON 4 15 37 16 38 14 39
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH Sicily BYPOLYGON x 15 37 16 38 14 39
(error) ERR invalid number of vertices
> GEOSEARCH Sicily BYPOLYGON -3 15 37 16 38 14 39
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 x
(error) ERR value is not a valid float
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 99
(error) ERR invalid longitude,latitude pair 14.000000,99.000000
> GEOSEARCH Sicily FROMLONLAT 1 2 BYPOLYGON 3 15 37 16 38 14 39
(error) ERR syntax error
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 39 FROMMEMBER Palermo
(error) ERR syntax error
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 39 BYRADIUS 1 km
(error) ERR syntax error
> GEOSEARCH Sicily BYPOLYGON 3 15 37 16 38 14 39 BYBOX 1 1 km
(error) ERR syntax error
> GEOSEARCH Sicily FROMLONLAT 1 2 COUNT 1 ASC
(error) ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for GEOSEARCH
"#;

#[test]
fn polygons_are_searched() {
    check(POLYGONS_ARE_SEARCHED);
}

fn fraction(rng: &mut SplitMix64) -> f64 {
    (rng.draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// A random shape not larger than a country, away from the poles, and a random position near it.
fn shape_and_position(rng: &mut SplitMix64) -> (Shape, Position) {
    let mut near = |center: Position, reach: f64| Position {
        longitude: center.longitude + (fraction(rng) - 0.5) * reach,
        latitude: center.latitude + (fraction(rng) - 0.5) * reach,
    };
    let center = near(Position { longitude: 0.0, latitude: 0.0 }, 110.0);
    let reach = near(Position { longitude: 5.0, latitude: 0.0 }, 9.9).longitude;
    let meters = reach * 111_000.0;
    let shape = match center.longitude.to_bits() % 3 {
        0 => Shape::Circle { center, radius: meters / 2.0 },
        1 => Shape::Box { center, width: meters, height: meters / 2.0 },
        _ => Shape::polygon((0..5).map(|_| near(center, reach)).collect()),
    };
    (shape, near(center, 2.0 * reach))
}

#[test]
fn every_position_in_a_shape_lies_in_a_searched_cell() {
    let mut rng = SplitMix64::new(7);
    let mut inside = 0;
    for _ in 0..20_000 {
        let (shape, position) = shape_and_position(&mut rng);
        if shape.distance(position).is_none() {
            continue;
        }
        inside += 1;
        let score = position.score() as f64;
        let is_searched = |(first, end): (f64, f64)| (first..end).contains(&score);
        assert!(
            cover::cells(&shape).into_iter().any(|cell| is_searched(cell.scores())),
            "{position:?} around {:?}",
            shape.center()
        );
    }
    assert!(inside > 2_000, "only {inside} positions in their shapes");
}

#[test]
fn a_small_shape_searches_a_small_part_of_the_earth() {
    let center = Position { longitude: 13.361_389, latitude: 38.115_556 };
    let cells = cover::cells(&Shape::Circle { center, radius: 1_000.0 });
    let scores: f64 = cells.iter().map(|cell| cell.scores().1 - cell.scores().0).sum();
    let part = scores / (1u64 << 52) as f64;
    assert!(cells.len() <= 9 && part < 1e-6, "{} cells, {part} of all scores", cells.len());
}

#[test]
fn many_members_are_found_as_by_looking_at_all() {
    let (mut node, mut rng) = (TestNode::default(), SplitMix64::new(3));
    let mut members = Vec::new();
    for number in 0..2_000 {
        let (longitude, latitude) = (fraction(&mut rng) * 20.0, fraction(&mut rng) * 20.0 + 40.0);
        node.run(&format!("GEOADD k {longitude} {latitude} m{number}"));
        members.push(Position::of_score(Position { longitude, latitude }.score() as f64));
    }
    for radius in [1_000.0, 50_000.0, 400_000.0] {
        let center = Position { longitude: 10.0, latitude: 50.0 };
        let circle = Shape::Circle { center, radius };
        let expected = members.iter().filter(|it| circle.distance(**it).is_some()).count();
        let found = node.run(&format!("GEOSEARCHSTORE d k FROMLONLAT 10 50 BYRADIUS {radius} m"));
        assert_eq!(found, format!("(integer) {expected}"));
    }
    assert_eq!(node.slots.digest(), node.replayed().digest());
}
