//! A command's arguments as positions in a buffer, so that parsing a command copies and allocates nothing.

use core::ops::Index;

use resp::Span;

/// A command's arguments, its name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Args<'a> {
        Args { buffer, spans }
    }

    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Returns the number of bytes from the beginning of the first argument to the end of the last.
    #[inline]
    pub fn extent(self) -> usize {
        let [first, .., last] = self.spans else { return 0 };
        (last.start as usize + last.len as usize).saturating_sub(first.start as usize)
    }

    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.buffer))
    }

    /// Returns the argument at `index`, which must exist by the command's arity.
    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        self.spans[index].of(self.buffer)
    }

    /// Returns the arguments from `start` on.
    pub fn from(self, start: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.spans[start..].iter().map(move |span| span.of(self.buffer))
    }

    /// Returns the arguments from `start` on, as arguments of their own.
    pub fn tail(self, start: usize) -> Args<'a> {
        Args { spans: &self.spans[start..], ..self }
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.from(0)
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

/// Arguments that outlive their buffer: of a command queued by MULTI, of an entry of the slow log.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    pub fn new<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        for arg in args {
            let span = Span { start: narrow(owned.bytes.len()), len: narrow(arg.len()) };
            owned.bytes.extend_from_slice(arg);
            owned.spans.push(span);
        }
        owned
    }

    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }

    /// Returns the approximate memory use.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<Span>()
    }
}

fn narrow(len: usize) -> u32 {
    u32::try_from(len).expect("the parser takes no request of 4 GiB")
}
