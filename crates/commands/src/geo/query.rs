//! The arguments of searches: GEOSEARCH and GEORADIUS with their variants.

use store::{Seed, SortedSetValue};

use super::cell::Position;
use super::shape::Shape;
use super::{parse_position, parse_unit};
use crate::error::repeated;
use crate::sorted_sets::parse_float;
use crate::{Args, Error};

/// Maximum number of bytes of the command's name that an error repeats.
const NAME_BYTES_MAX: usize = 128;

/// The parts of a search that the command's name decides.
#[derive(Clone, Copy)]
pub(super) struct SearchForm {
    pub(super) source_at: usize,
    /// Index of the first option.
    options_at: usize,
    center: CenterAt,
    /// True if the option STORE may name a key.
    has_store_option: bool,
    /// True if the first argument is the key to store to.
    pub(super) stores_always: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CenterAt {
    /// Longitude and latitude are the arguments after the key; the radius follows.
    Position,
    /// The member is the argument after the key; the radius follows.
    Member,
    Options,
}

impl SearchForm {
    pub(super) const AROUND_POSITION: SearchForm = SearchForm {
        source_at: 1,
        options_at: 6,
        center: CenterAt::Position,
        has_store_option: true,
        stores_always: false,
    };
    pub(super) const AROUND_MEMBER: SearchForm =
        SearchForm { options_at: 5, center: CenterAt::Member, ..SearchForm::AROUND_POSITION };
    pub(super) const SEARCH: SearchForm = SearchForm {
        options_at: 2,
        center: CenterAt::Options,
        has_store_option: false,
        ..SearchForm::AROUND_POSITION
    };
    pub(super) const SEARCH_AND_STORE: SearchForm =
        SearchForm { source_at: 2, options_at: 3, stores_always: true, ..SearchForm::SEARCH };

    pub(super) const fn without_store(self) -> SearchForm {
        SearchForm { has_store_option: false, ..self }
    }

