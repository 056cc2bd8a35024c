//! jsonb on disk: building it, its order and its text.
//!
//! ```text
//! container: header u32 (count of elements or pairs | flags)
//!            JEntry u32 for each element, or for each key and then each value
//!            their data, one after the other
//! JEntry:    1 bit: 28 bits are an end position (every 32nd entry), else a length
//!            3 bits: string, numeric, false, true, null, container
//! ```
//!
//! The data of a numeric (a varlena with a full header) and of a container begin at a multiple
//! of 4; the padding before them counts as theirs. A scalar at the top is an array of one
//! element with a flag. The keys of an object are ordered by length, then by bytes.
//!
//! PostgreSQL: `src/include/utils/jsonb.h`, `src/backend/utils/adt/jsonb_util.c`
//! (`convertToJsonb`, `uniqueifyJsonbObject`, `compareJsonbContainers`).

use super::{numeric, varlena};
use crate::layout::align_up;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// The largest length or position that a `JEntry` can hold (`JENTRY_OFFLENMASK`).
pub const MAX_LENGTH: usize = 0x0fff_ffff;

const TYPE_MASK: u32 = 0x7000_0000;
const IS_STRING: u32 = 0;
const IS_NUMERIC: u32 = 0x1000_0000;
const IS_FALSE: u32 = 0x2000_0000;
const IS_TRUE: u32 = 0x3000_0000;
const IS_NULL: u32 = 0x4000_0000;
const IS_CONTAINER: u32 = 0x5000_0000;
const HAS_POSITION: u32 = 0x8000_0000;
/// Every so many entries one holds a position (`JB_OFFSET_STRIDE`).
const STRIDE: usize = 32;

const COUNT_MASK: u32 = 0x0fff_ffff;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

/// In the server an array of elements grows by doubling until it cannot be allocated.
const MAX_ELEMENTS: usize = 1 << 24;
const REFUSED_ELEMENTS_BYTES: u64 = 32 << 25;
/// The same for the pairs of an object.
const MAX_PAIRS: usize = 1 << 23;
const REFUSED_PAIRS_BYTES: u64 = 72 << 24;

/// A document that jsonb cannot hold; the texts are the server's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitError {
    /// A key or string is too long.
    #[error("string too long to represent as jsonb string")]
    String,
    /// The elements of an array are too large together.
    #[error("total size of jsonb array elements exceeds the maximum of {MAX_LENGTH} bytes")]
    ArraySize,
    /// The keys and values of an object are too large together.
    #[error("total size of jsonb object elements exceeds the maximum of {MAX_LENGTH} bytes")]
    ObjectSize,
    /// Too many elements or pairs: the server fails to allocate them.
    #[error("invalid memory alloc request size {0}")]
    Allocation(u64),
}

/// A value of the document under construction.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    /// In `bytes`, or for containers the first child in `children`.
    pos: u32,
    /// Bytes, or for containers the count of children.
    len: u32,
    /// Its place among its siblings; later duplicates of a key win.
    order: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Null,
    False,
    True,
    String,
    Numeric,
    Array,
    Object,
}

/// A container whose end has not been seen.
#[derive(Clone, Copy, Debug)]
struct Open {
    kind: Kind,
    /// Its first child in `open_children`.
    base: usize,
}

/// A container being written.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: Node,
    /// The next child.
    next: u32,
    /// Where the container's own data, padding included, begins in the output.
    base: usize,
    /// Where the next child's `JEntry` goes.
    entry: usize,
    /// Data of the children so far.
    total: usize,
}

/// Builds one jsonb value after another from the events of a JSON parser.
///
/// Values come in document order; within an object a key before each value. The builder keeps
/// its storage from value to value.
#[derive(Debug, Default)]
pub struct Builder {
    bytes: Vec<u8>,
    /// Children of closed containers.
    children: Vec<Node>,
    /// Children of the containers still open, outermost first.
    open_children: Vec<Node>,
    open: Vec<Open>,
    frames: Vec<Frame>,
    out: Vec<u8>,
}

