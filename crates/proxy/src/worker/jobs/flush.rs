//! FLUSHALL on one server of a fleet: one transaction deletes everything but the fleet's own keys, so that
//! nobody ever finds the server without them. Refused while a migration is announced or runs.

use fleet::config::KEYS;
use fleet::{Answer, Ask, Config, Job, Lane, Server, Step};
use resp::Value;

/// Maximum number of attempts if the configuration changes meanwhile.
const ATTEMPTS_MAX: u32 = 10;

pub(crate) struct FlushJob {
    server: Server,
    command: Vec<Vec<u8>>,
    stage: Stage,
    attempts: u32,
}

enum Stage {
    Reading,
    Flushing,
}

impl FlushJob {
    pub(crate) fn new(server: Server, command: &[&[u8]]) -> FlushJob {
        let command = command.iter().map(|arg| arg.to_vec()).collect();
        FlushJob { server, command, stage: Stage::Reading, attempts: 0 }
    }

    fn ask(&self, commands: &[Vec<&[u8]>]) -> Step {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| resp::encode_command(&mut bytes, command));
        let answers = commands.len();
        Step::Ask(Ask { server: self.server, lane: Lane::Own, bytes, answers })
    }

    fn read(&mut self) -> Step {
        self.stage = Stage::Reading;
        self.attempts += 1;
        if self.attempts > ATTEMPTS_MAX {
            let why = "ERR the fleet's configuration keeps changing; retry later";
            return Step::Failed(why.to_owned());
        }
        let with = |name: &'static [u8]| -> Vec<&[u8]> {
            std::iter::once(name).chain(KEYS.iter().map(|key| key.as_bytes())).collect()
        };
        self.ask(&[with(b"WATCH"), with(b"MGET")])
    }

    fn flush(&mut self, answer: Option<&Value>) -> Step {
        let config = answer.map(Config::read);
        let config = match config {
            Some(Ok(Some(config))) => config,
            Some(Err(error)) => {
                return Step::Failed(format!("ERR cannot flush the server: {error}"));
            }
            Some(Ok(None)) | None => {
                return Step::Failed(
                    "ERR the server's server.config.* keys are missing".to_owned(),
                );
            }
        };
        if config.next.is_some() || config.lock.is_some() {
            return Step::Failed(
                "ERR a migration is about to begin; nothing was deleted".to_owned(),
            );
        }
        self.stage = Stage::Flushing;
        let pairs = config.pairs();
        let mut kept: Vec<&[u8]> = vec![b"MSET"];
        for (key, value) in &pairs {
            kept.extend([key.as_bytes(), value.as_bytes()]);
        }
        let command = self.command.iter().map(Vec::as_slice).collect();
        self.ask(&[vec![b"MULTI"], command, kept, vec![b"EXEC"]])
    }
}

impl Job for FlushJob {
    fn start(&mut self) -> Step {
        self.read()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        match self.stage {
            Stage::Reading => self.flush(answers.last()),
            Stage::Flushing => match (&answers[1], answers.last()) {
                (Value::Error(_), _) => Step::Done(Answer::Picked { answer: 1, item: None }),
                (_, Some(Value::Array(_))) => {
                    Step::Done(Answer::Picked { answer: 3, item: Some(0) })
                }
                (_, Some(Value::Null)) => self.read(),
                (_, _) => Step::Done(Answer::Picked { answer: 3, item: None }),
            },
        }
    }

    fn on_waited(&mut self) -> Step {
        self.read()
    }
}
