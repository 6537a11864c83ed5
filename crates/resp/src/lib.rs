//! The Redis wire protocol, RESP2 and RESP3, both directions. Bytes in, bytes out; no I/O.
