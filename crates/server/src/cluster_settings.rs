//! Settings of the whole cluster. They are documents of the map (`settings/NAME`), so all nodes agree on them through
//! the log; each node applies them to its own settings when its map changes (`config.rs`).

use cluster::map::{Ack, DocumentWrite, Documents, Map, SETTING_PREFIX};
use settings::{InitialAck, Settings, ValidChanges, cluster_wide, find};

/// Returns the documents with which a node founds a cluster: its own values.
pub(crate) fn founding_documents(settings: &Settings) -> Documents {
    let write = |setting: &'static settings::SettingSpec| write_of(setting.name, settings);
    let writes: Vec<DocumentWrite> = cluster_wide().map(write).collect();
    Documents::found(&writes).expect("a few settings are far below the limits of documents")
}

/// Returns the documents to write for these changes of the cluster's settings.
pub(crate) fn writes_of(settings: &Settings, changes: &ValidChanges) -> Vec<DocumentWrite> {
    let changed = changes.apply_to(settings);
    changes.names().map(|name| write_of(name, &changed)).collect()
}

fn write_of(name: &str, settings: &Settings) -> DocumentWrite {
    let text = settings.exact_text(name).expect("a setting of the table");
    DocumentWrite::put(format!("{SETTING_PREFIX}{name}"), text.into_bytes())
}

/// A setting whose value here differs from the cluster's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SettingDifference {
    pub name: &'static str,
    pub here: String,
    pub cluster: String,
}

/// Returns the cluster's values that differ from these settings. A value that this version does not know is left
/// out: a newer node may have written it.
pub(crate) fn differences(settings: &Settings, documents: &Documents) -> Vec<SettingDifference> {
    let difference = |name: &'static str| {
        let document = documents.get(&format!("{SETTING_PREFIX}{name}"))?;
        let cluster = std::str::from_utf8(&document.content).ok()?.to_owned();
        let changed = settings.with_changes(&[(name, &cluster)]).ok()?;
        let here = settings.get(name)?;
        (changed != *settings).then_some(SettingDifference { name, here, cluster })
    };
    cluster_wide().filter_map(|setting| difference(setting.name)).collect()
}

/// Returns the lines to log when a node with these settings has entered a cluster with this map: each flag that does
/// not apply, the cluster's value, and the command that changes it.
pub(crate) fn overruled_flags(settings: &Settings, map: &Map) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, here: String, cluster: String, change: &str| {
        lines.push(format!(
            "{name} = {here} was given to this node, but the cluster has {name} = {cluster}, which applies; {change}"
        ));
    };
    for SettingDifference { name, here, cluster } in differences(settings, map.documents()) {
        let is_default = find(name).is_some_and(|setting| setting.default_text() == here);
        if !is_default {
            say(name, here, cluster, &format!("CONFIG SET {name} changes it for all nodes"));
        }
    }
    let known = map.settings();
    if let Some(backups) = settings.backups.filter(|backups| *backups != known.backups) {
        let change = "opencluster settings backups changes it";
        say("backups", backups.to_string(), known.backups.to_string(), change);
    }
    let word = |ack| match ack {
        Ack::Backup => InitialAck::Backup.word(),
        Ack::Primary => InitialAck::Primary.word(),
    };
    if let Some(ack) = settings.ack.filter(|ack| ack.word() != word(known.ack)) {
        let change = "opencluster settings ack changes it";
        say("ack", ack.word().to_owned(), word(known.ack).to_owned(), change);
    }
    let buckets = map.bucket_count().to_string();
    if let Some(given) = settings.buckets.filter(|given| given.word() != buckets) {
        let change = "buckets are split as the cluster grows, and never merged";
        say("buckets", given.word().to_owned(), buckets, change);
    }
    lines
}

#[cfg(test)]
mod tests {
    use cluster::map::{Boot, ClusterSettings, Endpoints, Member, NodeId, Zone};
    use placement::Mask;
    use settings::Buckets;

    use super::*;

    fn map(documents: Documents) -> Map {
        let founder = Member {
            id: NodeId(1),
            boot: Boot(1),
            name: "n1".to_owned(),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        };
        Map::found(founder, Mask::M000F, ClusterSettings::default()).with_documents(documents)
    }

    fn with(changes: &[(&str, &str)]) -> Settings {
        Settings::default().with_changes(changes).expect("valid changes")
    }

    #[test]
    fn a_founder_has_no_difference_from_its_cluster() {
        let settings = with(&[("maxmemory-policy", "allkeys-lru"), ("maxmemory", "1gb")]);
        let documents = founding_documents(&settings);
        assert_eq!(differences(&settings, &documents), []);
        assert!(documents.get("settings/maxmemory").is_none(), "machines differ in memory");
    }

    #[test]
    fn a_joining_node_takes_the_clusters_values_and_names_the_flags_that_do_not_apply() {
        let cluster = with(&[("maxmemory-policy", "allkeys-lru"), ("lfu-decay-time", "7")]);
        let map = map(founding_documents(&cluster));
        let mut here = with(&[("maxmemory-policy", "volatile-ttl")]);
        let differing: Vec<_> =
            differences(&here, map.documents()).into_iter().map(|it| it.name).collect();
        assert_eq!(differing, ["maxmemory-policy", "lfu-decay-time"]);
        (here.backups, here.buckets) = (Some(2), Some(Buckets::B256));
        let lines = overruled_flags(&here, &map);
        assert_eq!(lines.len(), 3, "the default of lfu-decay-time was not given: {lines:#?}");
        assert!(lines[0].contains("maxmemory-policy = volatile-ttl was given"), "{lines:#?}");
        assert!(lines[1].starts_with("backups = 2 was given"), "{lines:#?}");
        assert!(lines[2].contains("the cluster has buckets = 16"), "{lines:#?}");
    }

    #[test]
    fn every_class_of_events_reaches_the_other_nodes() {
        let cluster = with(&[("notify-keyspace-events", "KEAn")]);
        let documents = founding_documents(&cluster);
        assert_eq!(differences(&cluster, &documents), [], "the founder has its own value");
        let without_new = with(&[("notify-keyspace-events", "KEA")]);
        assert_eq!(differences(&without_new, &documents).len(), 1, "`n` counts, though not shown");
    }

    #[test]
    fn a_value_of_a_newer_version_is_left_out() {
        let write = DocumentWrite::put("settings/maxmemory-policy", *b"allkeys-oracle");
        let documents = Documents::found(&[write]).expect("small");
        assert_eq!(differences(&Settings::default(), &documents), []);
    }

    #[test]
    fn only_settings_of_the_cluster_are_written_in_their_usual_form() {
        let changes = [("MAXMEMORY-POLICY", "ALLKEYS-LRU"), ("timeout", "5")];
        let (cluster, _) = ValidChanges::check(&changes).expect("valid").split();
        let writes = writes_of(&Settings::default(), &cluster);
        assert_eq!(writes, [DocumentWrite::put("settings/maxmemory-policy", *b"allkeys-lru")]);
    }
}
