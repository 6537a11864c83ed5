//! The start of a request: the conditions for sending it, and the nodes it is sent to.

use std::sync::Arc;

use placement::Slot;

use super::{Closing, ForwardRequest, Pipeline, Transaction, WATCH_ONE_NODE, command};
use crate::any_port::forwarded::{Forwarded, Inquiry, OnSuccess, QueuedReply};
use crate::any_port::plan::{CommandPart, ForwardPlan, Merge};
use crate::any_port::routes::{NodeAddress, Routes};
use crate::any_port::upstream::{Due, Use};

const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
const NOT_IN_MULTI: &str = "ERR this command is not allowed inside MULTI on the any-port";
const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

impl Pipeline {
    /// Starts the waiting request, if it may start. Returns true if it did.
    pub(super) fn start_waiting(&mut self, routes: &impl Routes) -> bool {
        let Some(request) = self.waiting.take() else { return false };
        if !self.may_start(&request.plan) {
            self.waiting = Some(request);
            return false;
        }
        if self.in_transaction() {
            self.start_in_transaction(request, routes);
        } else {
            self.start(request, routes);
        }
        true
    }

    fn may_start(&self, plan: &ForwardPlan) -> bool {
        let nothing_under_way = self.answers.is_empty();
        if self.in_transaction() {
            // Everything in flight belongs to the transaction, except a RESET that ends it.
            return nothing_under_way || *plan != ForwardPlan::Reset && !self.is_resetting();
        }
        // Only the reply to an exclusive request tells whether a transaction begins here.
        let is_settled = self.exclusive == 0;
        let is_free = |slot: &Slot| is_settled && !self.busy.contains(slot);
        match plan {
            ForwardPlan::To(slot) => is_free(slot),
            ForwardPlan::Scatter(_, parts) => parts.iter().all(|part| is_free(&part.slot)),
            ForwardPlan::CrossSlot | ForwardPlan::Refuse(_) | ForwardPlan::Quit => is_settled,
            ForwardPlan::Here
            | ForwardPlan::Block(..)
            | ForwardPlan::Listen
            | ForwardPlan::Unsubscribe { .. }
            | ForwardPlan::Introduce(_)
            | ForwardPlan::Begin
            | ForwardPlan::Exec
            | ForwardPlan::Discard
            | ForwardPlan::Watch(_)
            | ForwardPlan::Unwatch
            | ForwardPlan::Reset => nothing_under_way,
        }
    }

    /// Returns true if RESET is in flight: it starts alone, so it is the oldest.
    fn is_resetting(&self) -> bool {
        let Some(QueuedReply::Asked(request)) = self.answers.front() else { return false };
        matches!(request.on_success, OnSuccess::Reset)
    }

    fn start(&mut self, request: ForwardRequest, routes: &impl Routes) {
        let ForwardRequest { plan, command } = request;
        let here = routes.here();
        match plan {
            ForwardPlan::To(slot) => {
                let inquiry = Inquiry::new(Some(slot), command);
                self.ask(&routes.node_of(slot), Forwarded::one(inquiry));
            }
            ForwardPlan::Block(slot, request) => {
                let mut inquiry = Inquiry::new(Some(slot), command);
                inquiry.blocks = Some(Box::new(request));
                self.ask_alone(&routes.node_of(slot), inquiry, OnSuccess::Nothing);
            }
            ForwardPlan::Scatter(merge, parts) => self.scatter(merge, &parts, routes),
            ForwardPlan::CrossSlot => self.refuse(CROSS_SLOT),
            ForwardPlan::Refuse(text) => self.refuse(text),
            ForwardPlan::Quit => self.quit(),
            ForwardPlan::Listen => {
                // The client sees one server, so it hears events of all keys.
                let events = super::command(&[b"CLUSTER", b"EVENTS", b"ALL"]);
                self.send(&here, Use::Main, &events, Due::Ignored);
                let id = self.connection(&here, Use::Main);
                if let Some(upstream) = self.upstreams.get_mut(&id) {
                    upstream.send_raw(&command);
                }
                self.tied = Some(id);
            }
            ForwardPlan::Unsubscribe { replies } => {
                let mut inquiry = Inquiry::new(None, command);
                inquiry.replies_left = replies;
                self.ask_alone(&here, inquiry, OnSuccess::Nothing);
            }
            // A node reports that there is no transaction, or any other error.
            ForwardPlan::Here | ForwardPlan::Exec | ForwardPlan::Discard => {
                self.ask_alone(&here, Inquiry::new(None, command), OnSuccess::Nothing);
            }
            ForwardPlan::Introduce(statements) => {
                let on_success = OnSuccess::Introduce(statements);
                self.ask_alone(&here, Inquiry::new(None, command), on_success);
            }
            ForwardPlan::Begin => self.begin(&command, &here),
            ForwardPlan::Watch(slot) => {
                let node = routes.node_of(slot);
                if self.fixed_node().is_some_and(|watched| *watched != node) {
                    return self.refuse(WATCH_ONE_NODE);
                }
                self.ask_alone(&node, Inquiry::new(Some(slot), command), OnSuccess::Watch);
            }
            ForwardPlan::Unwatch => {
                let node = self.fixed_node().cloned().unwrap_or(here);
                self.ask_alone(&node, Inquiry::new(None, command), OnSuccess::Unwatch);
            }
            ForwardPlan::Reset => {
                self.ask_alone(&here, Inquiry::new(None, command), OnSuccess::Reset);
            }
        }
    }

