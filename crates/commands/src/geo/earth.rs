//! Distances on the earth as a sphere, with the same floating-point operations as Redis, so that the digits are equal.

use super::cell::Position;

pub(super) const RADIUS_METERS: f64 = 6_372_797.560_856;
const RADIANS: f64 = core::f64::consts::PI / 180.0;

pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS
}

pub(super) fn degrees(radians: f64) -> f64 {
    radians / RADIANS
}

/// Returns the length of an arc of a meridian, in metres.
pub(super) fn latitude_distance(one: f64, other: f64) -> f64 {
    RADIUS_METERS * (radians(other) - radians(one)).abs()
}

/// Returns the distance in metres, by the haversine formula.
pub(super) fn distance(one: Position, other: Position) -> f64 {
    let v = ((radians(other.longitude) - radians(one.longitude)) / 2.0).sin();
    if v.abs() <= 0.0 {
        return latitude_distance(one.latitude, other.latitude);
    }
    let (one, other) = (radians(one.latitude), radians(other.latitude));
    let u = ((other - one) / 2.0).sin();
    let a = u * u + one.cos() * other.cos() * v * v;
    2.0 * RADIUS_METERS * a.sqrt().asin()
}
