//! Generates `docs/configuration.md` from the table; a test of the binary keeps the file equal to this text.

use std::fmt::Write;

use super::table::{Mutability, SettingSection, SettingSpec, TABLE};

const HEAD: &str = "\
# Configuration

This page is generated from the table in `crates/settings/src/table.rs`; after a change there,
regenerate it with `UPDATE_DOCS=1 cargo test -p opencluster docs_configuration`.

A node needs no configuration. Settings are read in this order; later sources override earlier ones:

1. a file: `opencluster --config opencluster.toml`, one `name = value` per line, in TOML
2. the environment: `OPENCLUSTER_MAXMEMORY=1gb`
3. flags: `--maxmemory 1gb`

While the node runs, `CONFIG SET` changes the settings that are marked with it below, and
`CONFIG REWRITE` writes these changes into the file. Names are the same everywhere; in the
environment `-` and `.` are written `_`.

Sizes take `kb`, `mb` and `gb` (1024) or `k`, `m` and `g` (1000). Durations take `us`, `ms`, `s`,
`m`, `h` and `d`; a number without a unit has the unit named in the table. With a wrong name or value
the node does not start, and reports what is allowed.

A setting marked \"all nodes\" has one value in the whole cluster: the first node's, until `CONFIG SET` on any
node changes it for all. A node that joins or comes back takes the cluster's value, whatever its own
flags say, and logs the difference. Only if it is the single member does a value given at its start (by file,
environment or flag) replace the stored one.

Secrets come from a file or the environment, never from a flag: arguments can be read by everyone
on the machine.

```toml
# opencluster.toml
port = 7000
maxmemory = \"4gb\"
maxmemory-policy = \"allkeys-lru\"
requirepass-file = \"/etc/opencluster/password\"
```
";

/// Returns the whole text of `docs/configuration.md`.
pub fn document() -> String {
    let mut page = HEAD.to_owned();
    for section in SettingSection::ALL {
        let _ = write!(page, "\n## {}\n\n", section.title());
        page.push_str(section_head(section));
        for setting in TABLE.iter().filter(|setting| setting.section == section) {
            page.push_str(&match setting.mutability() {
                Mutability::AtRunTime | Mutability::AtStart => row(setting),
                Mutability::Never => fixed_row(setting),
            });
        }
    }
    page
}

fn section_head(section: SettingSection) -> &'static str {
    match section {
        SettingSection::Network
        | SettingSection::Cluster
        | SettingSection::Memory
        | SettingSection::Limits
        | SettingSection::Security
        | SettingSection::Watching => {
            "| setting | default | what it does | takes | changed by |\n|---|---|---|---|---|\n"
        }
        SettingSection::Compatibility => {
            "`CONFIG GET` shows them because clients and tools ask; they cannot be changed.\n\n\
             | setting | value | because |\n|---|---|---|\n"
        }
    }
}

fn row(setting: &SettingSpec) -> String {
    let default = default_of(setting);
    let changed_by = match (setting.mutability(), setting.is_secret()) {
        (Mutability::AtRunTime, false) if setting.is_cluster_wide() => {
            "start of the first node, `CONFIG SET` for all nodes"
        }
        (Mutability::AtRunTime, false) => "start, `CONFIG SET`",
        (Mutability::AtRunTime, true) => "start (no flag), `CONFIG SET`",
        (Mutability::AtStart | Mutability::Never, _) => "start",
    };
    let (name, help, takes) = (setting.name, setting.help, setting.kind.allowed());
    format!("| `{name}` | {default} | {help} | {takes} | {changed_by} |\n")
}

fn fixed_row(setting: &SettingSpec) -> String {
    format!("| `{}` | {} | {} |\n", setting.name, default_of(setting), setting.help)
}

fn default_of(setting: &SettingSpec) -> String {
    let text = setting.kind.friendly(&setting.default_text());
    if text.is_empty() { "(empty)".to_owned() } else { format!("`{text}`") }
}
