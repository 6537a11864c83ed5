//! Our load generator: open and closed loop, HDR histogram, no coordinated omission.
