//! Measurements of recovery: after a kill, when one of two nodes remains, when a node leaves, when one was stopped.
//! `cargo xtask chaos --figures` runs these; `load::recovery` holds the results that are kept.
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use load::recovery::{Kills, Leaves, Recovery, Stops, Survivors};
use placement::Slot;

use super::anomalies::Class;
use super::book::Book;
use super::courier::{Courier, Fate};
use super::field::{Field, Mix, status};
use super::ground::Ground;
use super::load::{Desk, Load};
use super::read_all;
use super::town::Town;
use crate::Rng;

/// Number of threads that try to write to the buckets of a dead node.
const PROBES: usize = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// Delay, in half of the rounds, before clients arrive at the survivor of two.
const CLIENTS_COME_AFTER: Duration = Duration::from_secs(3);
const STOPPED_FOR: Duration = Duration::from_secs(10);

/// A group of measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Kills,
    Survivors,
    Leaves,
    Stops,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::Kills, Part::Survivors, Part::Leaves, Part::Stops];
}

/// Measures one part, and stores the results in `into`.
pub fn measure(part: Part, ground: Ground, rng: &mut Rng, into: &mut Recovery) -> io::Result<()> {
    match part {
        Part::Kills => into.kills = Some(kills(ground, 20, rng)?),
        Part::Survivors => into.survivors = Some(survivors(ground, 6, rng)?),
        Part::Leaves => into.leaves = Some(leaves(ground, 5, rng)?),
        Part::Stops => into.stops = Some(stops(ground, 3, rng)?),
    }
    Ok(())
}

/// A cluster under load.
struct Scene {
    field: Field,
    desk: Desk,
    load: Load,
}

impl Scene {
    fn set(ground: Ground, nodes: usize, rng: &mut Rng) -> io::Result<Scene> {
        let field = Field::of(ground, Mix::Plain, nodes, &[], Rng::new(rng.draw()))?;
        let desk = Desk::new(field.town.clone());
        let load = Load::start(&desk, rng.draw());
        Ok(Scene { field, desk, load })
    }

    /// Ends the load, and reads everything once more.
    fn end(self, rng: &mut Rng) -> Arc<Book> {
        self.load.end();
        read_all(&self.desk, rng);
        self.field.clear_away();
        self.desk.book
    }
}

/// Kills one of three nodes, again and again, and measures when everything it served is writable again.
fn kills(ground: Ground, rounds: usize, rng: &mut Rng) -> io::Result<Kills> {
    let mut scene = Scene::set(ground, 3, rng)?;
    let mut seconds = Vec::new();
    for round in 0..rounds {
        thread::sleep(PAUSE);
        let victim = rng.index(scene.field.nodes.len());
        let keys = keys_served_by(&scene.field, victim);
        let node = scene.field.take(victim);
        let name = node.name();
        let begun = Instant::now();
        node.kill();
        let took = until_written(&scene.field.town, &keys, begun, rng);
        println!("kill {round}: {name}, {} buckets, {took:.3} s", keys.len());
        seconds.push(took);
        scene.field.wait_until_whole()?;
        scene.field.join()?;
        scene.field.wait_until_whole()?;
    }
    let book = scene.end(rng);
    Ok(Kills { seconds, lost: book.count(Class::Lost), stale: stale(&book), writes: writes(&book) })
}

/// Kills one of two, and measures how long after the first client's arrival the other serves everything.
fn survivors(ground: Ground, rounds: usize, rng: &mut Rng) -> io::Result<Survivors> {
    let (mut at_once, mut later) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut field = Field::of(ground, Mix::Plain, 2, &[], Rng::new(rng.draw()))?;
        let keys: Vec<String> = (0..2).flat_map(|node| keys_served_by(&field, node)).collect();
        until_written(&field.town, &keys, Instant::now(), rng);
        let victim = rng.index(2);
        field.take(victim).kill();
        let is_late = round % 2 == 1;
        if is_late {
            thread::sleep(CLIENTS_COME_AFTER);
        }
        let took = until_written(&field.town, &keys, Instant::now(), rng);
        println!("survivor {round}: {} buckets, {took:.3} s", keys.len());
        if is_late { &mut later } else { &mut at_once }.push(took);
        field.clear_away();
    }
    Ok(Survivors { at_once, later })
}

