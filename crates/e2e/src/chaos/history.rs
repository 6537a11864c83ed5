//! The history of one key: the operations sent to it, numbered, and what their replies prove.
//!
//! Only one writer uses a key, and it sends one operation at a time, so the numbers order all changes of the key. A
//! write whose fate is unknown may still be carried out much later; its writer does not use the key from then on
//! (`clients/`), and reads of it are judged as before. `book.rs` keeps the histories of all keys.

/// An operation on a key, by its place in the key's history; 0 is the state before the first.
pub type Number = u32;

/// The effect of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Set,
    Delete,
}

/// A promise that a read proves broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breach {
    /// The read is older than what had been acknowledged or read before.
    Stale { found: Option<Number>, floor: Number },
    /// The read shows a value from before `delete`, which was acknowledged.
    Resurrected { found: Number, delete: Number },
    /// The value was refused with an error, which means "not done", or was never written.
    Phantom { found: Number },
}

#[derive(Clone, Default, Debug)]
pub struct History {
    issued: Number,
    acknowledged: Number,
    /// The oldest state that may still be read.
    floor: Number,
    deletes: Vec<Number>,
    /// Operations that were answered with an error: never done.
    refused: Vec<Number>,
}

impl History {
    /// Numbers the next operation, which is about to be sent.
    pub fn issue(&mut self, act: Act) -> Number {
        self.issued += 1;
        if act == Act::Delete {
            self.deletes.push(self.issued);
        }
        self.issued
    }

    pub fn acknowledge(&mut self, number: Number) {
        self.acknowledged = self.acknowledged.max(number);
        self.floor = self.floor.max(number);
    }

    pub fn refuse(&mut self, number: Number) {
        self.deletes.retain(|delete| *delete != number);
        self.refused.push(number);
    }

    /// Returns the oldest state that a read may show if it begins now.
    pub fn floor(&self) -> Number {
        self.floor
    }

    pub fn acknowledged(&self) -> Number {
        self.acknowledged
    }

    /// Judges the result of a read that began when the floor was `floor`, and raises the floor by it.
    pub fn judge(&mut self, found: Option<Number>, floor: Number) -> Result<(), Breach> {
        let at = match found {
            None => self.nothing_at(floor).ok_or(Breach::Stale { found, floor })?,
            Some(found) if !self.was_written(found) => return Err(Breach::Phantom { found }),
            Some(number) if number < floor => return Err(self.older(number, floor)),
            Some(number) => number,
        };
        self.floor = self.floor.max(at);
        Ok(())
    }

    /// Returns whether the last acknowledged operation is a delete.
    pub fn ends_deleted(&self) -> bool {
        self.deletes.contains(&self.acknowledged)
    }

    /// Returns whether the last operation was a SET and is acknowledged.
    pub fn is_set(&self) -> bool {
        self.acknowledged == self.issued && self.was_written(self.issued)
    }

    /// Returns the breach of a read that shows `found` although nothing older than `floor` may be read.
    fn older(&self, found: Number, floor: Number) -> Breach {
        let is_between =
            |delete: &&Number| (found..=floor.min(self.acknowledged)).contains(*delete);
        match self.deletes.iter().find(is_between) {
            Some(delete) => Breach::Resurrected { found, delete: *delete },
            None => Breach::Stale { found: Some(found), floor },
        }
    }

    /// Returns the earliest state from `floor` on in which the key does not exist. The earliest,
    /// because a later one would be claimed without proof.
    fn nothing_at(&self, floor: Number) -> Option<Number> {
        if floor == 0 {
            return Some(0);
        }
        self.deletes.iter().copied().filter(|delete| *delete >= floor).min()
    }

    fn was_written(&self, number: Number) -> bool {
        let is_set = !self.deletes.contains(&number) && !self.refused.contains(&number);
        (1..=self.issued).contains(&number) && is_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a history of SETs 1 to 3, all acknowledged.
    fn three() -> History {
        let mut history = History::default();
        for _ in 0..3 {
            let number = history.issue(Act::Set);
            history.acknowledge(number);
        }
        history
    }

    #[test]
    fn what_was_acknowledged_before_the_read_began_must_be_seen() {
        let mut history = three();
        assert_eq!(history.judge(Some(3), 3), Ok(()));
        assert_eq!(history.judge(Some(2), 3), Err(Breach::Stale { found: Some(2), floor: 3 }));
        assert_eq!(history.judge(None, 3), Err(Breach::Stale { found: None, floor: 3 }));
        assert_eq!(history.judge(Some(2), 2), Ok(()), "it began before 3 was acknowledged");
    }

    #[test]
    fn what_was_read_once_may_not_be_gone_again() {
        let mut history = three();
        let open = history.issue(Act::Set);
        assert_eq!(history.judge(Some(3), history.floor()), Ok(()));
        assert_eq!(history.judge(Some(open), history.floor()), Ok(()));
        assert!(history.judge(Some(3), history.floor()).is_err());
        assert_eq!(history.acknowledged(), 3, "a read acknowledges nothing");
    }

    #[test]
    fn nothing_is_right_only_after_a_delete() {
        let mut history = three();
        let delete = history.issue(Act::Delete);
        assert_eq!(history.judge(None, 3), Ok(()), "it may have been carried out");
        assert!(history.judge(Some(3), history.floor()).is_err(), "so it was, then");
        history.acknowledge(delete);
        let set = history.issue(Act::Set);
        history.acknowledge(set);
        assert!(history.judge(None, history.floor()).is_err(), "it was set again since");
    }

    #[test]
    fn a_value_from_before_an_acknowledged_delete_is_resurrected() {
        let mut history = three();
        let delete = history.issue(Act::Delete);
        history.acknowledge(delete);
        let resurrected = Err(Breach::Resurrected { found: 3, delete });
        assert_eq!(history.judge(Some(3), history.floor()), resurrected);
        assert!(history.ends_deleted());
        let set = history.issue(Act::Set);
        history.acknowledge(set);
        assert_eq!(history.judge(Some(3), history.floor()), resurrected, "whatever came after");
        assert!(!history.ends_deleted());
    }

    #[test]
    fn what_was_answered_with_an_error_never_shows() {
        let mut history = three();
        let refused = history.issue(Act::Set);
        history.refuse(refused);
        assert_eq!(history.judge(Some(refused), 3), Err(Breach::Phantom { found: refused }));
        assert_eq!(history.judge(Some(99), 3), Err(Breach::Phantom { found: 99 }));
        let delete = history.issue(Act::Delete);
        history.refuse(delete);
        assert!(history.judge(None, 3).is_err());
    }
}
