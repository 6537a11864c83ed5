//! Scripts: a corpus is answered as Redis answers it; they are atomic under load, in a cluster and through a failover; a
//! slow one can be killed, and stops its slot only.
mod differential;
mod life;