    pub(super) fn is_search(self) -> bool {
        self.center == CenterAt::Options
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// The key to store the result to.
#[derive(Clone, Copy)]
pub(super) struct Destination {
    pub(super) key_at: usize,
    /// True if the scores are distances.
    pub(super) as_distances: bool,
}

/// The size and form of the area, as it was given.
#[derive(Clone)]
enum Extent {
    Radius(f64),
    Box { width: f64, height: f64 },
    Polygon(Vec<Position>),
}

/// A parsed search.
#[derive(Default)]
pub(super) struct Query {
    /// The option that named the centre, and the centre; `None` if it is a member of a missing key.
    center: Option<(CenterAt, Option<Position>)>,
    extent: Option<Extent>,
    /// Metres in the unit of the given lengths; 0 if none is given.
    unit: f64,
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_position: bool,
    pub(super) order: Option<Order>,
    pub(super) count: Option<usize>,
    /// True if the search ends as soon as enough members are found.
    pub(super) takes_any: bool,
    pub(super) destination: Option<Destination>,
}

impl Query {
    /// Parses all arguments. Errors come in Redis's order, which depends on whether the key exists.
    pub(super) fn parse(
        args: Args<'_>,
        form: SearchForm,
        set: Option<SortedSetValue<'_>>,
        seed: &Seed,
    ) -> Result<Query, Error> {
        let destination =
            form.stores_always.then_some(Destination { key_at: 1, as_distances: false });
        let mut query = Query { destination, ..Query::default() };
        let place = Place { args, set, seed };
        match form.center {
            CenterAt::Options => {}
            // Only then does Redis look at the radius.
            CenterAt::Member if set.is_none() => {}
            CenterAt::Member | CenterAt::Position => {
                query.center = Some((form.center, place.center(form.center, 2)?));
                query.set_radius(args, form.options_at - 2)?;
            }
        }
        let mut index = form.options_at;
        while index < args.len() {
            index += match query.parse_option(args, form, index)? {
                0 if form.is_search() => query.parse_area(&place, index)?,
                0 => return Err(Error::SYNTAX),
                parsed => parsed,
            };
        }
        query.check(args, form)?;
        Ok(query)
    }

    /// Parses an option about the reply or the destination. Returns the number of its arguments; 0 if it is none.
    fn parse_option(
        &mut self,
        args: Args<'_>,
        form: SearchForm,
        index: usize,
    ) -> Result<usize, Error> {
        let behind = args.len() - index - 1;
        match args.at(index).to_ascii_lowercase().as_slice() {
            b"withdist" => self.with_distance = true,
            b"withhash" => self.with_hash = true,
            b"withcoord" => self.with_position = true,
            b"any" => self.takes_any = true,
            b"asc" => self.order = Some(Order::Ascending),
            b"desc" => self.order = Some(Order::Descending),
            b"count" if behind >= 1 => {
                self.count = Some(parse_count(args.at(index + 1))?);
                return Ok(2);
            }
            word @ (b"store" | b"storedist") if form.has_store_option && behind >= 1 => {
                let as_distances = word == b"storedist";
                self.destination = Some(Destination { key_at: index + 1, as_distances });
                return Ok(2);
            }
            b"storedist" if form.stores_always => {
                self.destination = Some(Destination { key_at: 1, as_distances: true });
            }
            _ => return Ok(0),
        }
        Ok(1)
    }

    /// Parses an option about the area. Returns the number of its arguments.
    fn parse_area(&mut self, place: &Place<'_>, index: usize) -> Result<usize, Error> {
        let args = place.args;
        let behind = args.len() - index - 1;
        let is_polygon = matches!(self.extent, Some(Extent::Polygon(_)));
        match args.at(index).to_ascii_lowercase().as_slice() {
            b"frommember" if behind >= 1 && self.may_center(CenterAt::Member) => {
                self.center = Some((CenterAt::Member, place.center(CenterAt::Member, index + 1)?));
                Ok(2)
            }
            b"fromlonlat" if behind >= 2 && self.may_center(CenterAt::Position) => {
                let center = place.center(CenterAt::Position, index + 1)?;
                self.center = Some((CenterAt::Position, center));
                Ok(3)
            }
            b"byradius" if behind >= 2 && matches!(self.extent, None | Some(Extent::Radius(_))) => {
                self.set_radius(args, index + 1)?;
                Ok(3)
            }
            b"bybox" if behind >= 3 && matches!(self.extent, None | Some(Extent::Box { .. })) => {
                self.set_box(args, index + 1)?;
                Ok(4)
            }
            b"bypolygon"
                if behind >= 2
                    && self.center.is_none()
                    && (is_polygon || self.extent.is_none()) =>
            {
                let vertices = parse_vertices(args, index + 1)?;
                let length = 2 + 2 * vertices.len();
                self.extent = Some(Extent::Polygon(vertices));
                Ok(length)
            }
            _ => Err(Error::SYNTAX),
        }
    }

    /// Returns whether this option may name the centre: neither may the other one nor a polygon.
    fn may_center(&self, at: CenterAt) -> bool {
        let is_polygon = matches!(self.extent, Some(Extent::Polygon(_)));
        !is_polygon && self.center.is_none_or(|(by, _)| by == at)
    }

    fn set_radius(&mut self, args: Args<'_>, index: usize) -> Result<(), Error> {
        let radius = parse_float(args.at(index));
        let radius = radius.ok_or(Error::fixed("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(Error::fixed("ERR radius cannot be negative"));
        }
        self.unit = parse_unit(args.at(index + 1))?;
        self.extent = Some(Extent::Radius(radius));
        Ok(())
    }

    fn set_box(&mut self, args: Args<'_>, index: usize) -> Result<(), Error> {
        let width = parse_float(args.at(index)).ok_or(Error::fixed("ERR need numeric width"))?;
        let height =
            parse_float(args.at(index + 1)).ok_or(Error::fixed("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(Error::fixed("ERR height or width cannot be negative"));
        }
        self.unit = parse_unit(args.at(index + 2))?;
        self.extent = Some(Extent::Box { width, height });
        Ok(())
    }

    fn check(&self, args: Args<'_>, form: SearchForm) -> Result<(), Error> {
        if self.destination.is_some() && self.reply_parts() > 0 {
            let name =
                if form.stores_always { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(Error::new(format!(
                "ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let name = repeated(args.at(0), NAME_BYTES_MAX);
        let is_polygon = matches!(self.extent, Some(Extent::Polygon(_)));
        if form.is_search() && self.center.is_none() && !is_polygon {
            return Err(Error::new(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if form.is_search() && self.extent.is_none() {
            return Err(Error::new(format!(
                "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for {name}"
            )));
        }
        if self.takes_any && self.count.is_none() {
            return Err(Error::fixed("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// Returns the number of parts of a reply besides the member.
    pub(super) fn reply_parts(&self) -> usize {
        [self.with_distance, self.with_hash, self.with_position]
            .into_iter()
            .filter(|it| *it)
            .count()
    }

    /// Returns the area in metres; `None` if the centre is a member of a missing key.
    pub(super) fn shape(&self) -> Option<Shape> {
        let center = self.center.and_then(|(_, center)| center);
        Some(match self.extent.clone()? {
            Extent::Radius(radius) => Shape::Circle { center: center?, radius: radius * self.unit },
            Extent::Box { width, height } => {
                Shape::Box { center: center?, width: width * self.unit, height: height * self.unit }
            }
            Extent::Polygon(vertices) => Shape::polygon(vertices),
        })
    }

    /// Returns a distance in the unit of the given lengths; in metres for a polygon.
    pub(super) fn in_unit(&self, meters: f64) -> f64 {
        if self.unit > 0.0 { meters / self.unit } else { meters }
    }
}

/// The arguments, and the sorted set in which members are looked up.
struct Place<'a> {
    args: Args<'a>,
    set: Option<SortedSetValue<'a>>,
    seed: &'a Seed,
}

impl Place<'_> {
    /// Returns the centre given at `index`; `None` if it is a member of a missing key.
    fn center(&self, at: CenterAt, index: usize) -> Result<Option<Position>, Error> {
        if at == CenterAt::Position {
            return parse_position(self.args, index).map(Some);
        }
        let Some(set) = self.set else { return Ok(None) };
        let score = set.score(self.args.at(index), self.seed);
        let score = score.ok_or(Error::fixed("ERR could not decode requested zset member"))?;
        Ok(Some(Position::of_score(score.get())))
    }
}

fn parse_count(text: &[u8]) -> Result<usize, Error> {
    let count = resp::parse_integer(text).ok_or(Error::NOT_AN_INTEGER)?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    count.ok_or(Error::fixed("ERR COUNT must be > 0"))
}

/// Parses the number of vertices at `index`, and the vertices after it.
fn parse_vertices(args: Args<'_>, index: usize) -> Result<Vec<Position>, Error> {
    let count = resp::parse_integer(args.at(index));
    let count = count.filter(|count| i32::try_from(*count).is_ok());
    let count = count.ok_or(Error::fixed("ERR invalid number of vertices"))?;
    let given = (args.len() - index - 1) / 2;
    let count = usize::try_from(count).ok().filter(|count| (3..=given).contains(count));
    let count =
        count.ok_or(Error::fixed("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
    (0..count).map(|number| parse_position(args, index + 1 + 2 * number)).collect()
}
