//! Changes of settings at run time: validated once, applied later.

use super::{ChangeError, Settings, find};

/// Changes that were validated, in their order. Whether a setting takes a value does not depend on the other
/// settings, so these can be applied to any. Not `Debug`: a value may be a password.
#[derive(Clone, PartialEq, Eq)]
pub struct ValidChanges(Vec<(&'static str, String)>);

impl ValidChanges {
    /// Validates changes, given as names and texts. If one is refused, none is valid.
    pub fn check(changes: &[(&str, &str)]) -> Result<ValidChanges, ChangeError> {
        Settings::default().with_changes(changes)?;
        let known = |(name, text): &(&str, &str)| Some((find(name)?.name, (*text).to_owned()));
        Ok(ValidChanges(changes.iter().filter_map(known).collect()))
    }

    /// Returns the names of the changed settings, as the table has them.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Returns the changes that concern all nodes, and those that concern one node alone.
    pub fn split(self) -> (ValidChanges, ValidChanges) {
        let is_cluster_wide =
            |change: &(&str, String)| find(change.0).is_some_and(|it| it.is_cluster_wide());
        let (cluster, own) = self.0.into_iter().partition(is_cluster_wide);
        (ValidChanges(cluster), ValidChanges(own))
    }

    /// Returns the settings after these changes.
    pub fn apply_to(&self, settings: &Settings) -> Settings {
        let changes: Vec<(&str, &str)> =
            self.0.iter().map(|(name, text)| (*name, text.as_str())).collect();
        settings.with_changes(&changes).expect("a valid value is valid beside any other values")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_changes_apply_to_settings_that_have_changed_meanwhile() {
        let limits = ("client-output-buffer-limit", "replica 1mb 2k 5");
        let changes = [("MAXMEMORY", "1gb"), ("maxmemory-policy", "allkeys-lru"), limits];
        let (cluster, own) = ValidChanges::check(&changes).expect("valid").split();
        assert_eq!(cluster.names().collect::<Vec<_>>(), ["maxmemory-policy"]);
        assert_eq!(own.names().collect::<Vec<_>>(), ["maxmemory", "client-output-buffer-limit"]);
        let other = [("timeout", "5"), ("client-output-buffer-limit", "normal 7 0 0")];
        let meanwhile = Settings::default().with_changes(&other).expect("valid");
        let after = own.apply_to(&meanwhile);
        assert_eq!(after.maxmemory, 1 << 30);
        assert_eq!(after.timeout, meanwhile.timeout);
        assert_eq!(after.maxmemory_policy, meanwhile.maxmemory_policy, "not its own");
        let limits = after.get("client-output-buffer-limit").expect("a setting");
        assert_eq!(limits, "normal 7 0 0 slave 1048576 2000 5 pubsub 33554432 8388608 60");
    }

    #[test]
    fn a_refusal_names_the_place_among_all_changes() {
        let changes = [("maxmemory-policy", "allkeys-lru"), ("timeout", "5"), ("timeout", "soon")];
        let refused = ValidChanges::check(&changes).map(|_| ()).expect_err("not a number");
        assert_eq!(refused.index, 2);
    }
}
