//! The timers of the cluster, for TIMER.*.

use commands::{Asked, TimerKeeper};
use timers::Wish;

use super::NodeHost;
use crate::timers::{Question, judge_now};

impl TimerKeeper for NodeHost<'_> {
    fn ask_timers(&mut self, wish: Wish) -> Asked {
        let hub = &self.shared.timers;
        if self.question.is_none() {
            if let Wish::Create { spec, .. } | Wish::Put { spec, .. } = &wish
                && let Err(why) = judge_now(hub, &spec.callback)
            {
                return Asked::Forbidden(why);
            }
            *self.question = Some(Question::Open(hub.begin(wish)));
        }
        // A node alone has answered already.
        match self.question.take().expect("asked above, if not before").answer() {
            Ok(answer) => Asked::Answered(answer),
            Err(question) => {
                *self.question = Some(question);
                Asked::Waiting
            }
        }
    }
}
