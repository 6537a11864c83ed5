//! The scripts of the whole cluster: documents of the map, so that a script that was loaded on one node runs on every
//! one (docs/decisions/0034). Their number and size are bounded; the oldest goes first.

use std::sync::Arc;

use cluster::map::{Document, DocumentWrite, Documents};
use scripting::{NodeScripts, ScriptId};

use crate::CommandEnv;

/// Begin of the name of a document that holds a script; its id follows.
const TEXT_PREFIX: &str = "scripts/text/";
/// The document that is written by SCRIPT FLUSH: its version tells the nodes to forget what they remember.
const FLUSH: &str = "scripts/flush";
/// Maximum number of scripts in documents, and of their bytes.
const SCRIPTS_MAX: usize = 500;
const BYTES_MAX: usize = 1 << 20;

fn name_of(id: &ScriptId) -> String {
    format!("{TEXT_PREFIX}{}", id.text())
}

/// Returns the text of a script that this node remembers or that the cluster has.
pub(super) fn find(env: &CommandEnv, id: &ScriptId) -> Option<Arc<[u8]>> {
    env.scripts.text(id).or_else(|| env.scripts.cluster_text(id))
}

/// Returns whether a script is known here.
pub(super) fn knows(env: &CommandEnv, id: &ScriptId) -> bool {
    env.scripts.knows(id) || has(env, id)
}

/// Returns whether the cluster has a script.
pub(super) fn has(env: &CommandEnv, id: &ScriptId) -> bool {
    env.scripts.cluster_text(id).is_some()
}

/// Adopts the scripts among the documents of a map. To be called before this node says that it follows the documents:
/// then every node knows a script when SCRIPT LOAD is answered (docs/decisions/0020).
pub fn follow_scripts(scripts: &NodeScripts, documents: &Documents) {
    let version = documents.version().0;
    if scripts.cluster_version() == version {
        return;
    }
    let text = |(name, document): (&str, &Document)| {
        let id = ScriptId::parse(name.strip_prefix(TEXT_PREFIX)?.as_bytes())?;
        Some((id, Arc::clone(&document.content)))
    };
    let flush = documents.get(FLUSH).map_or(0, |document| document.version.0);
    scripts.follow_cluster(version, flush, documents.iter().filter_map(text).collect());
}

/// Returns the changes that give a script to the cluster. The oldest scripts make room for it.
pub(super) fn add(env: &CommandEnv, id: &ScriptId, text: &[u8]) -> Vec<DocumentWrite> {
    let documents = env.cluster.map().documents();
    let mut scripts: Vec<_> =
        documents.iter().filter(|(name, _)| name.starts_with(TEXT_PREFIX)).collect();
    scripts.sort_by_key(|(_, document)| document.version);
    let mut bytes: usize = scripts.iter().map(|(_, document)| document.content.len()).sum();
    let mut count = scripts.len();
    let mut writes = vec![DocumentWrite::put(name_of(id), text)];
    for (name, document) in scripts {
        if count < SCRIPTS_MAX && bytes + text.len() <= BYTES_MAX {
            break;
        }
        (count, bytes) = (count - 1, bytes - document.content.len());
        writes.push(DocumentWrite::remove(name));
    }
    writes
}

/// Returns the changes that remove all scripts from the cluster.
pub(super) fn flush(env: &CommandEnv) -> Vec<DocumentWrite> {
    let documents = env.cluster.map().documents();
    let names = documents.iter().map(|(name, _)| name).filter(|it| it.starts_with(TEXT_PREFIX));
    let mut writes: Vec<DocumentWrite> = names.map(DocumentWrite::remove).collect();
    // Its content differs at every flush, so that no two of them are one.
    let version = documents.version().0.to_string();
    writes.push(DocumentWrite::put(FLUSH, version.into_bytes()));
    writes
}
