//! The console in a real browser, and the robustness of the HTTP port.
mod browser; // The browser that the tests use.
mod live; //    The picture follows the cluster.
mod reach; //   Small windows, the keyboard, light and dark, many buckets.
mod operate; // Actions that the page offers, and the token they need.
mod limits; //  Broken requests and slow clients.
