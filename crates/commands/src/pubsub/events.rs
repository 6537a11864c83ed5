//! Keyspace notifications: events about keys as messages on the two channels for them.

use settings::NotifyClasses;

use crate::{Event, Post, Space};

impl Event {
    /// Publishes the messages of this event, as far as the settings enable them: first on the channel of the key,
    /// then on that of the event.
    pub fn announce(&self, on: NotifyClasses, mut publish: impl FnMut(Post<'_>)) {
        let name = self.name.as_bytes();
        let mut tell = |prefix: &[u8], subject: &[u8], payload: &[u8]| {
            let channel = [prefix, subject].concat();
            publish(Post { space: Space::Global, channel: &channel, payload });
        };
        if on.contains(NotifyClasses::KEYSPACE) {
            tell(&self.prefix("keyspace"), &self.key, name);
        }
        if on.contains(NotifyClasses::KEYEVENT) {
            tell(&self.prefix("keyevent"), name, &self.key);
        }
    }

    /// Returns the beginning of a channel's name.
    fn prefix(&self, kind: &str) -> Vec<u8> {
        format!("__{kind}@{}__:", self.database.number()).into_bytes()
    }
}
