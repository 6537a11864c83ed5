//! The end of a request: replies of nodes become replies to the client, in its order.

use std::sync::Arc;

use super::{Closing, Pipeline, Transaction, WATCH_ONE_NODE, command};
use crate::any_port::forwarded::{ForwardOutcome, ForwardStep, OnSuccess, QueuedReply};
use crate::any_port::framing::Malformed;
use crate::any_port::introduction::Statement;
use crate::any_port::routes::{NodeAddress, Redirect, Routes};
use crate::any_port::upstream::{Due, Piece, UpstreamHealth, UpstreamId, Use};

/// The result of one step on the oldest request.
enum DeliveryStep {
    /// Progress was made; try again.
    Done,
    /// Bytes, a pause or a request must come first.
    Blocked,
}

impl Pipeline {
    /// Answers the oldest requests as far as replies have arrived.
    pub(super) fn deliver(&mut self, routes: &impl Routes) {
        while self.closing != Closing::Now {
            let step = match self.answers.front() {
                None => return,
                Some(QueuedReply::Ready(reply)) => {
                    self.output.extend_from_slice(reply);
                    self.answers.pop_front();
                    Ok(DeliveryStep::Done)
                }
                Some(QueuedReply::Asked(request)) => match request.inquiries.get(request.current) {
                    Some(inquiry) => self.read_reply(inquiry.on, routes),
                    None => self.finish(),
                },
            };
            match step {
                Ok(DeliveryStep::Done) => {}
                Ok(DeliveryStep::Blocked) => return,
                // Do not trust a node that sends malformed replies: it is unknown which commands have run.
                Err(Malformed) => self.closing = Closing::Now,
            }
        }
    }

    fn read_reply(
        &mut self,
        on: UpstreamId,
        routes: &impl Routes,
    ) -> Result<DeliveryStep, Malformed> {
        if self.retry.is_some() {
            return Ok(DeliveryStep::Blocked);
        }
        let Some(upstream) = self.upstreams.get_mut(&on) else { return Err(Malformed) };
        let health = upstream.health;
        if let Some(piece) = upstream.take_piece()? {
            return self.take_piece(on, piece, routes);
        }
        match health {
            UpstreamHealth::Open => Ok(DeliveryStep::Blocked),
            UpstreamHealth::Lost => {
                self.closing = Closing::Now;
                Ok(DeliveryStep::Blocked)
            }
            UpstreamHealth::Unreachable => Ok(self.pass_by(on, routes)),
        }
    }

    fn take_piece(
        &mut self,
        on: UpstreamId,
        piece: Piece,
        routes: &impl Routes,
    ) -> Result<DeliveryStep, Malformed> {
        let Piece { due, bytes, is_error, ends } = piece;
        match due {
            Due::Ignored => return Ok(DeliveryStep::Done),
            Due::Accepted => {
                return if is_error { Err(Malformed) } else { Ok(DeliveryStep::Done) };
            }
            Due::Answer => {}
        }
        let Some(QueuedReply::Asked(request)) = self.answers.front_mut() else {
            return Err(Malformed);
        };
        if !is_error {
            if let Some(bytes) = request.take_bytes(bytes) {
                self.output.extend_from_slice(&bytes);
            }
            if ends {
                request.end_reply()?;
            }
            return Ok(DeliveryStep::Done);
        }
        request.take_error_bytes(&bytes);
        if !ends {
            return Ok(DeliveryStep::Done);
        }
        let others = request.inquiry().map_or(0, |inquiry| inquiry.replies_left - 1);
        let next = request.end_error();
        if let Some(upstream) = self.upstreams.get_mut(&on) {
            upstream.expect_less(others); // One error stands for all.
        }
        match next {
            ForwardStep::GoOn => Ok(DeliveryStep::Done),
            ForwardStep::Redirected(redirect) => Ok(self.redirect(redirect, routes)),
        }
    }

    /// Follows a redirect: the current inquiry of the oldest request did not run where it was sent.
    fn redirect(&mut self, redirect: Redirect, routes: &impl Routes) -> DeliveryStep {
        let watched = self.fixed_node().cloned();
        let Some(QueuedReply::Asked(request)) = self.answers.front_mut() else {
            return DeliveryStep::Done;
        };
        if let (Some(node), Redirect::Moved(to)) = (watched, &redirect)
            && node != *to
            && matches!(request.on_success, OnSuccess::Watch)
        {
            request.fail(format!("-{WATCH_ONE_NODE}\r\n").into_bytes());
            return DeliveryStep::Done;
        }
        let Some(inquiry) = request.inquiry() else { return DeliveryStep::Done };
        inquiry.retries += 1;
        // A command that has waited is sent again by `retry`, with the rest of its timeout.
        if inquiry.retries > 1 || redirect == Redirect::TryAgain || inquiry.blocks.is_some() {
            self.retry = Some(redirect);
            return DeliveryStep::Blocked;
        }
        self.send_again(redirect, routes);
        DeliveryStep::Done
    }

