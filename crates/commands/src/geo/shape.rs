//! The shape of a searched area: circle, box, polygon.

use super::cell::Position;
use super::earth::{self, RADIUS_METERS, degrees, distance, radians};

/// A searched area around a centre. Lengths are in metres.
pub(super) enum Shape {
    Circle {
        center: Position,
        radius: f64,
    },
    Box {
        center: Position,
        width: f64,
        height: f64,
    },
    Polygon {
        /// The centroid of the vertices, from which distances are measured.
        center: Position,
        vertices: Vec<Position>,
    },
}

/// The sides of the smallest box around a shape, in degrees.
pub(super) struct Bounds {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

impl Shape {
    pub(super) fn polygon(vertices: Vec<Position>) -> Shape {
        Shape::Polygon { center: centroid(&vertices), vertices }
    }

    pub(super) fn center(&self) -> Position {
        match self {
            Shape::Circle { center, .. }
            | Shape::Box { center, .. }
            | Shape::Polygon { center, .. } => *center,
        }
    }

    /// Returns the distance of a position from the centre, if it lies in the shape.
    pub(super) fn distance(&self, position: Position) -> Option<f64> {
        match self {
            Shape::Circle { center, radius } => {
                Some(distance(*center, position)).filter(|distance| distance <= radius)
            }
            Shape::Box { center, width, height } => {
                let of_latitude = earth::latitude_distance(position.latitude, center.latitude);
                let below_center = Position { longitude: center.longitude, ..position };
                let is_inside =
                    of_latitude <= height / 2.0 && distance(position, below_center) <= width / 2.0;
                is_inside.then(|| distance(*center, position))
            }
            Shape::Polygon { center, vertices } => {
                contains(vertices, position).then(|| distance(*center, position))
            }
        }
    }

    /// Returns the smallest distance from the centre within which the whole shape lies.
    pub(super) fn reach(&self) -> f64 {
        match self {
            Shape::Circle { radius, .. } => *radius,
            Shape::Box { width, height, .. } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
            Shape::Polygon { center, .. } => {
                let Bounds { west, east, south, north } = self.bounds();
                let corners = [(west, north), (east, north), (west, south), (east, south)];
                let corners = corners.map(|(longitude, latitude)| Position { longitude, latitude });
                corners.map(|corner| distance(*center, corner)).into_iter().fold(0.0, f64::max)
            }
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        match self {
            Shape::Circle { center, radius } => bounds_around(*center, *radius, *radius),
            Shape::Box { center, width, height } => {
                bounds_around(*center, *width / 2.0, *height / 2.0)
            }
            Shape::Polygon { vertices, .. } => {
                let longitudes = || vertices.iter().map(|vertex| vertex.longitude);
                let latitudes = || vertices.iter().map(|vertex| vertex.latitude);
                Bounds {
                    west: longitudes().fold(f64::INFINITY, f64::min),
                    east: longitudes().fold(f64::NEG_INFINITY, f64::max),
                    south: latitudes().fold(f64::INFINITY, f64::min),
                    north: latitudes().fold(f64::NEG_INFINITY, f64::max),
                }
            }
        }
    }
}

/// Returns the box that reaches so far to each side. The parallels are shorter towards the poles, so the side that is nearer to
/// a pole decides about the longitudes.
fn bounds_around(center: Position, to_sides: f64, to_top: f64) -> Bounds {
    let Position { longitude, latitude } = center;
    let of_latitude = degrees(to_top / RADIUS_METERS);
    let poleward = if latitude < 0.0 { latitude - of_latitude } else { latitude + of_latitude };
    let of_longitude = degrees(to_sides / RADIUS_METERS / radians(poleward).cos());
    Bounds {
        west: longitude - of_longitude,
        east: longitude + of_longitude,
        south: latitude - of_latitude,
        north: latitude + of_latitude,
    }
}

/// Returns the position in the direction of the mean of all vertices, as seen from the middle of the earth.
fn centroid(vertices: &[Position]) -> Position {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for vertex in vertices {
        let (longitude, latitude) = (radians(vertex.longitude), radians(vertex.latitude));
        x += RADIUS_METERS * latitude.cos() * longitude.cos();
        y += RADIUS_METERS * latitude.cos() * longitude.sin();
        z += RADIUS_METERS * latitude.sin();
    }
    let count = vertices.len() as f64;
    let (x, y, z): (f64, f64, f64) = (x / count, y / count, z / count);
    Position { longitude: degrees(y.atan2(x)), latitude: degrees(z.atan2((x * x + y * y).sqrt())) }
}

/// Returns whether a position lies in a polygon: whether a ray to the east crosses an odd number of edges.
fn contains(vertices: &[Position], position: Position) -> bool {
    let ends = vertices.iter().cycle().skip(vertices.len() - 1);
    let crossed = vertices.iter().zip(ends).filter(|(one, other)| {
        let spans = (one.latitude > position.latitude) != (other.latitude > position.latitude);
        let width = (other.longitude - one.longitude) * (position.latitude - one.latitude);
        let crossing = width / (other.latitude - one.latitude) + one.longitude;
        spans && position.longitude < crossing
    });
    crossed.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> Position {
        Position { longitude, latitude }
    }

    #[test]
    fn a_polygon_may_be_concave() {
        let vertices = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 1.0), (0.0, 4.0)];
        let polygon = Shape::polygon(vertices.map(|(x, y)| at(x, y)).to_vec());
        for (longitude, latitude, is_inside) in [
            (0.5, 1.0, true),
            (3.5, 2.0, true),
            (2.0, 2.0, false),
            (5.0, 1.0, false),
            (2.0, 0.5, true),
        ] {
            assert_eq!(polygon.distance(at(longitude, latitude)).is_some(), is_inside);
        }
    }

    #[test]
    fn distances_are_the_published_ones() {
        // Redis's documentation: Palermo and Catania.
        let distance = distance(
            Position::of_score(3_479_099_956_230_698.0),
            Position::of_score(3_479_447_370_796_909.0),
        );
        assert_eq!(format!("{distance:.4}"), "166274.1516");
    }
}
