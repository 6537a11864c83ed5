//! Timers on real processes: what a client of `/timers` sees, and what it is called back with while
//! nodes come, leave and die.

mod http; //   A client of HTTP, as small as it can be.
mod sink; //   Somebody to call back.
mod api; //    What each request is answered with.
mod churn; //  A cluster that grows, shrinks and loses a node while timers pop.