    /// Sends the current inquiry of the oldest request once more.
    pub(super) fn send_again(&mut self, redirect: Redirect, routes: &impl Routes) {
        let Some(QueuedReply::Asked(request)) = self.answers.front_mut() else { return };
        // An exclusive request has its node's main connection to itself, and a watched key must be watched on
        // that connection.
        let purpose = if request.is_exclusive { Use::Main } else { Use::Retry };
        let Some(inquiry) = request.inquiry() else { return };
        let Some(slot) = inquiry.slot else { return };
        let bytes = Arc::clone(&inquiry.command);
        let to = match redirect {
            Redirect::Moved(to) => to,
            Redirect::Ask(to) => {
                self.send(&to, purpose, &command(&[b"ASKING"]), Due::Ignored);
                to
            }
            Redirect::TryAgain => routes.node_of(slot),
        };
        let on = self.send(&to, purpose, &bytes, Due::Answer);
        if let Some(QueuedReply::Asked(request)) = self.answers.front_mut()
            && let Some(inquiry) = request.inquiry()
        {
            inquiry.on = on;
        }
    }

    /// Handles an unreachable node of the current inquiry: the command has not run. It is sent to another node
    /// if the map has changed; otherwise the client gets an error.
    fn pass_by(&mut self, on: UpstreamId, routes: &impl Routes) -> DeliveryStep {
        let Some(address) = self.upstreams.get(&on).map(|upstream| upstream.address.clone()) else {
            return DeliveryStep::Blocked;
        };
        let Some(QueuedReply::Asked(request)) = self.answers.front_mut() else {
            return DeliveryStep::Blocked;
        };
        if request.in_transaction {
            self.closing = Closing::Now; // The node's MULTI was not accepted.
            return DeliveryStep::Blocked;
        }
        let Some(inquiry) = request.inquiry() else { return DeliveryStep::Done };
        let elsewhere = inquiry.slot.map(|slot| routes.node_of(slot));
        match elsewhere.filter(|node| *node != address && inquiry.retries == 0) {
            Some(node) => {
                inquiry.retries += 1;
                self.send_again(Redirect::Moved(node), routes);
            }
            None => {
                let NodeAddress { host, port } = address;
                let error =
                    format!("-CLUSTERDOWN cannot connect to {host}:{port}; nothing was done\r\n");
                request.fail(error.into_bytes());
            }
        }
        DeliveryStep::Done
    }

    /// Ends the oldest request, all of whose replies have arrived.
    fn finish(&mut self) -> Result<DeliveryStep, Malformed> {
        let Some(QueuedReply::Asked(mut request)) = self.answers.pop_front() else {
            return Err(Malformed);
        };
        for slot in request.slots() {
            self.busy.remove(&slot);
        }
        self.answered += 1;
        self.exclusive -= usize::from(request.is_exclusive);
        self.request_bytes -= request.bytes();
        let ForwardOutcome::Reply { bytes, is_error } = request.outcome() else {
            self.closing = Closing::Now;
            return Ok(DeliveryStep::Blocked);
        };
        self.output.extend_from_slice(&bytes);
        if is_error {
            return Ok(DeliveryStep::Done);
        }
        let on = request.inquiries.first().map(|inquiry| inquiry.on);
        match request.on_success {
            OnSuccess::Nothing => {}
            OnSuccess::Introduce(statements) => self.introduce(statements, on),
            OnSuccess::Begin(transaction) => self.transaction = transaction,
            OnSuccess::Watch => {
                let upstream = on.and_then(|on| self.upstreams.get(&on)).ok_or(Malformed)?;
                self.transaction = Transaction::Watching(upstream.address.clone());
            }
            OnSuccess::Unwatch => self.transaction = Transaction::None,
            OnSuccess::Reset => self.reset(on),
        }
        Ok(DeliveryStep::Done)
    }

    /// Repeats the statements that one connection has accepted to all other connections.
    fn introduce(&mut self, statements: Vec<Statement>, accepted: Option<UpstreamId>) {
        let others = self.upstreams.iter_mut().filter(|(id, _)| Some(**id) != accepted);
        for (_, upstream) in others {
            for statement in &statements {
                upstream.send(statement.command(), Due::Ignored);
            }
        }
        self.introduction.learn(statements);
    }

    /// Starts afresh after RESET; the connection that has answered it is kept.
    fn reset(&mut self, kept: Option<UpstreamId>) {
        self.introduction.forget();
        self.transaction = Transaction::None;
        self.is_broken = false;
        self.upstreams.retain(|id, _| Some(*id) == kept);
    }
}
