//! The console in a real browser, and what the HTTP port stands.
mod browser; // A browser to look with.
mod live; //    The picture follows the cluster.
mod reach; //   Small windows, the keyboard, light and dark, many buckets.
mod operate; // What may be done from the page, and with what.
mod limits; //  Broken requests and slow clients.