/// Has nodes leave a cluster under load gracefully, and measures how long that takes.
fn leaves(ground: Ground, rounds: usize, rng: &mut Rng) -> io::Result<Leaves> {
    let mut scene = Scene::set(ground, 4, rng)?;
    let mut seconds = Vec::new();
    for round in 0..rounds {
        thread::sleep(PAUSE);
        let victim = rng.index(scene.field.nodes.len());
        let begun = Instant::now();
        // Clients keep using the node until it redirects them.
        scene.field.nodes.remove(victim).leave()?;
        seconds.push(begun.elapsed().as_secs_f64());
        println!("leave {round}: {:.3} s", begun.elapsed().as_secs_f64());
        scene.field.wait_until_whole()?;
        scene.field.join()?;
        scene.field.wait_until_whole()?;
    }
    let book = scene.end(rng);
    for (error, count) in book.errors() {
        println!("seen {count} times: {error}");
    }
    let (lost, stale) = (book.count(Class::Lost), stale(&book));
    Ok(Leaves { seconds, errors: book.errors().values().sum(), lost, stale, writes: writes(&book) })
}

/// Stops a node and resumes it. It must not answer with its state from before the stop.
fn stops(ground: Ground, rounds: usize, rng: &mut Rng) -> io::Result<Stops> {
    let mut scene = Scene::set(ground, 3, rng)?;
    for round in 0..rounds {
        thread::sleep(PAUSE);
        let victim = rng.index(scene.field.nodes.len());
        scene.field.nodes[victim].stop()?;
        thread::sleep(STOPPED_FOR);
        scene.field.nodes[victim].go_on()?;
        thread::sleep(PAUSE);
        let whole = scene.field.wait_until_whole()?.as_secs_f64();
        println!("stop {round}: whole again after {whole:.3} s");
    }
    let book = scene.end(rng);
    let (lost, stale) = (book.count(Class::Lost), stale(&book));
    let seconds = STOPPED_FOR.as_secs_f64();
    Ok(Stops { rounds, seconds, lost, stale, writes: writes(&book), reads: reads(&book) })
}

fn writes(book: &Book) -> u64 {
    book.writes.load(Ordering::Relaxed)
}

fn reads(book: &Book) -> u64 {
    book.reads.load(Ordering::Relaxed)
}

/// Returns the number of anomalies other than losses.
fn stale(book: &Book) -> usize {
    book.anomalies().len() - book.count(Class::Lost)
}

/// Returns a key of every bucket whose primary is this node.
fn keys_served_by(field: &Field, index: usize) -> Vec<String> {
    let node = &field.nodes[index];
    let status = status(node).unwrap_or_default();
    let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
    let name = node.name();
    let is_its = |bucket: &&serde_json::Value| bucket["holders"][0] == name.as_str();
    let first = |bucket: &serde_json::Value| bucket["first_slot"].as_u64();
    buckets.iter().filter(is_its).filter_map(first).map(key_in).collect()
}

/// Returns a key in this slot.
fn key_in(slot: u64) -> String {
    let is_there = |key: &String| u64::from(Slot::of(key.as_bytes()).number()) == slot;
    (0_u64..).map(|number| format!("probe:{number}")).find(is_there).expect("every slot has keys")
}

/// Returns the seconds from `begun` until all these keys have been written to.
fn until_written(town: &Town, keys: &[String], begun: Instant, rng: &mut Rng) -> f64 {
    let share = keys.len().div_ceil(PROBES).max(1);
    let threads: Vec<_> = keys
        .chunks(share)
        .map(|keys| {
            let (desk, keys, rng) = (Desk::new(town.clone()), keys.to_vec(), Rng::new(rng.draw()));
            thread::spawn(move || {
                let mut courier = Courier::new(&desk, rng).patient();
                for key in keys {
                    let words: [&[u8]; 3] = [b"SET", key.as_bytes(), b"1"];
                    while !matches!(courier.send(&key, &words), Fate::Answered(_)) {}
                }
                begun.elapsed().as_secs_f64()
            })
        })
        .collect();
    let ended = threads.into_iter().map(|thread| thread.join().expect("a probe does not panic"));
    ended.fold(0.0, f64::max)
}