impl Builder {
    /// A builder without storage.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Forgets the value in hand.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.children.clear();
        self.open_children.clear();
        self.open.clear();
    }

    #[inline]
    fn push(&mut self, kind: Kind, pos: usize, len: usize) -> Result<(), LimitError> {
        let base = self.open.last().map_or(0, |open| open.base);
        let order = self.open_children.len() - base;
        if order >= MAX_ELEMENTS {
            return Err(self.too_many());
        }
        self.open_children.push(Node {
            kind,
            pos: pos as u32,
            len: len as u32,
            order: order as u32,
        });
        Ok(())
    }

    #[cold]
    fn too_many(&self) -> LimitError {
        // 2^24 children are 2^23 pairs.
        debug_assert_eq!(MAX_PAIRS * 2, MAX_ELEMENTS);
        match self.open.last() {
            Some(Open {
                kind: Kind::Object, ..
            }) => LimitError::Allocation(REFUSED_PAIRS_BYTES),
            _ => LimitError::Allocation(REFUSED_ELEMENTS_BYTES),
        }
    }

    /// null
    #[inline]
    pub fn null(&mut self) -> Result<(), LimitError> {
        self.push(Kind::Null, 0, 0)
    }

    /// true or false
    #[inline]
    pub fn bool(&mut self, value: bool) -> Result<(), LimitError> {
        self.push(if value { Kind::True } else { Kind::False }, 0, 0)
    }

    /// A string, or the key of an object; without escapes.
    #[inline]
    pub fn string(&mut self, value: &[u8]) -> Result<(), LimitError> {
        if value.len() > MAX_LENGTH {
            return Err(LimitError::String);
        }
        let pos = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.push(Kind::String, pos, value.len())
    }

    /// A number: the payload of a numeric.
    #[inline]
    pub fn numeric(&mut self, payload: &[u8]) -> Result<(), LimitError> {
        let pos = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.push(Kind::Numeric, pos, payload.len())
    }

    /// `[`
    pub fn begin_array(&mut self) {
        self.open.push(Open {
            kind: Kind::Array,
            base: self.open_children.len(),
        });
    }

    /// `{`
    pub fn begin_object(&mut self) {
        self.open.push(Open {
            kind: Kind::Object,
            base: self.open_children.len(),
        });
    }

    /// `]` or `}`: closes the container opened last.
    ///
    /// # Panics
    /// When none is open.
    pub fn end(&mut self) -> Result<(), LimitError> {
        let Open { kind, base } = self.open.pop().expect("a container is open");
        if kind == Kind::Object {
            let kept = sort_pairs(&self.bytes, &mut self.open_children[base..]);
            self.open_children.truncate(base + kept);
        }
        let pos = self.children.len();
        self.children.extend_from_slice(&self.open_children[base..]);
        let len = self.open_children.len() - base;
        self.open_children.truncate(base);
        self.push(kind, pos, len)
    }

    /// The payload of the jsonb, without a varlena header. The builder is then empty again.
    ///
    /// # Panics
    /// When the value is not complete.
    pub fn finish(&mut self) -> Result<&[u8], LimitError> {
        assert!(
            self.open.is_empty() && self.open_children.len() == 1,
            "one complete value was expected"
        );
        self.out.clear();
        let root = self.open_children[0];
        let written = if matches!(root.kind, Kind::Array | Kind::Object) {
            self.write(root, 0)
        } else {
            self.children.push(root);
            let array = Node {
                kind: Kind::Array,
                pos: self.children.len() as u32 - 1,
                len: 1,
                order: 0,
            };
            self.write(array, SCALAR)
        };
        self.clear();
        written.map(|()| self.out.as_slice())
    }

    /// Writes a container with all it holds.
    fn write(&mut self, root: Node, flag: u32) -> Result<(), LimitError> {
        self.frames.clear();
        self.begin_frame(root, flag);
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return Ok(());
            };
            let entry;
            if frame.next == frame.node.len {
                let size = self.out.len() - frame.base;
                check(frame.node.kind, size)?;
                self.frames.pop();
                entry = IS_CONTAINER | size as u32;
            } else {
                let child = self.children[child_position(frame)];
                let data = &self.bytes[..];
                match child.kind {
                    Kind::Null => entry = IS_NULL,
                    Kind::False => entry = IS_FALSE,
                    Kind::True => entry = IS_TRUE,
                    Kind::String => {
                        let (from, len) = (child.pos as usize, child.len as usize);
                        self.out.extend_from_slice(&data[from..from + len]);
                        entry = IS_STRING | child.len;
                    }
                    Kind::Numeric => {
                        let (from, len) = (child.pos as usize, child.len as usize);
                        let start = self.out.len();
                        self.out.resize(align_up(start, 4), 0);
                        self.out
                            .extend_from_slice(&varlena::full_header(len + varlena::HEADER_BYTES));
                        self.out.extend_from_slice(&data[from..from + len]);
                        entry = IS_NUMERIC | (self.out.len() - start) as u32;
                    }
                    Kind::Array | Kind::Object => {
                        self.begin_frame(child, 0);
                        continue;
                    }
                }
            }
            // The root's own entry is not stored.
            let Some(parent) = self.frames.last_mut() else {
                return Ok(());
            };
            parent.total += (entry & MAX_LENGTH as u32) as usize;
            check(parent.node.kind, parent.total)?;
            let entry = if (parent.next as usize).is_multiple_of(STRIDE) {
                entry & TYPE_MASK | parent.total as u32 | HAS_POSITION
            } else {
                entry
            };
            self.out[parent.entry..parent.entry + 4].copy_from_slice(&entry.to_le_bytes());
            parent.entry += 4;
            parent.next += 1;
        }
    }

    /// Writes a container's padding and header and room for its entries.
    fn begin_frame(&mut self, node: Node, flag: u32) {
        let base = self.out.len();
        self.out.resize(align_up(base, 4), 0);
        let header = flag
            | match node.kind {
                Kind::Object => OBJECT | (node.len / 2),
                _ => ARRAY | node.len,
            };
        self.out.extend_from_slice(&header.to_le_bytes());
        let entry = self.out.len();
        self.out.resize(entry + node.len as usize * 4, 0);
        self.frames.push(Frame {
            node,
            next: 0,
            base,
            entry,
            total: 0,
        });
    }
}

