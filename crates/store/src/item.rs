//! One item in one heap block: version, access mark, kind, lengths, key, value. All of this crate's `unsafe` code
//! except the prefetch is here.
//!
//! ~~~text
//! 0        8       11      12            15 (short form)
//! version  access  kind    klen vlen     key... value...
//!   8        3       1      1    2
//!                          klen vlen     key... value...
//!                           4    4       20 (long form, by a bit in `kind`)
//! ~~~
//!
//! The short form is for keys up to 255 and values up to 65,535 bytes. So a 16-byte key with a 32-byte value takes
//! 63 bytes: one cache line, and the allocator's 64-byte block. Block sizes are always the allocator's own
//! (`containers::block_bytes`), so a value that still fits is overwritten in place.
//!
//! The expiry time is not stored here but beside the entry in `segment.rs`.
#![expect(unsafe_code, reason = "an item is a variable-length block behind a 48-bit pointer")]

mod list; //   The large list of an item.
mod stream; // The stream of an item.

use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc::{self, Layout};
use std::sync::Arc;

use containers::{List, Row, ScoredRow, SortedSet, Stream, Table, block_bytes};

use crate::access::AccessMark;
use crate::hash_value::{HashValue, PAIR};
use crate::list_value::ListValue;

use crate::set_value::{MEMBER, SetValue};
use crate::sorted_value::SortedSetValue;
use crate::value::{Encoding, ItemValue, StoredValue, StringValue};
use crate::version::Version;

const ACCESS_AT: usize = 8;
const KIND_AT: usize = 11;
const KEY_LEN_AT: usize = 12;
const SHORT_VALUE_LEN_AT: usize = 13;
const SHORT_DATA_AT: usize = 15;
const LONG_VALUE_LEN_AT: usize = 16;
const LONG_DATA_AT: usize = 20;
const BLOCK_ALIGN: usize = 8;

/// The longest string that Redis keeps in one block with its header; only used for `OBJECT ENCODING`.
const EMBSTR_BYTES_MAX: usize = 44;
/// Maximum length of keys and values; clients cannot send more than 512 MiB.
const LEN_MAX: usize = u32::MAX as usize;

/// Set in the kind byte of an item in the long form.
const LONG_FORM: u8 = 0x80;

/// The meaning of the value bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum ValueKind {
    /// The string itself.
    Plain = 0,
    /// The string itself, computed by a command.
    Raw = 1,
    /// An `i64`.
    Integer = 2,
    /// A pointer from `Arc<Vec<u8>>::into_raw`; the item owns one count.
    Shared = 3,
    /// A hash: its fields and values in a row.
    PackedHash = 4,
    /// A hash: a pointer from `Box<Table>::into_raw`, which the item owns.
    HashTable = 5,
    /// A list: its elements in a row.
    PackedList = 6,
    /// A list: a pointer from `Box<List>::into_raw`, which the item owns (`item/list.rs`).
    LargeList = 7,
    /// A sorted set: its scores and members in a row.
    PackedSorted = 10,
    /// A sorted set: a pointer from `Box<SortedSet>::into_raw`, which the item owns.
    Sorted = 11,
    /// A set: its members in a row, all of them numbers, in ascending order.
    IntegerSet = 13,
    /// A set: its members in a row.
    PackedSet = 14,
    /// A set: a pointer from `Box<Table>::into_raw`, which the item owns.
    SetTable = 15,
    /// A stream: a pointer from `Box<Stream>::into_raw`, which the item owns (`item/stream.rs`).
    Stream = 16,
}

impl ValueKind {
    /// Returns whether the value bytes are a pointer to a table.
    fn is_table(self) -> bool {
        matches!(self, ValueKind::HashTable | ValueKind::SetTable)
    }
}

/// A value that is not in its item's block.
pub(crate) enum OwnedMemory {
    Shared(Arc<Vec<u8>>),
    Table(Box<Table>),
    List(Box<List>),
    Sorted(Box<SortedSet>),
    Stream(Box<Stream>),
}

/// An owned item. Dropping it frees the block.
pub(crate) struct Item(NonNull<u8>);

// SAFETY: an item owns its block and has no ties to a thread; `Arc<Vec<u8>>`, `Box<Table>`, `Box<List>`,
// `Box<SortedSet>` and `Box<Stream>` inside are `Send`.
unsafe impl Send for Item {}

/// The lengths that decide a block's form and size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockLengths {
    key_len: usize,
    value_len: usize,
}

