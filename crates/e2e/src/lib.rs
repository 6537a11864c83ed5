//! End-to-end tests with real processes on loopback. The tests are in tests/.
