//! Cells of the grid over the earth (geohash): how a position becomes a score of 52 bits, and a score a position.
//!
//! At step `n` the grid has 2^n rows and columns. A cell's bits are those of its column and row, interleaved: so a cell is
//! a range of scores, and the cells within it are parts of that range.

/// The finest step: a score has 26 bits each for column and row.
pub(super) const STEP_MAX: u32 = 26;
const SCORE_BITS: u32 = 2 * STEP_MAX;

/// The limits of longitude and latitude of a grid.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

/// The grid of scores. Its latitudes are those of the Web Mercator projection.
pub(super) const GRID: Grid =
    Grid { longitude: (-180.0, 180.0), latitude: (-85.051_128_78, 85.051_128_78) };
/// The grid of geohash strings.
pub(super) const WHOLE_EARTH: Grid = Grid { longitude: (-180.0, 180.0), latitude: (-90.0, 90.0) };

/// A position in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Position {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Position {
    /// Returns whether the position has a score.
    pub(super) fn is_in_grid(self) -> bool {
        let ((west, east), (south, north)) = (GRID.longitude, GRID.latitude);
        (west..=east).contains(&self.longitude) && (south..=north).contains(&self.latitude)
    }

    /// Returns the middle of the smallest cell with this score.
    pub(super) fn of_score(score: f64) -> Position {
        let area = Cell::of_bits(score as u64, STEP_MAX).area();
        let middle = |low: f64, high: f64, limits: (f64, f64)| {
            f64::midpoint(low, high).clamp(limits.0, limits.1)
        };
        Position {
            longitude: middle(area.west, area.east, GRID.longitude),
            latitude: middle(area.south, area.north, GRID.latitude),
        }
    }

    /// Returns the score of a position in the grid.
    pub(super) fn score(self) -> u64 {
        Cell::at(self, STEP_MAX, GRID).bits()
    }
}

/// The sides of a cell, in degrees.
pub(super) struct Area {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    column: u32,
    row: u32,
    step: u32,
}

impl Cell {
    pub(super) fn at(position: Position, step: u32, grid: Grid) -> Cell {
        let index = |degrees: f64, (low, high): (f64, f64)| {
            ((degrees - low) / (high - low) * f64::from(1u32 << step)) as u32
        };
        Cell {
            column: index(position.longitude, grid.longitude),
            row: index(position.latitude, grid.latitude),
            step,
        }
    }

    fn of_bits(bits: u64, step: u32) -> Cell {
        Cell { column: every_second_bit(bits >> 1), row: every_second_bit(bits), step }
    }

    pub(super) fn bits(self) -> u64 {
        spread(self.column) << 1 | spread(self.row)
    }

    /// Returns the scores in the cell: the first, and the first behind it.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = SCORE_BITS - 2 * self.step;
        ((self.bits() << shift) as f64, ((self.bits() + 1) << shift) as f64)
    }

    pub(super) fn area(self) -> Area {
        let side = |index: u32, (low, high): (f64, f64)| {
            low + f64::from(index) / f64::from(1u32 << self.step) * (high - low)
        };
        Area {
            west: side(self.column, GRID.longitude),
            east: side(self.column.saturating_add(1), GRID.longitude),
            south: side(self.row, GRID.latitude),
            north: side(self.row.saturating_add(1), GRID.latitude),
        }
    }

    /// Returns the cell so many columns to the east and rows to the north; the grid has no edges.
    pub(super) fn moved(self, columns: i32, rows: i32) -> Cell {
        let mask = (1u32 << self.step) - 1;
        let shift = |index: u32, by: i32| {
            if by == 0 { index } else { index.wrapping_add_signed(by) & mask }
        };
        Cell { column: shift(self.column, columns), row: shift(self.row, rows), ..self }
    }
}

/// Puts a zero before each bit.
fn spread(number: u32) -> u64 {
    const MASKS: [(u32, u64); 5] = [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    MASKS.iter().fold(u64::from(number), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Undoes [`spread`]; the bits between are ignored.
fn every_second_bit(bits: u64) -> u32 {
    (0..32).fold(0, |number, bit| number | ((bits >> (2 * bit) & 1) as u32) << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores of redis-server 7.0.15.
    #[test]
    fn positions_have_the_scores_of_redis() {
        let scores = [
            (13.361_389, 38.115_556, 3_479_099_956_230_698),
            (15.087_269, 37.502_669, 3_479_447_370_796_909),
            (-180.0, -85.051_128_78, 0),
            (0.0, 0.0, 3_377_699_720_527_872),
        ];
        for (longitude, latitude, score) in scores {
            assert_eq!(Position { longitude, latitude }.score(), score);
        }
    }

    #[test]
    fn a_score_becomes_the_middle_of_its_cell() {
        let palermo = Position::of_score(3_479_099_956_230_698.0);
        assert_eq!(format!("{:.17}", palermo.longitude), "13.36138933897018433");
        assert_eq!(format!("{:.17}", palermo.latitude), "38.11555639549629859");
        assert_eq!(palermo.score(), 3_479_099_956_230_698);
    }

    #[test]
    fn cells_have_neighbours_beyond_the_edges() {
        let corner = Cell { column: 0, row: 3, step: 2 };
        assert_eq!(corner.moved(-1, 1), Cell { column: 3, row: 0, step: 2 });
        assert_eq!(corner.moved(1, -1), Cell { column: 1, row: 2, step: 2 });
        for bits in [0, 1, 2, 0xF_FFFF_FFFF_FFFF, 0xA_5A5A_1234_5678] {
            assert_eq!(Cell::of_bits(bits, STEP_MAX).bits(), bits);
        }
    }
}
