//! Clusters of real processes on this machine: they grow and shrink under load, and nothing that was
//! acknowledged is lost.
mod acks;
mod any_port;
mod faults;
mod events;
mod grow;
mod limits;
mod load;
mod losses;
mod meeting;
mod moves;
mod steady;
mod operate;
mod overlaps;
mod parked;
mod rolling;
mod settings;
mod stops;
mod sync;
mod pending;
