//! XDELEX, XACKDEL: delete entries with regard to the groups that have not acknowledged them. By the documentation of
//! Redis 8.2.

use std::collections::BTreeSet;

use store::{Group, Stream, StreamId, StreamRecord};

use super::edit::head_with;
use super::ids::parse_id;
use super::{Changes, notify, stream_of};
use crate::context::Context;
use crate::{Args, Error};

/// Fate of an entry to which groups refer: it is pending there, or not delivered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum References {
    /// It is deleted, and stays pending.
    Keep,
    /// It is deleted, and not pending any more.
    Remove,
    /// It is deleted only if there is no such group.
    Respect,
}

/// The reply for one id.
#[derive(Clone, Copy)]
enum Deletion {
    Missing = -1,
    Deleted = 1,
    /// A group still refers to the entry.
    Referenced = 2,
}

struct DeleteOptions {
    references: References,
    ids: Vec<StreamId>,
}

impl DeleteOptions {
    fn parse(args: Args<'_>, first: usize) -> Result<DeleteOptions, Error> {
        let mut options = DeleteOptions { references: References::Keep, ids: Vec::new() };
        let mut index = first;
        while let Some(word) = args.get(index) {
            index += 1;
            match word.to_ascii_lowercase().as_slice() {
                b"keepref" => options.references = References::Keep,
                b"delref" => options.references = References::Remove,
                b"acked" => options.references = References::Respect,
                b"ids" if options.ids.is_empty() => index = options.parse_ids(args, index)?,
                _ => return Err(Error::SYNTAX),
            }
        }
        if options.ids.is_empty() { Err(Error::SYNTAX) } else { Ok(options) }
    }

    /// Parses the number of ids and the ids; returns the index behind them.
    fn parse_ids(&mut self, args: Args<'_>, index: usize) -> Result<usize, Error> {
        let count = args.get(index).and_then(resp::parse_integer).filter(|count| *count > 0);
        let count = count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or(const { Error::fixed("ERR Number of IDs must be a positive integer") })?;
        let end = (index + 1).checked_add(count).filter(|end| *end <= args.len()).ok_or(
            const { Error::fixed("ERR The `numids` parameter must match the number of arguments") },
        )?;
        let ids = (index + 1..end).map(|index| parse_id(args.at(index), 0));
        self.ids = ids.collect::<Result<_, _>>()?;
        Ok(end)
    }
}

pub(super) fn xdelex(context: &mut Context<'_>) -> Result<(), Error> {
    let options = DeleteOptions::parse(context.args, 2)?;
    run(context, &options, None)
}

pub(super) fn xackdel(context: &mut Context<'_>) -> Result<(), Error> {
    let options = DeleteOptions::parse(context.args, 3)?;
    let group = context.args.at(2);
    run(context, &options, Some(group))
}

/// Deletes entries, after acknowledging them for a group if one is given, and replies with what became of each.
fn run(
    context: &mut Context<'_>,
    options: &DeleteOptions,
    acknowledging: Option<&[u8]>,
) -> Result<(), Error> {
    let key = context.key(1);
    let stream = context.keys.find(&key).map(|found| stream_of(&found)).transpose()?;
    let mut deleting = stream.map(|stream| Deleting::new(stream, options, acknowledging));
    context.reply.array(options.ids.len());
    for id in &options.ids {
        let deletion = deleting.as_mut().map_or(Deletion::Missing, |it| it.delete(*id));
        context.reply.integer(deletion as i64);
    }
    if let Some(deleting) = deleting {
        let (changes, has_deleted) = deleting.finish();
        changes.apply(&mut context.keys, key);
        if has_deleted {
            notify(context, "xdel", &key);
        }
    }
    Ok(())
}

/// Deletions in progress.
struct Deleting<'s, 'a> {
    stream: &'s Stream,
    references: References,
    /// The group for which entries are acknowledged, with its name.
    acknowledging: Option<(&'a [u8], Option<&'s Group>)>,
    changes: Changes,
    done: BTreeSet<StreamId>,
    max_deleted: Option<StreamId>,
}

impl<'s, 'a> Deleting<'s, 'a> {
    fn new(
        stream: &'s Stream,
        options: &DeleteOptions,
        acknowledging: Option<&'a [u8]>,
    ) -> Deleting<'s, 'a> {
        let acknowledging = acknowledging.map(|name| (name, stream.group(name)));
        let (changes, done) = (Changes::default(), BTreeSet::new());
        let references = options.references;
        Deleting { stream, references, acknowledging, changes, done, max_deleted: None }
    }

    fn delete(&mut self, id: StreamId) -> Deletion {
        let is_present = match self.acknowledging {
            Some((_, group)) => group.is_some_and(|group| group.pending(id).is_some()),
            None => self.stream.contains(id),
        };
        if !is_present || !self.done.insert(id) {
            return Deletion::Missing;
        }
        if let Some((name, _)) = self.acknowledging {
            self.changes.add(StreamRecord::InGroup { name });
            self.changes.add(StreamRecord::RemovePending { id });
        }
        if self.references == References::Respect && self.is_referenced(id) {
            return Deletion::Referenced;
        }
        if self.references == References::Remove {
            for group in self.stream.groups().filter(|group| group.pending(id).is_some()) {
                self.changes.add(StreamRecord::InGroup { name: group.name() });
                self.changes.add(StreamRecord::RemovePending { id });
            }
        }
        if self.stream.contains(id) {
            self.changes.add(StreamRecord::RemoveEntry { id });
            self.max_deleted = self.max_deleted.max(Some(id));
        }
        Deletion::Deleted
    }

    /// Returns whether another group has the entry pending, or has not got it yet.
    fn is_referenced(&self, id: StreamId) -> bool {
        let acknowledged = self.acknowledging.map(|(name, _)| name);
        let others = self.stream.groups().filter(|group| Some(group.name()) != acknowledged);
        let mut groups = others.map(|group| group.pending(id).is_some() || id > group.last_id());
        groups.any(|is_referenced| is_referenced)
    }

    /// Returns the changes, and whether an entry was deleted.
    fn finish(mut self) -> (Changes, bool) {
        if let Some(id) = self.max_deleted {
            self.changes.add(head_with(self.stream, self.stream.max_deleted().max(id)));
        }
        (self.changes, self.max_deleted.is_some())
    }
}