impl BlockLengths {
    fn is_long(self) -> bool {
        self.key_len > u8::MAX as usize || self.value_len > u16::MAX as usize
    }

    fn data_at(self) -> usize {
        if self.is_long() { LONG_DATA_AT } else { SHORT_DATA_AT }
    }

    fn block(self) -> usize {
        block_bytes(self.data_at() + self.key_len + self.value_len)
    }

    fn layout(self) -> Layout {
        Layout::from_size_align(self.block(), BLOCK_ALIGN).expect("lengths are below 4 GiB")
    }
}

impl Item {
    pub(crate) fn new(
        key: &[u8],
        value: ItemValue<'_>,
        version: Version,
        mark: AccessMark,
    ) -> Item {
        let shape = BlockLengths { key_len: key.len(), value_len: stored_len(&value) };
        assert!(shape.key_len <= LEN_MAX && shape.value_len <= LEN_MAX, "the parser limits both");
        let layout = shape.layout();
        // SAFETY: the layout is never empty: a header alone takes 15 bytes.
        let block = unsafe { alloc::alloc(layout) };
        let Some(block) = NonNull::new(block) else { alloc::handle_alloc_error(layout) };
        let mut item = Item(block);
        item.write_header(shape, version, mark);
        item.write_at(shape.data_at(), key);
        item.write_value(shape, value);
        item
    }

