//! Positions on the earth: GEOADD, GEOSEARCH and the other geo commands. They keep positions as scores of a sorted set,
//! the same as Redis's, so commands on sorted sets work on them.
mod table; //  The descriptions of all commands.
mod cell; //   Cells of the grid: positions as scores.
mod earth; //  Distances.
mod shape; //  Circles, boxes and polygons.
mod cover; //  The cells that cover a shape.
mod add; //    GEOADD.
mod read; //   GEODIST, GEOHASH, GEOPOS.
mod query; //  The arguments of searches.
mod search; // GEOSEARCH, GEORADIUS and their variants.

use resp::{Protocol, Reply};

use crate::sorted_sets::parse_float;
use crate::{Args, Error};
use cell::Position;

pub(crate) use table::SPECS;

/// Parses the longitude at `index` and the latitude after it; the position must have a score.
fn parse_position(args: Args<'_>, index: usize) -> Result<Position, Error> {
    let degrees = |index: usize| parse_float(args.at(index)).ok_or(Error::NOT_A_FLOAT);
    let position = Position { longitude: degrees(index)?, latitude: degrees(index + 1)? };
    if position.is_in_grid() {
        return Ok(position);
    }
    let Position { longitude, latitude } = position;
    Err(Error::new(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// Returns the metres in a unit.
fn parse_unit(word: &[u8]) -> Result<f64, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1_000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1_609.34),
        _ => Err(Error::fixed("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// Writes a distance with four digits after the point, as Redis does.
fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(format!("{distance:.4}").as_bytes());
}

/// Writes longitude and latitude with up to 17 digits after the point, as Redis does.
fn reply_position(reply: &mut Reply<'_>, position: Position) {
    reply.array(2);
    for degrees in [position.longitude, position.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        match reply.protocol {
            Protocol::Resp2 => reply.bulk(text.as_bytes()),
            Protocol::Resp3 => reply.double_text(text),
        }
    }
}

#[cfg(test)]
mod tests;