    fn start_in_transaction(&mut self, request: ForwardRequest, routes: &impl Routes) {
        let ForwardRequest { plan, command } = request;
        let here = routes.here();
        match plan {
            // They would change the connection to one node only, or take it out of the transaction.
            ForwardPlan::Listen | ForwardPlan::Unsubscribe { .. } | ForwardPlan::Introduce(_) => {
                self.is_broken = true;
                self.refuse(NOT_IN_MULTI);
            }
            ForwardPlan::Refuse(text) => {
                self.is_broken = true;
                self.refuse(text);
            }
            ForwardPlan::Quit => self.quit(),
            ForwardPlan::Reset => {
                self.ask_alone(&here, Inquiry::new(None, command), OnSuccess::Reset);
            }
            ForwardPlan::Exec if self.is_broken => {
                let node = self.end_transaction(here);
                self.send(&node, Use::Main, &super::command(&[b"DISCARD"]), Due::Ignored);
                self.refuse(ABORTED);
            }
            ForwardPlan::Exec | ForwardPlan::Discard => {
                let node = self.end_transaction(here);
                self.ask_in_transaction(&node, command);
            }
            ForwardPlan::To(slot) | ForwardPlan::Block(slot, _) => {
                let node = self.fix_node(routes.node_of(slot), &here);
                self.ask_in_transaction(&node, command);
            }
            // The node refuses commands that are not allowed in a transaction.
            ForwardPlan::Here
            | ForwardPlan::Scatter(..)
            | ForwardPlan::CrossSlot
            | ForwardPlan::Begin
            | ForwardPlan::Watch(_)
            | ForwardPlan::Unwatch => {
                let node = self.fix_node(here.clone(), &here);
                self.ask_in_transaction(&node, command);
            }
        }
    }

    fn begin(&mut self, command: &Arc<Vec<u8>>, here: &NodeAddress) {
        let inquiry = Inquiry::new(None, Arc::clone(command));
        let (node, transaction) = match self.fixed_node() {
            Some(node) => (node.clone(), Transaction::At(node.clone())),
            None => (here.clone(), Transaction::Open(here.clone())),
        };
        self.ask_alone(&node, inquiry, OnSuccess::Begin(transaction));
    }

    /// Returns the node of the transaction. Fixes `wanted` if none was fixed yet.
    fn fix_node(&mut self, wanted: NodeAddress, here: &NodeAddress) -> NodeAddress {
        if let Some(node) = self.fixed_node() {
            return node.clone();
        }
        if wanted != *here {
            self.send(here, Use::Main, &command(&[b"DISCARD"]), Due::Ignored);
            self.send(&wanted, Use::Main, &command(&[b"MULTI"]), Due::Accepted);
        }
        self.transaction = Transaction::At(wanted.clone());
        wanted
    }

    /// Ends the transaction, and returns its node.
    fn end_transaction(&mut self, here: NodeAddress) -> NodeAddress {
        let node = self.transaction_node().cloned().unwrap_or(here);
        self.transaction = Transaction::None;
        self.is_broken = false;
        node
    }

    fn ask(&mut self, node: &NodeAddress, mut request: Forwarded) {
        for inquiry in &mut request.inquiries {
            inquiry.on = self.send(node, Use::Main, &inquiry.command, Due::Answer);
            for _ in 1..inquiry.replies_left {
                if let Some(upstream) = self.upstreams.get_mut(&inquiry.on) {
                    upstream.expect_another();
                }
            }
        }
        self.push(request);
    }

    fn ask_alone(&mut self, node: &NodeAddress, inquiry: Inquiry, on_success: OnSuccess) {
        let mut request = Forwarded::one(inquiry);
        request.is_exclusive = true;
        request.on_success = on_success;
        self.ask(node, request);
    }

    fn ask_in_transaction(&mut self, node: &NodeAddress, command: Arc<Vec<u8>>) {
        let mut request = Forwarded::one(Inquiry::new(None, command));
        request.is_exclusive = true;
        request.in_transaction = true;
        self.ask(node, request);
    }

    fn scatter(&mut self, merge: Merge, parts: &[CommandPart], routes: &impl Routes) {
        let mut request = Forwarded::scattered(merge, parts);
        for (inquiry, part) in request.inquiries.iter_mut().zip(parts) {
            let node = routes.node_of(part.slot);
            inquiry.on = self.send(&node, Use::Main, &inquiry.command, Due::Answer);
        }
        self.push(request);
    }

    fn refuse(&mut self, text: &str) {
        self.answers.push_back(QueuedReply::Ready(format!("-{text}\r\n").into_bytes()));
    }

    fn quit(&mut self) {
        self.answers.push_back(QueuedReply::Ready(b"+OK\r\n".to_vec()));
        self.closing = Closing::AfterAnswers;
    }
}
