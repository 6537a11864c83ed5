//! Lists in Redis's serialisation format: written as a quicklist of listpacks, as Redis 7 writes it; read in that form
//! and in all earlier ones. Every payload is checked completely.

use store::{Element, ListValue, Row, listpack_entry_len};

use super::{RdbReader, listpack, put_length, put_string, ziplist};

const TYPE_LIST: u8 = 1;
const TYPE_LIST_ZIPLIST: u8 = 10;
const TYPE_LIST_QUICKLIST: u8 = 14;
pub(super) const TYPE_LIST_QUICKLIST_2: u8 = 18;

/// A node of a quicklist is one element, or a listpack.
const NODE_PLAIN: usize = 1;
const NODE_PACKED: usize = 2;

/// Maximum length of a node's listpack with more than one element, as in Redis (`list-max-listpack-size` -2).
const NODE_BYTES_MAX: usize = 8 * 1024;
/// Bytes that Redis assumes an element to take besides its text, when it fills a node.
const ELEMENT_OVERHEAD: usize = 8;
/// Bytes of an empty listpack.
const LISTPACK_HEAD_BYTES: usize = 7;

pub(super) fn is_list(kind: u8) -> bool {
    matches!(kind, TYPE_LIST | TYPE_LIST_ZIPLIST | TYPE_LIST_QUICKLIST | TYPE_LIST_QUICKLIST_2)
}

/// Appends a list in nodes, filled from the start as if the elements were pushed at the end one by one.
pub(super) fn put_list(out: &mut Vec<u8>, list: ListValue<'_>) {
    let nodes = nodes(list);
    put_length(out, nodes.len());
    for node in nodes {
        put_length(out, NODE_PACKED);
        put_string(out, &node);
    }
}

/// Returns the listpacks of a list.
fn nodes(list: ListValue<'_>) -> Vec<Vec<u8>> {
    let mut nodes = Vec::new();
    let mut elements: Vec<Element<'_>> = Vec::new();
    let mut bytes = LISTPACK_HEAD_BYTES;
    for element in list.iter_from(0) {
        if !elements.is_empty() && bytes + element.len() + ELEMENT_OVERHEAD > NODE_BYTES_MAX {
            nodes.push(listpack::write(elements.drain(..)));
            bytes = LISTPACK_HEAD_BYTES;
        }
        elements.push(element);
        bytes += listpack_entry_len(element);
    }
    nodes.push(listpack::write(elements.into_iter()));
    nodes
}

/// Reads a list of this type as a row of at most `bytes_max` bytes.
pub(super) fn read(reader: &mut RdbReader<'_>, kind: u8, bytes_max: usize) -> Option<Vec<u8>> {
    let mut row = ListRow { row: Vec::new(), bytes_max };
    if kind == TYPE_LIST_ZIPLIST {
        row.add_ziplist(&reader.string(bytes_max)?)?;
    } else {
        for _ in 0..reader.length()? {
            let is_packed = match kind {
                TYPE_LIST_QUICKLIST_2 => match reader.length()? {
                    NODE_PLAIN => false,
                    NODE_PACKED => true,
                    _ => return None,
                },
                kind => kind == TYPE_LIST_QUICKLIST,
            };
            let node = reader.string(bytes_max)?;
            match (kind, is_packed) {
                (TYPE_LIST_QUICKLIST_2, true) => row.add_listpack(&node)?,
                (_, true) => row.add_ziplist(&node)?,
                (_, false) => row.add(Element::of(&node))?,
            }
        }
    }
    let row = row.row;
    (!row.is_empty() && Row::check(&row, 1).is_ok()).then_some(row)
}

/// The elements read so far.
struct ListRow {
    row: Vec<u8>,
    bytes_max: usize,
}

impl ListRow {
    fn add(&mut self, element: Element<'_>) -> Option<()> {
        element.write(&mut self.row);
        (self.row.len() <= self.bytes_max).then_some(())
    }

    fn add_listpack(&mut self, node: &[u8]) -> Option<()> {
        listpack::read(node)?.into_iter().try_for_each(|element| self.add(element))
    }

    fn add_ziplist(&mut self, node: &[u8]) -> Option<()> {
        ziplist::read(node)?.into_iter().try_for_each(|element| self.add(element))
    }
}