/// The place in `children` of the frame's next child: an object's keys come first.
#[inline]
fn child_position(frame: &Frame) -> usize {
    let first = frame.node.pos as usize;
    let next = frame.next as usize;
    let pairs = frame.node.len as usize / 2;
    first
        + match frame.node.kind {
            Kind::Object if next < pairs => next * 2,
            Kind::Object => (next - pairs) * 2 + 1,
            _ => next,
        }
}

#[inline]
fn check(kind: Kind, size: usize) -> Result<(), LimitError> {
    if size <= MAX_LENGTH {
        Ok(())
    } else if kind == Kind::Object {
        Err(LimitError::ObjectSize)
    } else {
        Err(LimitError::ArraySize)
    }
}

/// Orders keys and values by key, the last of equal keys alone staying; returns how many nodes
/// stay.
fn sort_pairs(bytes: &[u8], nodes: &mut [Node]) -> usize {
    let (pairs, rest) = nodes.as_chunks_mut::<2>();
    debug_assert!(rest.is_empty(), "a key without a value");
    let key = |pair: &[Node; 2]| &bytes[pair[0].pos as usize..][..pair[0].len as usize];
    let compare = |a: &[Node; 2], b: &[Node; 2]| compare_keys(key(a), key(b));
    if pairs
        .windows(2)
        .all(|w| compare(&w[0], &w[1]) == Ordering::Less)
    {
        return pairs.len() * 2;
    }
    pairs.sort_unstable_by(|a, b| compare(a, b).then(b[0].order.cmp(&a[0].order)));
    let mut kept = 1;
    for i in 1..pairs.len() {
        if compare(&pairs[i], &pairs[kept - 1]) != Ordering::Equal {
            pairs[kept] = pairs[i];
            kept += 1;
        }
    }
    kept * 2
}

