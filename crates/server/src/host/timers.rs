//! The timers of the cluster, for TIMER.*.

use core::task::Waker;
use std::sync::Arc;

use commands::{Asked, TimerKeeper};
use timers::Wish;

use super::NodeHost;
use crate::timers::{PendingAnswer, Resume, judge_now};

impl TimerKeeper for NodeHost<'_> {
    fn ask_timers(&mut self, wish: Wish) -> Asked {
        let hub = &self.shared.timers;
        if self.question.is_none() {
            if let Wish::Create { spec, .. } | Wish::Put { spec, .. } = &wish
                && let Err(why) = judge_now(hub, &spec.callback)
            {
                return Asked::Forbidden(why);
            }
            *self.question = Some(PendingAnswer(hub.begin(wish)));
        }
        let place = self.card.place;
        let mailbox = Arc::clone(&self.shared.mailboxes[place.worker]);
        let resume = Resume { mailbox, id: self.card.id, index: place.index };
        // A node alone has answered already.
        let question = self.question.take().expect("asked above, if not before");
        match question.answer(&Waker::from(Arc::new(resume))) {
            Ok(answer) => Asked::Answered(answer),
            Err(question) => {
                *self.question = Some(question);
                Asked::Waiting
            }
        }
    }
}
