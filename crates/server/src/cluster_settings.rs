//! Settings of the whole cluster. They are documents of the map (`settings/NAME`), so all nodes agree on them through
//! the log; each node applies them to its own settings when its map changes (`config.rs`).

use cluster::control::{OperatorRequest, WriteRequest};
use cluster::map::{Ack, DocumentWrite, Documents, Map, SETTING_PREFIX, Setting};
use settings::{InitialAck, Settings, ValidChanges, cluster_wide};

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

pub(crate) fn ack_of(initial: InitialAck) -> Ack {
    match initial {
        InitialAck::Backup => Ack::Backup,
        InitialAck::Primary => Ack::Primary,
    }
}

/// A flag of a node that has entered a cluster with another value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FlagConflict {
    pub name: &'static str,
    pub here: String,
    pub cluster: String,
    pub remedy: Remedy,
}

/// The way to make a flag's value the cluster's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Remedy {
    Write(DocumentWrite),
    Set(Setting),
    /// There is none: buckets are split as the cluster grows, and never merged.
    Nothing,
}

impl FlagConflict {
    /// Returns the line to log if the cluster's value applies.
    pub(crate) fn overruled(&self) -> String {
        let FlagConflict { name, here, cluster, remedy } = self;
        let change = match remedy {
            Remedy::Write(_) => format!("CONFIG SET {name} changes it for all nodes"),
            Remedy::Set(_) => format!("opencluster settings {name} changes it"),
            Remedy::Nothing => "buckets are split as the cluster grows, and never merged".into(),
        };
        format!(
            "{name} = {here} was given to this node, but the cluster has {name} = {cluster}, which applies; {change}"
        )
    }

    /// Returns the line to log if the flag's value replaces the cluster's.
    pub(crate) fn winning(&self) -> String {
        let FlagConflict { name, here, cluster, .. } = self;
        format!(
            "{name} = {here} was given to this node, the only member; it replaces {name} = {cluster} of the cluster"
        )
    }
}

/// Returns the given flags that differ from the values of the cluster that the node has entered.
pub(crate) fn flag_conflicts(flags: &Settings, map: &Map) -> Vec<FlagConflict> {
    let mut conflicts = Vec::new();
    for SettingDifference { name, here, cluster } in differences(flags, map.documents()) {
        if flags.given.contains(name) {
            let remedy = Remedy::Write(write_of(name, flags));
            conflicts.push(FlagConflict { name, here, cluster, remedy });
        }
    }
    let known = map.settings();
    if let Some(backups) = flags.backups.filter(|backups| *backups != known.backups) {
        let (here, cluster) = (backups.to_string(), known.backups.to_string());
        let remedy = Remedy::Set(Setting::Backups(backups));
        conflicts.push(FlagConflict { name: "backups", here, cluster, remedy });
    }
    let word = |ack| match ack {
        Ack::Backup => InitialAck::Backup.word().to_owned(),
        Ack::Primary => InitialAck::Primary.word().to_owned(),
    };
    if let Some(ack) = flags.ack.map(ack_of).filter(|ack| *ack != known.ack) {
        let (here, cluster) = (word(ack), word(known.ack));
        let remedy = Remedy::Set(Setting::Ack(ack));
        conflicts.push(FlagConflict { name: "ack", here, cluster, remedy });
    }
    let buckets = map.bucket_count().to_string();
    if let Some(given) = flags.buckets.filter(|given| given.word() != buckets) {
        let (here, remedy) = (given.word().to_owned(), Remedy::Nothing);
        conflicts.push(FlagConflict { name: "buckets", here, cluster: buckets, remedy });
    }
    conflicts
}

/// Returns the requests that make the values of these flags the cluster's.
pub(crate) fn remedies(conflicts: &[FlagConflict], map: &Map) -> Vec<OperatorRequest> {
    let (mut documents, mut requests) = (Vec::new(), Vec::new());
    for conflict in conflicts {
        match &conflict.remedy {
            Remedy::Write(write) => documents.push(write.clone()),
            Remedy::Set(setting) => requests.push(OperatorRequest::Set(setting.clone())),
            Remedy::Nothing => {}
        }
    }
    if !documents.is_empty() {
        let only_at = Some(map.documents().version());
        requests.push(OperatorRequest::Write(WriteRequest { documents, only_at }));
    }
    requests
}

#[cfg(test)]
mod tests {
    use cluster::map::{Boot, ClusterSettings, Endpoints, Member, NodeId, Zone};
    use placement::Mask;

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

    /// Returns the settings of a node that was started with these flags.
    fn started_with(flags: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (name, text) in flags {
            settings.set(name, text).expect("a valid flag");
        }
        settings
    }

    #[test]
    fn a_joining_node_takes_the_clusters_values_and_names_the_flags_that_do_not_apply() {
        let cluster = with(&[("maxmemory-policy", "allkeys-lru"), ("lfu-decay-time", "7")]);
        let map = map(founding_documents(&cluster));
        let flags = [("maxmemory-policy", "volatile-ttl"), ("backups", "2"), ("buckets", "256")];
        let here = started_with(&flags);
        let differing: Vec<_> =
            differences(&here, map.documents()).into_iter().map(|it| it.name).collect();
        assert_eq!(differing, ["maxmemory-policy", "lfu-decay-time"]);
        let lines: Vec<String> =
            flag_conflicts(&here, &map).iter().map(FlagConflict::overruled).collect();
        assert_eq!(lines.len(), 3, "lfu-decay-time was not given: {lines:#?}");
        assert!(lines[0].contains("maxmemory-policy = volatile-ttl was given"), "{lines:#?}");
        assert!(lines[1].starts_with("backups = 2 was given"), "{lines:#?}");
        assert!(lines[2].contains("the cluster has buckets = 16"), "{lines:#?}");
    }

    #[test]
    fn a_flag_counts_as_given_although_it_names_the_default() {
        let map = map(founding_documents(&with(&[("maxmemory-policy", "allkeys-lru")])));
        assert_eq!(flag_conflicts(&Settings::default(), &map), []);
        let conflicts = flag_conflicts(&started_with(&[("maxmemory-policy", "noeviction")]), &map);
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    }

    #[test]
    fn the_flags_of_a_lone_node_are_written_together() {
        let map = map(founding_documents(&Settings::default()));
        let flags = [
            ("maxmemory-policy", "allkeys-lru"),
            ("lfu-decay-time", "7"),
            ("ack", "primary"),
            ("buckets", "256"),
        ];
        let requests = remedies(&flag_conflicts(&started_with(&flags), &map), &map);
        let documents = vec![
            DocumentWrite::put("settings/maxmemory-policy", *b"allkeys-lru"),
            DocumentWrite::put("settings/lfu-decay-time", *b"7"),
        ];
        let only_at = Some(map.documents().version());
        let write = OperatorRequest::Write(WriteRequest { documents, only_at });
        assert_eq!(requests, [OperatorRequest::Set(Setting::Ack(Ack::Primary)), write]);
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
