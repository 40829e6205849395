//! A grid of squares, hashed into a table. The size of the table depends on the number of elements and not on the
//! world: squares far apart share a slot, and each search compares exactly.

use std::ops::Range;

/// Maximum rounding error of a coordinate or a distance, relative to the largest number in its computation: some half
/// units in the last place.
const ROUNDING: f32 = 4.0 * f32::EPSILON;

/// Ranges of an array that is sorted by square.
#[derive(Clone, Debug, Default)]
pub(crate) struct Squares {
    /// Inverse of the side of a square, 1/metres.
    per_metre: f32,
    /// Offset of a row of squares from the previous row in the table. It is odd, so that a world of one column fills
    /// the table like a world of one row, and about the square root of the table's size, so that the rows of a square
    /// world lie side by side.
    pitch: i64,
    /// Start of each slot in the array, and the end. The number of slots is a power of two.
    begins: Vec<u32>,
}

/// All places that are farther than `inner` metres from the centre on one axis, and no farther than `outer` on either.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) centre: [f32; 2],
    pub(crate) inner: f32,
    pub(crate) outer: f32,
}

impl Squares {
    /// Sorts positions into squares of such a side, and returns the index of each in the sorted array.
    pub(crate) fn sort(
        &mut self,
        side: f32,
        places: impl ExactSizeIterator<Item = [f32; 2]> + Clone,
        mut put: impl FnMut(usize),
    ) {
        let bits = places.len().next_power_of_two().trailing_zeros().div_ceil(2);
        self.pitch = (1 << bits) + 1;
        self.per_metre = 1.0 / side;
        self.begins.clear();
        self.begins.resize((1_usize << (2 * bits)) + 1, 0);
        for place in places.clone() {
            let square = self.square(place);
            self.begins[square] += 1;
        }
        let mut end = 0;
        for begin in &mut self.begins {
            end += *begin;
            *begin = end;
        }
        for place in places {
            let square = self.square(place);
            self.begins[square] -= 1;
            put(self.begins[square] as usize);
        }
    }

    /// Visits ranges of the sorted array that contain every element in the ring, and some outside it; an element may be
    /// in several ranges.
    pub(crate) fn touch(&self, ring: Ring, mut visit: impl FnMut(Range<usize>)) {
        let [columns, rows] = ring.centre.map(|centre| Cut::of(centre, &ring, self.per_metre));
        let breadth = |cut: &Cut| cut.outer.end - cut.outer.start;
        if breadth(&rows).saturating_mul(breadth(&columns)) >= self.places() {
            return visit(self.between(0, self.begins.len() - 1));
        }
        for row in rows.outer.clone() {
            if rows.inner.contains(&row) && !columns.inner.is_empty() {
                self.touch_row(row, columns.outer.start..columns.inner.start, &mut visit);
                self.touch_row(row, columns.inner.end..columns.outer.end, &mut visit);
            } else {
                self.touch_row(row, columns.outer.clone(), &mut visit);
            }
        }
    }

    /// Adjacent squares of a row have adjacent slots, except at the end of the table.
    fn touch_row(&self, row: i64, columns: Range<i64>, visit: &mut impl FnMut(Range<usize>)) {
        let (first, last) = (self.place(row, columns.start), self.place(row, columns.end - 1));
        if first <= last {
            visit(self.between(first, last + 1));
        } else {
            visit(self.between(first, self.begins.len() - 1));
            visit(self.between(0, last + 1));
        }
    }

    fn between(&self, first: usize, end: usize) -> Range<usize> {
        self.begins[first] as usize..self.begins[end] as usize
    }

    fn square(&self, [x, z]: [f32; 2]) -> usize {
        self.place(index(z * self.per_metre), index(x * self.per_metre))
    }

    fn place(&self, row: i64, column: i64) -> usize {
        let place = (row * self.pitch + column) & (self.places() - 1);
        usize::try_from(place).expect("a masked number is not negative")
    }

    /// Number of slots.
    fn places(&self) -> i64 {
        self.begins.len() as i64 - 1
    }
}

/// Extent of a ring along one axis, in squares.
struct Cut {
    outer: Range<i64>,
    /// Squares outside the ring, if they are in this range on the other axis as well.
    inner: Range<i64>,
}

impl Cut {
    fn of(centre: f32, ring: &Ring, per_metre: f32) -> Self {
        let slack = (centre.abs() + ring.outer) * ROUNDING;
        let at = |metres: f32| index((centre + metres) * per_metre);
        let (outer, inner) = (ring.outer + slack, ring.inner - slack);
        let outer = at(-outer)..at(outer) + 1;
        let inner = if inner > 0.0 { at(-inner) + 1..at(inner) } else { 0..0 };
        Self { outer, inner }
    }
}

/// The index of a coordinate's square, counted from the origin. It is monotonic in the coordinate, which is all that
/// matters: the square at the origin is twice as wide, and coordinates too far out share the outermost one.
#[expect(clippy::cast_possible_truncation, reason = "a float cast to an integer saturates")]
fn index(squares: f32) -> i64 {
    i64::from(squares as i32)
}
