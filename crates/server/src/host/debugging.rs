//! The operations of DEBUG.

use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use commands::{ActiveExpiry, Debugging};

use super::NodeHost;

impl Debugging for NodeHost<'_> {
    fn sleep(&mut self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn set_active_expiry(&mut self, active: ActiveExpiry) {
        self.shared.expires_actively.store(active == ActiveExpiry::On, Relaxed);
    }
}