/// The order of keys in an object: by length, then by bytes.
#[inline]
fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A container of a stored jsonb; reading never goes beyond its bytes.
#[derive(Clone, Copy, Debug)]
struct Container<'a> {
    header: u32,
    /// The entries.
    entries: &'a [u8],
    data: &'a [u8],
}

impl<'a> Container<'a> {
    fn read(bytes: &'a [u8]) -> Container<'a> {
        let header = word(bytes, 0);
        let count = (header & COUNT_MASK) as usize;
        let entries = if header & OBJECT != 0 {
            count * 2
        } else {
            count
        };
        let rest = bytes.get(4..).unwrap_or_default();
        let (entries, data) = rest.split_at(rest.len().min(entries * 4));
        Container {
            header,
            entries,
            data,
        }
    }

    fn count(&self) -> u32 {
        self.header & COUNT_MASK
    }

    fn is_object(&self) -> bool {
        self.header & OBJECT != 0
    }

    fn is_scalar(&self) -> bool {
        self.header & SCALAR != 0
    }

    /// How many entries there really are.
    fn len(&self) -> usize {
        self.entries.len() / 4
    }

    /// The value that lies from `start` in the data, and where the next one starts.
    fn value(&self, index: usize, start: usize) -> (Value<'a>, usize) {
        let entry = word(self.entries, index * 4);
        let length = (entry & COUNT_MASK) as usize;
        let end = if entry & HAS_POSITION != 0 {
            length
        } else {
            start.saturating_add(length)
        };
        let bytes = self.data.get(start..end).unwrap_or_default();
        // The padding is counted from the container's own start, which is aligned.
        let padding = align_up(start, 4) - start;
        let aligned = bytes.get(padding..).unwrap_or_default();
        let value = match entry & TYPE_MASK {
            IS_NUMERIC => Value::Numeric(aligned.get(varlena::HEADER_BYTES..).unwrap_or_default()),
            IS_FALSE => Value::Bool(false),
            IS_TRUE => Value::Bool(true),
            IS_NULL => Value::Null,
            IS_CONTAINER => Value::Container(Container::read(aligned)),
            _ => Value::String(bytes),
        };
        (value, end)
    }

    /// Where the data of entry `index` starts.
    fn start(&self, index: usize) -> usize {
        let mut sum = 0usize;
        for i in (0..index).rev() {
            let entry = word(self.entries, i * 4);
            sum = sum.saturating_add((entry & COUNT_MASK) as usize);
            if entry & HAS_POSITION != 0 {
                break;
            }
        }
        sum
    }
}

fn word(bytes: &[u8], pos: usize) -> u32 {
    bytes
        .get(pos..pos + 4)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Null,
    String(&'a [u8]),
    Numeric(&'a [u8]),
    Bool(bool),
    Container(Container<'a>),
}

impl Value<'_> {
    /// The order of types (`jbvType`): null, string, number, boolean, array, object.
    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::String(_) => 1,
            Value::Numeric(_) => 2,
            Value::Bool(_) => 3,
            Value::Container(c) if c.is_object() => 5,
            Value::Container(_) => 4,
        }
    }
}

/// What [`Walk`] meets, in the order of the server's iterator.
enum Event<'a> {
    Begin(Container<'a>),
    Key(&'a [u8]),
    Value(Value<'a>),
    End { object: bool },
}

/// Goes over a stored document without recursion.
struct Walk<'a> {
    root: Option<Container<'a>>,
    stack: Vec<Step<'a>>,
}

struct Step<'a> {
    container: Container<'a>,
    next: usize,
    /// An object's value is next, not a key.
    at_value: bool,
    key_start: usize,
    value_start: usize,
}

impl<'a> Walk<'a> {
    fn new(payload: &'a [u8]) -> Walk<'a> {
        Walk {
            root: Some(Container::read(payload)),
            stack: Vec::new(),
        }
    }

    fn begin(&mut self, container: Container<'a>) -> Event<'a> {
        let value_start = if container.is_object() {
            container.start(container.len() / 2)
        } else {
            0
        };
        self.stack.push(Step {
            container,
            next: 0,
            at_value: false,
            key_start: 0,
            value_start,
        });
        Event::Begin(container)
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(root) = self.root.take() {
            return Some(self.begin(root));
        }
        let step = self.stack.last_mut()?;
        let container = step.container;
        let object = container.is_object();
        let items = if object {
            container.len() / 2
        } else {
            container.len()
        };
        if step.next >= items {
            self.stack.pop();
            return Some(Event::End { object });
        }
        if object && !step.at_value {
            let (key, end) = container.value(step.next, step.key_start);
            step.key_start = end;
            step.at_value = true;
            return Some(Event::Key(match key {
                Value::String(key) => key,
                _ => &[],
            }));
        }
        let index = if object { step.next + items } else { step.next };
        let (value, end) = container.value(index, step.value_start);
        step.value_start = end;
        step.at_value = false;
        step.next += 1;
        Some(match value {
            Value::Container(inner) => self.begin(inner),
            scalar => Event::Value(scalar),
        })
    }
}

/// The order of the btree on jsonb, of two payloads (without varlena headers).
///
/// Strings and keys compare under the database's default collation, which `strings` is.
///
/// PostgreSQL: `compareJsonbContainers`; the quirk that an empty array at the top is less than
/// null is the server's.
pub fn compare(
    a_payload: &[u8],
    b_payload: &[u8],
    mut strings: impl FnMut(&[u8], &[u8]) -> Ordering,
) -> Ordering {
    let (mut a, mut b) = (Walk::new(a_payload), Walk::new(b_payload));
    loop {
        let (x, y) = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            // Both cannot end at different times unless damaged.
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => (x, y),
        };
        let order = match (&x, &y) {
            (Event::End { .. }, Event::End { .. }) => Ordering::Equal,
            (Event::Key(x), Event::Key(y)) => strings(x, y),
            (Event::Begin(x), Event::Begin(y)) => compare_begins(x, y),
            (Event::Value(x), Event::Value(y)) => match (x, y) {
                (Value::String(x), Value::String(y)) => strings(x, y),
                (Value::Numeric(x), Value::Numeric(y)) => numeric::compare(x, y),
                (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
                _ => x.rank().cmp(&y.rank()),
            },
            _ => event_rank(&x).cmp(&event_rank(&y)),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_begins(a: &Container<'_>, b: &Container<'_>) -> Ordering {
    if a.is_object() != b.is_object() {
        return a.is_object().cmp(&b.is_object());
    }
    let mut order = b.is_scalar().cmp(&a.is_scalar());
    if a.count() != b.count() {
        order = a.count().cmp(&b.count());
    }
    order
}

fn event_rank(event: &Event<'_>) -> u8 {
    match event {
        Event::Begin(c) if c.is_object() => 5,
        Event::Begin(_) => 4,
        Event::Key(_) => 1,
        Event::Value(v) => v.rank(),
        Event::End { object } => 4 + u8::from(*object),
    }
}

/// The text of a payload, as jsonb's output function gives it.
///
/// PostgreSQL: `src/backend/utils/adt/jsonb.c`, `JsonbToCString`.
pub fn to_text(payload: &[u8]) -> String {
    let mut out = String::new();
    let mut first = true;
    let mut bare = false;
    for event in Walk::new(payload) {
        let ends = matches!(event, Event::End { .. });
        if !first && !ends {
            out.push_str(", ");
        }
        first = false;
        match event {
            Event::Begin(container) if container.is_scalar() => {
                bare = true;
                first = true;
            }
            Event::Begin(container) => {
                out.push(if container.is_object() { '{' } else { '[' });
                first = true;
            }
            Event::Key(key) => {
                push_quoted(&mut out, key);
                out.push_str(": ");
                first = true;
            }
            Event::Value(value) => match value {
                Value::String(string) => push_quoted(&mut out, string),
                Value::Numeric(payload) => out.push_str(&numeric::to_text(payload)),
                Value::Bool(true) => out.push_str("true"),
                Value::Bool(false) => out.push_str("false"),
                Value::Null | Value::Container(_) => out.push_str("null"),
            },
            Event::End { .. } if bare => {}
            Event::End { object } => out.push(if object { '}' } else { ']' }),
        }
    }
    out
}

/// PostgreSQL: `src/backend/utils/adt/json.c`, `escape_json`.
fn push_quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(build: impl Fn(&mut Builder) -> Result<(), LimitError>) -> Vec<u8> {
        let mut builder = Builder::new();
        build(&mut builder).unwrap();
        builder.finish().unwrap().to_vec()
    }

    fn one() -> Vec<u8> {
        [&[0x00, 0x80][..], &[1, 0]].concat()
    }

    #[test]
    fn a_nested_container_is_aligned_and_its_padding_is_its_own() {
        let stored = built(|b| {
            b.begin_array();
            b.string(b"a")?;
            b.begin_array();
            b.numeric(&one())?;
            b.end()?;
            b.end()
        });
        #[rustfmt::skip]
        let expected = [
            2, 0, 0, 0x40,
            1, 0, 0, 0x80,
            19, 0, 0, 0x50, // 3 of padding, 4 of header, 4 of entry, 8 of data
            b'a', 0, 0, 0,
            1, 0, 0, 0x40,
            8, 0, 0, 0x90,
            0x20, 0, 0, 0, 0, 0x80, 1, 0,
        ];
        assert_eq!(stored, expected);
        assert_eq!(to_text(&stored), "[\"a\", [1]]");
    }

    #[test]
    fn the_last_of_equal_keys_stays_even_when_keys_are_empty() {
        let stored = built(|b| {
            b.begin_object();
            for value in [true, false, true, false] {
                b.string(b"")?;
                b.bool(value)?;
            }
            b.end()
        });
        assert_eq!(to_text(&stored), "{\"\": false}");
    }

    #[test]
    fn types_order_before_values_and_containers_by_their_count() {
        let array = |n: usize| {
            move |b: &mut Builder| {
                b.begin_array();
                for _ in 0..n {
                    b.null()?;
                }
                b.end()
            }
        };
        let in_order = [
            // The server's own anomaly: an empty array at the top is less than null.
            built(array(0)),
            built(Builder::null),
            built(|b| b.string(b"a")),
            built(|b| b.string(b"b")),
            built(|b| b.numeric(&one())),
            built(|b| b.bool(false)),
            built(|b| b.bool(true)),
            built(array(1)),
            built(array(2)),
            built(|b| {
                b.begin_object();
                b.end()
            }),
        ];
        for (i, a) in in_order.iter().enumerate() {
            for (j, b) in in_order.iter().enumerate() {
                let order = compare(a, b, <[u8]>::cmp);
                assert_eq!(order, i.cmp(&j), "{} {}", to_text(a), to_text(b));
            }
        }
    }

    #[test]
    fn what_the_server_cannot_allocate_is_refused() {
        let mut builder = Builder::new();
        builder.begin_array();
        for _ in 0..MAX_ELEMENTS {
            builder.null().unwrap();
        }
        assert_eq!(builder.null(), Err(LimitError::Allocation(1_073_741_824)));
        builder.clear();
        builder.begin_object();
        for _ in 0..MAX_PAIRS * 2 {
            builder.string(b"").unwrap();
        }
        assert_eq!(
            builder.string(b""),
            Err(LimitError::Allocation(1_207_959_552))
        );
    }

    #[test]
    fn data_beyond_28_bits_of_length_is_refused() {
        let mut builder = Builder::new();
        let half = vec![b'x'; MAX_LENGTH / 2 + 1];
        builder.begin_array();
        builder.string(&half).unwrap();
        builder.string(&half).unwrap();
        builder.end().unwrap();
        assert_eq!(builder.finish(), Err(LimitError::ArraySize));
        builder.begin_object();
        builder.string(b"k").unwrap();
        builder.string(&vec![b'x'; MAX_LENGTH]).unwrap();
        builder.end().unwrap();
        assert_eq!(builder.finish(), Err(LimitError::ObjectSize));
        assert_eq!(
            builder.string(&vec![b'x'; MAX_LENGTH + 1]),
            Err(LimitError::String)
        );
    }
}
