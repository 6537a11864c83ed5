//! Clusters of real processes on this machine: they grow and shrink under load, and nothing that was
//! acknowledged is lost.
mod acks;
mod databases;
mod any_port;
mod faults;
mod followers;
mod events;
mod grow;
mod leaving;
mod limits;
mod load;
mod losses;
mod meeting;
mod memory;
mod moves;
mod steady;
mod operate;
mod overlaps;
mod parked;
mod rolling;
mod settings;
mod splits;
mod stops;
mod sync;
mod pending;
