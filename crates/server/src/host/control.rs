//! Stopping the node, for SHUTDOWN.

use cluster::control::OperatorRequest;
use commands::Control;

use super::NodeHost;

impl Control for NodeHost<'_> {
    fn shut_down(&mut self) {
        self.shared.control.ask(OperatorRequest::Leave, |_| {});
    }
}
