//! The descriptions of the geo commands.

use super::{add, read, search};
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

const SEARCHED: &str = "O(N+log(M)) where N is the number of members in the cells of the grid around \
                        the area, and M the number of members of the set";

const READ: Spec = Spec {
    group: Group::Geo,
    since: "3.2.0",
    complexity: "O(1) for each member",
    arity: -2,
    flags: Flags::of(&[Flag::ReadOnly]),
    keys: KeySpec::FIRST,
    ..BLANK
};

/// The common part of commands that search, and store the result.
const STORE: Spec =
    Spec { complexity: SEARCHED, flags: Flags::of(&[Flag::Write, Flag::DenyOom]), ..READ };

/// The common part of the older commands that may store the result.
const RADIUS: Spec =
    Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::MovableKeys]), ..STORE };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "geoadd",
        full_name: "geoadd",
        syntax: "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        summary: "Sets positions of members; a missing key becomes a new sorted set.",
        complexity: "O(log(N)) for each member, where N is the number of members of the set",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        run: Some(add::geoadd),
        ..READ
    },
    Spec {
        name: "geodist",
        full_name: "geodist",
        syntax: "key member1 member2 [M | KM | FT | MI]",
        summary: "Returns the distance between two members.",
        complexity: "O(1)",
        arity: -4,
        run: Some(read::geodist),
        ..READ
    },
    Spec {
        name: "geohash",
        full_name: "geohash",
        syntax: "key [member [member ...]]",
        summary: "Returns positions of members as geohash strings.",
        run: Some(read::geohash),
        ..READ
    },
    Spec {
        name: "geopos",
        full_name: "geopos",
        syntax: "key [member [member ...]]",
        summary: "Returns the longitudes and latitudes of members.",
        run: Some(read::geopos),
        ..READ
    },
    Spec {
        name: "georadius",
        full_name: "georadius",
        syntax: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
                 [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        summary: "Returns or stores the members within a distance from a position.",
        arity: -6,
        stored_from: 6,
        run: Some(search::georadius),
        ..RADIUS
    },
    Spec {
        name: "georadius_ro",
        full_name: "georadius_ro",
        syntax: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
                 [COUNT count [ANY]] [ASC | DESC]",
        summary: "Returns the members within a distance from a position.",
        since: "3.2.10",
        complexity: SEARCHED,
        arity: -6,
        run: Some(search::georadius_ro),
        ..READ
    },
    Spec {
        name: "georadiusbymember",
        full_name: "georadiusbymember",
        syntax: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
                 [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        summary: "Returns or stores the members within a distance from a member.",
        arity: -5,
        stored_from: 5,
        run: Some(search::georadiusbymember),
        ..RADIUS
    },
    Spec {
        name: "georadiusbymember_ro",
        full_name: "georadiusbymember_ro",
        syntax: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
                 [COUNT count [ANY]] [ASC | DESC]",
        summary: "Returns the members within a distance from a member.",
        since: "3.2.10",
        complexity: SEARCHED,
        arity: -5,
        run: Some(search::georadiusbymember_ro),
        ..READ
    },
    Spec {
        name: "geosearch",
        full_name: "geosearch",
        syntax: "key [FROMMEMBER member | FROMLONLAT longitude latitude] \
                 <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | \
                 BYPOLYGON num-vertices longitude latitude [longitude latitude ...]> [ASC | DESC] \
                 [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
        summary: "Returns the members in a circle, a box or a polygon.",
        since: "6.2.0",
        complexity: SEARCHED,
        arity: -7,
        run: Some(search::geosearch),
        ..READ
    },
    Spec {
        name: "geosearchstore",
        full_name: "geosearchstore",
        syntax: "destination source [FROMMEMBER member | FROMLONLAT longitude latitude] \
                 <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | \
                 BYPOLYGON num-vertices longitude latitude [longitude latitude ...]> [ASC | DESC] \
                 [COUNT count [ANY]] [STOREDIST]",
        summary: "Stores the members in a circle, a box or a polygon.",
        since: "6.2.0",
        arity: -8,
        keys: KeySpec::FIRST_TWO,
        run: Some(search::geosearchstore),
        ..STORE
    },
];
