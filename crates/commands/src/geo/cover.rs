//! Chooses the cells to search: at most nine, the centre's and its neighbours, of a size such that they cover the shape.
//! The same cells in the same order as in Redis, because unsorted results come in that order.

use super::cell::{Cell, GRID, STEP_MAX};
use super::shape::Shape;

/// Half of the earth's circumference in the Mercator projection, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;

/// A neighbour of the centre's cell: columns to the east, rows to the north.
const NEIGHBOURS: [(i32, i32); 8] =
    [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// Returns the cells that cover a shape, none twice in succession.
pub(super) fn cells(shape: &Shape) -> Vec<Cell> {
    let (center, bounds) = (shape.center(), shape.bounds());
    let mut step = step_for(shape.reach(), center.latitude);
    let mut cell = Cell::at(center, step, GRID);
    let is_too_small = cell.moved(0, 1).area().north < bounds.north
        || cell.moved(0, -1).area().south > bounds.south
        || cell.moved(1, 0).area().east < bounds.east
        || cell.moved(-1, 0).area().west > bounds.west;
    if step > 1 && is_too_small {
        step -= 1;
        cell = Cell::at(center, step, GRID);
    }
    let area = cell.area();
    let is_needed = |(columns, rows): (i32, i32)| {
        let is_useless = rows < 0 && area.south < bounds.south
            || rows > 0 && area.north > bounds.north
            || columns < 0 && area.west < bounds.west
            || columns > 0 && area.east > bounds.east;
        step < 2 || !is_useless
    };
    let needed = NEIGHBOURS.into_iter().filter(|neighbour| is_needed(*neighbour));
    let mut cells = vec![cell];
    cells.extend(needed.map(|(columns, rows)| cell.moved(columns, rows)));
    // At the coarsest steps, neighbours are the same cell.
    cells.dedup();
    cells
}

/// Returns the step at which nine cells cover a circle.
fn step_for(mut radius: f64, latitude: f64) -> u32 {
    if radius <= 0.0 {
        return STEP_MAX;
    }
    let mut step = 1i32;
    while radius < MERCATOR_MAX {
        radius *= 2.0;
        step += 1;
    }
    step -= 2;
    // Towards the poles, a degree of longitude is shorter.
    step -= i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    step.clamp(1, STEP_MAX.cast_signed()).cast_unsigned()
}
