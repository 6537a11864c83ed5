//! Clusters of real processes on this machine: they grow and shrink under load, and nothing that was
//! acknowledged is lost.
mod acks;
mod any_port;
mod blocking;
mod faults;
mod followers;
mod events;
mod grow;
mod health;
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
mod queues;
mod rolling;
mod settings;
mod splits;
mod stops;
mod sync;
mod pending;
