//! Memory to read into: page-aligned, kept from one chunk to the next.

use memmap2::MmapMut;

/// Bytes that grow when asked and never shrink. Fresh ones are zero.
#[derive(Debug, Default)]
pub struct Buffer {
    map: Option<MmapMut>,
}

impl Buffer {
    /// All bytes there are.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// The same, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }

    /// Makes room for `size_bytes`, keeping what is there.
    ///
    /// # Panics
    /// When the system has no memory left.
    pub fn reserve(&mut self, size_bytes: usize) {
        let have = self.bytes().len();
        if size_bytes <= have {
            return;
        }
        // A record grows a chunk by degrees: make more room than asked.
        let size_bytes = (size_bytes + size_bytes / 4).next_multiple_of(64 << 10);
        let mut map = MmapMut::map_anon(size_bytes).expect("out of memory");
        map[..have].copy_from_slice(self.bytes());
        self.map = Some(map);
    }
}