    /// Overwrites the present value if the block has the right size for `value`, and returns `value` otherwise. The
    /// key stays; version and mark are set.
    pub(crate) fn overwrite<'v>(
        &mut self,
        value: ItemValue<'v>,
        version: Version,
        mark: AccessMark,
    ) -> Result<(), ItemValue<'v>> {
        let old = self.as_ref().shape();
        let new = BlockLengths { key_len: old.key_len, value_len: stored_len(&value) };
        if new.is_long() != old.is_long() || new.block() != old.block() {
            return Err(value);
        }
        drop(self.take_owned());
        self.write_header(new, version, mark);
        self.write_value(new, value);
        Ok(())
    }

    /// Returns the bytes of a string stored in this block, to be changed without changing its length.
    pub(crate) fn inline_bytes_mut(&mut self) -> Option<&mut [u8]> {
        let (shape, kind) = (self.as_ref().shape(), self.as_ref().kind());
        match kind {
            ValueKind::Plain | ValueKind::Raw => {
                self.write_at(KIND_AT, &[ValueKind::Raw as u8 | long_bit(shape)]);
                let start = shape.data_at() + shape.key_len;
                // SAFETY: the block holds `value_len` initialised bytes from `start` on, and `self`
                // is borrowed for as long as the slice lives.
                Some(unsafe {
                    core::slice::from_raw_parts_mut(self.0.as_ptr().add(start), shape.value_len)
                })
            }
            ValueKind::Integer
            | ValueKind::Shared
            | ValueKind::PackedHash
            | ValueKind::HashTable
            | ValueKind::PackedList
            | ValueKind::LargeList
            | ValueKind::PackedSorted
            | ValueKind::Sorted
            | ValueKind::IntegerSet
            | ValueKind::PackedSet
            | ValueKind::SetTable
            | ValueKind::Stream => None,
        }
    }

    /// Takes a large value out, leaving an empty string behind.
    pub(crate) fn take_shared(&mut self) -> Option<Arc<Vec<u8>>> {
        let item = self.as_ref();
        if item.kind() != ValueKind::Shared {
            return None;
        }
        let (shape, pointer) = (item.shape(), item.shared_pointer());
        // The block keeps its shape (eight value bytes), so that it is freed as it was allocated.
        self.write_at(KIND_AT, &[ValueKind::Integer as u8 | long_bit(shape)]);
        // SAFETY: the pointer came from `Arc::into_raw` in `write_value`, the item owned that count,
        // and the kind just written says that it no longer does.
        Some(unsafe { Arc::from_raw(pointer) })
    }

    /// Stores a large value in the place that `take_shared` left.
    pub(crate) fn put_shared(&mut self, shared: Arc<Vec<u8>>) {
        let shape = self.as_ref().shape();
        assert_eq!(self.as_ref().kind(), ValueKind::Integer, "only where take_shared made room");
        self.write_value(shape, ItemValue::Shared(shared));
    }

    /// Takes a table out, leaving a number behind.
    pub(crate) fn take_table(&mut self) -> Option<Box<Table>> {
        let item = self.as_ref();
        if !item.kind().is_table() {
            return None;
        }
        let (shape, pointer) = (item.shape(), item.table_pointer());
        // As in `take_shared`, the block keeps its shape.
        self.write_at(KIND_AT, &[ValueKind::Integer as u8 | long_bit(shape)]);
        // SAFETY: the pointer came from `Box::into_raw` in `write_value`, and the kind just written says that the item
        // no longer owns it.
        Some(unsafe { Box::from_raw(pointer) })
    }

    /// Returns the table of a large hash or set, to be changed.
    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        let item = self.as_ref();
        // SAFETY: the item owns the table, and `self` is borrowed for as long as the reference lives.
        item.kind().is_table().then(|| unsafe { &mut *item.table_pointer() })
    }

    /// Takes a large sorted set out, leaving a number behind.
    fn take_sorted(&mut self) -> Option<Box<SortedSet>> {
        let item = self.as_ref();
        if item.kind() != ValueKind::Sorted {
            return None;
        }
        let (shape, pointer) = (item.shape(), item.sorted_pointer());
        // As in `take_shared`, the block keeps its shape.
        self.write_at(KIND_AT, &[ValueKind::Integer as u8 | long_bit(shape)]);
        // SAFETY: as in `take_table`.
        Some(unsafe { Box::from_raw(pointer) })
    }

    /// Returns a large sorted set, to be changed.
    pub(crate) fn sorted_mut(&mut self) -> Option<&mut SortedSet> {
        let item = self.as_ref();
        // SAFETY: the item owns the set, and `self` is borrowed for as long as the reference lives.
        (item.kind() == ValueKind::Sorted).then(|| unsafe { &mut *item.sorted_pointer() })
    }

    pub(crate) fn set_version(&mut self, version: Version) {
        self.write_at(0, &version.0.to_ne_bytes());
    }

    #[inline]
    pub(crate) fn set_mark(&mut self, mark: AccessMark) {
        let [a, b, c, _] = mark.0.to_le_bytes();
        self.write_at(ACCESS_AT, &[a, b, c]);
    }

    #[inline]
    pub(crate) fn as_ref(&self) -> ItemRef<'_> {
        ItemRef { block: self.0, item: PhantomData }
    }

    /// Returns the block's address as an index entry stores it (the low 48 bits), without dropping the item.
    pub(crate) fn into_address(self) -> u64 {
        let address = self.0.as_ptr().expose_provenance() as u64;
        assert_eq!(address >> 48, 0, "user-space addresses have 48 bits");
        core::mem::forget(self);
        address
    }

    /// Reverts `into_address`.
    ///
    /// # Safety
    /// `address` is from `into_address`, and nothing else owns its item.
    pub(crate) unsafe fn from_address(address: u64) -> Item {
        let block = core::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        Item(NonNull::new(block).expect("no item lives at zero"))
    }

    fn write_header(&mut self, shape: BlockLengths, version: Version, mark: AccessMark) {
        self.set_version(version);
        self.set_mark(mark);
        self.write_at(KIND_AT, &[long_bit(shape)]);
        if shape.is_long() {
            self.write_at(KEY_LEN_AT, &low_u32(shape.key_len).to_ne_bytes());
            self.write_at(LONG_VALUE_LEN_AT, &low_u32(shape.value_len).to_ne_bytes());
        } else {
            self.write_at(KEY_LEN_AT, &[low_u32(shape.key_len) as u8]);
            self.write_at(SHORT_VALUE_LEN_AT, &(low_u32(shape.value_len) as u16).to_ne_bytes());
        }
    }

    fn write_value(&mut self, shape: BlockLengths, value: ItemValue<'_>) {
        let at = shape.data_at() + shape.key_len;
        let kind = match value {
            ItemValue::Plain(bytes) => {
                self.write_at(at, bytes);
                ValueKind::Plain
            }
            ItemValue::Raw(bytes) => {
                self.write_at(at, bytes);
                ValueKind::Raw
            }
            ItemValue::Integer(number) => {
                self.write_at(at, &number.to_ne_bytes());
                ValueKind::Integer
            }
            ItemValue::Shared(shared) => {
                let address = Arc::into_raw(shared).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::Shared
            }
            ItemValue::PackedHash(row) => {
                self.write_at(at, row);
                ValueKind::PackedHash
            }
            ItemValue::HashTable(table) => {
                let address = Box::into_raw(table).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::HashTable
            }
            ItemValue::PackedList(row) => {
                self.write_at(at, row);
                ValueKind::PackedList
            }
            ItemValue::LargeList(list) => {
                let address = Box::into_raw(list).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::LargeList
            }
            ItemValue::PackedSorted(row) => {
                self.write_at(at, &row);
                ValueKind::PackedSorted
            }
            ItemValue::Sorted(set) => {
                let address = Box::into_raw(set).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::Sorted
            }
            ItemValue::IntegerSet(row) => {
                self.write_at(at, &row);
                ValueKind::IntegerSet
            }
            ItemValue::PackedSet(row) => {
                self.write_at(at, &row);
                ValueKind::PackedSet
            }
            ItemValue::SetTable(table) => {
                let address = Box::into_raw(table).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::SetTable
            }
            ItemValue::Stream(stream) => {
                let address = Box::into_raw(stream).expose_provenance() as u64;
                self.write_at(at, &address.to_ne_bytes());
                ValueKind::Stream
            }
        };
        self.write_at(KIND_AT, &[kind as u8 | long_bit(shape)]);
    }

    #[inline(always)]
    fn write_at(&mut self, at: usize, bytes: &[u8]) {
        // SAFETY: every caller writes within the header (the block is larger) or within the key and
        // value bytes that the block was sized for; `bytes` cannot overlap a block we own.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_ptr().add(at), bytes.len());
        }
    }

    /// Takes a value with memory of its own out, leaving a number behind.
    #[inline]
    pub(crate) fn take_owned(&mut self) -> Option<OwnedMemory> {
        match self.as_ref().kind() {
            ValueKind::Plain
            | ValueKind::Raw
            | ValueKind::Integer
            | ValueKind::PackedHash
            | ValueKind::PackedList
            | ValueKind::PackedSorted
            | ValueKind::IntegerSet
            | ValueKind::PackedSet => None,
            ValueKind::Shared => self.take_shared().map(OwnedMemory::Shared),
            ValueKind::HashTable | ValueKind::SetTable => self.take_table().map(OwnedMemory::Table),
            ValueKind::LargeList => self.take_list().map(OwnedMemory::List),
            ValueKind::Sorted => self.take_sorted().map(OwnedMemory::Sorted),
            ValueKind::Stream => self.take_stream().map(OwnedMemory::Stream),
        }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let layout = self.as_ref().shape().layout();
        drop(self.take_owned());
        // SAFETY: allocated in `new` with the layout of its shape; `overwrite` only accepts shapes of the same
        // block size.
        unsafe { alloc::dealloc(self.0.as_ptr(), layout) }
    }
}

