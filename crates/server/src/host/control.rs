//! The end of the node, for SHUTDOWN.

use commands::Control;

use super::NodeHost;

impl Control for NodeHost<'_> {
    fn shut_down(&mut self) {
        self.shared.stop();
    }
}
