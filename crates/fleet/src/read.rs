//! A read of a key that may be moving: it asks the new server, then the old one, then the new one again. The
//! proxy creates it for `Plan::Read`.
//!
//! A read that misses the key at the new server and then at the old one ran while the key was moved: the
//! third lookup finds it, or the key does not exist. EXISTS in the same transaction tells a miss from a hit,
//! because the answer of an arbitrary command does not (LLEN of a missing key is 0).

use resp::Value;

use crate::job::{Answer, Batch, Job, Step, items, unexpected};
use crate::known::Knowledge;
use crate::view::Route;

#[derive(Clone, PartialEq, Debug)]
pub struct ReadJob {
    route: Route,
    key: Vec<u8>,
    command: Vec<Vec<u8>>,
    look: Look,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    New,
    Old,
    NewAgain,
}

impl ReadJob {
    /// Creates a job for `command`, which reads `key` and no other key.
    pub fn new<A: AsRef<[u8]>>(route: Route, key: &[u8], command: &[A]) -> ReadJob {
        let command = command.iter().map(|arg| arg.as_ref().to_vec()).collect();
        ReadJob { route, key: key.to_vec(), command, look: Look::New }
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns what is known of the key once the job is done.
    pub fn learnt(&self) -> Knowledge {
        match self.look {
            Look::NewAgain => Knowledge::Gone,
            Look::New | Look::Old => Knowledge::Nothing,
        }
    }

    fn ask(&self) -> Step {
        let command: Vec<&[u8]> = self.command.iter().map(Vec::as_slice).collect();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"EXISTS", &self.key]);
        batch.push(&command);
        batch.push(&[b"EXEC"]);
        batch.ask(match self.look {
            Look::New | Look::NewAgain => self.route.to,
            Look::Old => self.route.from,
        })
    }
}

impl Job for ReadJob {
    fn start(&mut self) -> Step {
        self.ask()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let [_, _, queued, exec] = answers else {
            return unexpected(self.route.to, answers.first());
        };
        let refused = matches!(queued, Value::Error(_));
        let exists = match items(Some(exec)) {
            Some([exists, _]) => *exists == Value::Integer(1),
            // The new server does not know this command; the old one may, and may have the key.
            _ if refused && self.look == Look::New => false,
            // Refused before it ran: the server's error is the answer.
            _ => {
                return Step::Done(Answer::Picked {
                    answer: if refused { 2 } else { 3 },
                    item: None,
                });
            }
        };
        let found = Step::Done(Answer::Picked { answer: 3, item: Some(1) });
        match (self.look, exists) {
            (_, true) | (Look::NewAgain, false) => found,
            (Look::New, false) => {
                self.look = Look::Old;
                self.ask()
            }
            (Look::Old, false) => {
                self.look = Look::NewAgain;
                self.ask()
            }
        }
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("a read never waits")
    }
}