/// A borrowed item, for reading.
#[derive(Clone, Copy)]
pub struct ItemRef<'a> {
    block: NonNull<u8>,
    item: PhantomData<&'a Item>,
}

impl<'a> ItemRef<'a> {
    /// Returns the item at an index entry's address.
    ///
    /// # Safety
    /// `address` is from `Item::into_address`, and the item lives and is not changed during `'a`.
    #[inline]
    pub(crate) unsafe fn from_address(address: u64) -> ItemRef<'a> {
        let block = core::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        ItemRef { block: NonNull::new(block).expect("no item lives at zero"), item: PhantomData }
    }

    #[inline]
    pub fn key(self) -> &'a [u8] {
        let shape = self.shape();
        self.slice(shape.data_at(), shape.key_len)
    }

    pub fn value(self) -> StoredValue<'a> {
        let shape = self.shape();
        match self.kind() {
            ValueKind::PackedHash => {
                let row = self.slice(shape.data_at() + shape.key_len, shape.value_len);
                StoredValue::Hash(HashValue::Packed(Row::new(row, PAIR)))
            }
            ValueKind::HashTable => StoredValue::Hash(HashValue::Table(self.table())),
            ValueKind::PackedList => {
                let row = self.slice(shape.data_at() + shape.key_len, shape.value_len);
                StoredValue::List(ListValue::Packed(Row::new(row, 1)))
            }
            ValueKind::LargeList => StoredValue::List(ListValue::Large(self.list())),
            ValueKind::PackedSorted => {
                let row = self.slice(shape.data_at() + shape.key_len, shape.value_len);
                StoredValue::SortedSet(SortedSetValue::Packed(ScoredRow::new(row)))
            }
            ValueKind::Sorted => StoredValue::SortedSet(SortedSetValue::Large(self.sorted())),
            ValueKind::IntegerSet => {
                let row = self.slice(shape.data_at() + shape.key_len, shape.value_len);
                StoredValue::Set(SetValue::Integers(Row::new(row, MEMBER)))
            }
            ValueKind::PackedSet => {
                let row = self.slice(shape.data_at() + shape.key_len, shape.value_len);
                StoredValue::Set(SetValue::Packed(Row::new(row, MEMBER)))
            }
            ValueKind::SetTable => StoredValue::Set(SetValue::Table(self.table())),
            ValueKind::Stream => StoredValue::Stream(self.stream()),
            ValueKind::Plain | ValueKind::Raw | ValueKind::Integer | ValueKind::Shared => {
                StoredValue::String(self.string().expect("one of the kinds of strings"))
            }
        }
    }

    /// Returns the value if it is a string.
    #[inline]
    pub fn string(self) -> Option<StringValue<'a>> {
        let shape = self.shape();
        let bytes = self.slice(shape.data_at() + shape.key_len, shape.value_len);
        match self.kind() {
            ValueKind::Plain | ValueKind::Raw => Some(StringValue::Bytes(bytes)),
            ValueKind::Integer => Some(StringValue::Integer(i64::from_ne_bytes(
                bytes.try_into().expect("eight bytes"),
            ))),
            ValueKind::Shared => Some(StringValue::Shared(SharedValue {
                vec: self.shared_pointer(),
                item: PhantomData,
            })),
            ValueKind::PackedHash
            | ValueKind::HashTable
            | ValueKind::PackedList
            | ValueKind::LargeList
            | ValueKind::PackedSorted
            | ValueKind::Sorted => None,
            ValueKind::IntegerSet | ValueKind::PackedSet | ValueKind::SetTable => None,
            ValueKind::Stream => None,
        }
    }

    #[inline]
    pub fn is_hash(self) -> bool {
        matches!(self.kind(), ValueKind::PackedHash | ValueKind::HashTable)
    }

    pub fn encoding(self) -> Encoding {
        match self.kind() {
            ValueKind::Integer => Encoding::Int,
            ValueKind::Plain if self.shape().value_len <= EMBSTR_BYTES_MAX => Encoding::Embstr,
            ValueKind::Plain | ValueKind::Raw | ValueKind::Shared => Encoding::Raw,
            ValueKind::PackedHash | ValueKind::PackedList | ValueKind::PackedSorted => {
                Encoding::Listpack
            }
            ValueKind::LargeList => Encoding::Quicklist,
            ValueKind::Sorted => Encoding::Skiplist,
            ValueKind::HashTable | ValueKind::SetTable => Encoding::Hashtable,
            ValueKind::IntegerSet => Encoding::Intset,
            ValueKind::PackedSet => Encoding::Listpack,
            ValueKind::Stream => Encoding::Stream,
        }
    }

    pub fn version(self) -> Version {
        Version(u64::from_ne_bytes(self.array(0)))
    }

    #[inline]
    pub fn mark(self) -> AccessMark {
        let [a, b, c] = self.array(ACCESS_AT);
        AccessMark(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Returns the item's memory in the allocator, including a large value's own block.
    pub fn bytes(self) -> usize {
        let block = self.shape().block();
        match self.kind() {
            ValueKind::Plain
            | ValueKind::Raw
            | ValueKind::Integer
            | ValueKind::PackedHash
            | ValueKind::PackedList
            | ValueKind::PackedSorted => block,
            ValueKind::IntegerSet | ValueKind::PackedSet => block,
            ValueKind::Shared => {
                let shared = SharedValue { vec: self.shared_pointer(), item: PhantomData };
                block + shared.block_bytes()
            }
            ValueKind::LargeList => block + self.list().bytes(),
            ValueKind::Sorted => block + self.sorted().bytes(),
            ValueKind::HashTable | ValueKind::SetTable => block + self.table().bytes(),
            ValueKind::Stream => block + self.stream().bytes(),
        }
    }

    #[inline]
    pub(crate) fn address(self) -> *const u8 {
        self.block.as_ptr()
    }

    #[inline]
    fn shape(self) -> BlockLengths {
        let [kind] = self.array(KIND_AT);
        if kind & LONG_FORM == 0 {
            let [key_len] = self.array(KEY_LEN_AT);
            let value_len = u16::from_ne_bytes(self.array(SHORT_VALUE_LEN_AT));
            BlockLengths { key_len: key_len.into(), value_len: value_len.into() }
        } else {
            let key_len = u32::from_ne_bytes(self.array(KEY_LEN_AT));
            let value_len = u32::from_ne_bytes(self.array(LONG_VALUE_LEN_AT));
            BlockLengths { key_len: key_len as usize, value_len: value_len as usize }
        }
    }

    #[inline]
    fn kind(self) -> ValueKind {
        let [kind] = self.array(KIND_AT);
        match kind & !LONG_FORM {
            0 => ValueKind::Plain,
            1 => ValueKind::Raw,
            2 => ValueKind::Integer,
            3 => ValueKind::Shared,
            4 => ValueKind::PackedHash,
            5 => ValueKind::HashTable,
            6 => ValueKind::PackedList,
            7 => ValueKind::LargeList,
            10 => ValueKind::PackedSorted,
            11 => ValueKind::Sorted,
            13 => ValueKind::IntegerSet,
            14 => ValueKind::PackedSet,
            15 => ValueKind::SetTable,
            16 => ValueKind::Stream,
            other => unreachable!("an item of kind {other} was never written"),
        }
    }

    fn table_pointer(self) -> *mut Table {
        let shape = self.shape();
        let address = u64::from_ne_bytes(self.array(shape.data_at() + shape.key_len));
        core::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Returns the table of an item whose kind is `HashTable` or `SetTable`.
    fn table(self) -> &'a Table {
        // SAFETY: the item owns the table, and is not changed during `'a`.
        unsafe { &*self.table_pointer() }
    }

    fn sorted_pointer(self) -> *mut SortedSet {
        let shape = self.shape();
        let address = u64::from_ne_bytes(self.array(shape.data_at() + shape.key_len));
        core::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Returns the sorted set of an item whose kind is `Sorted`.
    fn sorted(self) -> &'a SortedSet {
        // SAFETY: the item owns the set, and is not changed during `'a`.
        unsafe { &*self.sorted_pointer() }
    }

    fn shared_pointer(self) -> *const Vec<u8> {
        let shape = self.shape();
        let address = u64::from_ne_bytes(self.array(shape.data_at() + shape.key_len));
        core::ptr::with_exposed_provenance(address as usize)
    }

    #[inline(always)]
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        // SAFETY: callers read header fields, or the eight value bytes of an item whose kind says so.
        unsafe { self.block.as_ptr().add(at).cast::<[u8; N]>().read() }
    }

    #[inline(always)]
    fn slice(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers take `at` and `len` from this item's own shape, all of it initialised; the
        // item lives unchanged during `'a`.
        unsafe { core::slice::from_raw_parts(self.block.as_ptr().add(at), len) }
    }
}

/// A large value; [`SharedValue::to_arc`] keeps it beyond the slot's lock.
#[derive(Clone, Copy)]
pub struct SharedValue<'a> {
    vec: *const Vec<u8>,
    item: PhantomData<&'a Item>,
}

impl<'a> SharedValue<'a> {
    pub fn bytes(self) -> &'a [u8] {
        self.vec().as_slice()
    }

    pub fn to_arc(self) -> Arc<Vec<u8>> {
        // SAFETY: the pointer is from `Arc::into_raw`, and the item's own count keeps it alive
        // during `'a`.
        unsafe {
            Arc::increment_strong_count(self.vec);
            Arc::from_raw(self.vec)
        }
    }

    fn block_bytes(self) -> usize {
        block_bytes(self.vec().capacity())
    }

    fn vec(self) -> &'a Vec<u8> {
        // SAFETY: as in `to_arc`; nobody changes it while the slot is borrowed for reading.
        unsafe { &*self.vec }
    }
}

/// Returns the number of bytes that `value` takes inside the block.
fn stored_len(value: &ItemValue<'_>) -> usize {
    match value {
        ItemValue::Plain(bytes)
        | ItemValue::Raw(bytes)
        | ItemValue::PackedHash(bytes)
        | ItemValue::PackedList(bytes) => bytes.len(),
        ItemValue::Integer(_)
        | ItemValue::Shared(_)
        | ItemValue::HashTable(_)
        | ItemValue::LargeList(_) => size_of::<u64>(),
        ItemValue::PackedSorted(row) => row.len(),
        ItemValue::Sorted(_) => size_of::<u64>(),
        ItemValue::IntegerSet(row) | ItemValue::PackedSet(row) => row.len(),
        ItemValue::SetTable(_) | ItemValue::Stream(_) => size_of::<u64>(),
    }
}

fn long_bit(shape: BlockLengths) -> u8 {
    if shape.is_long() { LONG_FORM } else { 0 }
}

#[expect(clippy::cast_possible_truncation, reason = "`new` asserts that lengths fit 32 bits")]
fn low_u32(len: usize) -> u32 {
    len as u32
}

#[cfg(test)]
mod tests;
