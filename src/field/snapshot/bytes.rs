//! Values as bytes: small numbers in few of them, texts with their length, everything in one order.
//!
//! What is read back was written by this program and checked by whoever kept it, so a reading that does not come out
//! even (`None`) only says that it is not what it claims to be. It never panics and takes no more memory than there
//! are bytes.

use std::sync::Arc;

use crate::protocol::{ConflictId, UnitId};

/// A value that is written to a snapshot and read back from it as it was.
pub(super) trait Stored: Sized {
    /// Writes it behind what is there.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it off the front.
    fn take(from: &mut Source<'_>) -> Option<Self>;
}

/// Bytes yet to be read.
pub(super) struct Source<'a>(pub &'a [u8]);

impl<'a> Source<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (own, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(own)
    }

    /// A text, as it stands there.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::take(self)?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

/// Writes a text with its length.
pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    text.len().put(out);
    out.extend_from_slice(text.as_bytes());
}

/// Reads values until there is no more; `None` where the last one is not whole.
pub(super) fn take_all<T: Stored>(bytes: &[u8]) -> Option<Vec<T>> {
    let mut from = Source(bytes);
    let mut all = Vec::new();
    while !from.is_empty() {
        all.push(T::take(&mut from)?);
    }
    Some(all)
}

impl Stored for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let (byte, rest) = from.0.split_first()?;
        from.0 = rest;
        Some(*byte)
    }
}

impl Stored for u64 {
    /// Seven bits a byte, the low ones first; the eighth says that there are more.
    fn put(&self, out: &mut Vec<u8>) {
        let mut left = *self;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = u8::take(from)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

impl Stored for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        u64::take(from)?.try_into().ok()
    }
}

impl Stored for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        u64::take(from)?.try_into().ok()
    }
}

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Stored for f64 {
    /// Bit by bit.
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        from.bytes(8)?.try_into().ok().map(Self::from_le_bytes)
    }
}

/// Eight bytes as they are: for hashes, which are no small numbers.
#[derive(Clone, Copy)]
pub(super) struct Hash64(pub u64);

impl Stored for Hash64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        from.bytes(8)?.try_into().ok().map(|bytes| Self(u64::from_le_bytes(bytes)))
    }
}

macro_rules! texts {
    ($($text:ty),+) => {
        $(impl Stored for $text {
            fn put(&self, out: &mut Vec<u8>) {
                put_text(self, out);
            }

            fn take(from: &mut Source<'_>) -> Option<Self> {
                from.text().map(Self::from)
            }
        })+
    };
}
texts!(Box<str>, Arc<str>);

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        if bool::take(from)? { T::take(from).map(Some) } else { Some(None) }
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        let count = usize::take(from)?;
        // Each value takes a byte at least, so a count that cannot be is told before room is made for it.
        if count > from.0.len() {
            return None;
        }
        let mut values = Self::with_capacity(count);
        for _ in 0..count {
            values.push(T::take(from)?);
        }
        Some(values)
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Source<'_>) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

macro_rules! identifiers {
    ($($id:ident),+) => {
        $(impl Stored for $id {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { epoch, number } = self;
                epoch.put(out);
                number.put(out);
            }

            fn take(from: &mut Source<'_>) -> Option<Self> {
                Some(Self { epoch: u64::take(from)?, number: u32::take(from)? })
            }
        })+
    };
}
identifiers!(UnitId, ConflictId);

/// What is written as its place in the list of all that it can be.
macro_rules! listed {
    ($($listed:ident),+) => {
        $(impl Stored for $listed {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn take(from: &mut Source<'_>) -> Option<Self> {
                $listed::ALL.get(usize::from(u8::take(from)?)).copied()
            }
        })+
    };
}
pub(super) use listed;

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Stored + PartialEq + std::fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        let mut from = Source(&bytes);
        assert_eq!(T::take(&mut from).as_ref(), Some(&value));
        assert!(from.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(T::take(&mut Source(&bytes[..cut])), None, "{value:?} cut at {cut}");
        }
    }

    #[test]
    fn values_come_back_and_none_comes_from_less() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 53, u64::MAX] {
            comes_back(number);
        }
        comes_back(u32::MAX);
        comes_back([true, false].to_vec());
        comes_back(Some(-0.1f64));
        comes_back((Box::<str>::from("Grüße"), None::<u64>));
        comes_back(UnitId::new(7, 1));
    }

    #[test]
    fn what_cannot_be_is_nothing() {
        assert_eq!(u64::take(&mut Source(&[0xff; 10])), None, "more than 64 bits");
        assert_eq!(u32::take(&mut Source(&[0xff, 0xff, 0xff, 0xff, 0x1f])), None);
        assert_eq!(bool::take(&mut Source(&[2])), None);
        assert_eq!(Box::<str>::take(&mut Source(&[2, 0xff, 0xff])), None, "not UTF-8");
        let mut huge = Vec::new();
        u64::MAX.put(&mut huge);
        assert_eq!(Vec::<u64>::take(&mut Source(&huge)), None, "no room is made for what is not there");
        assert_eq!(take_all::<u64>(&[1, 2, 0x80]), None);
        assert_eq!(take_all::<u64>(&[1, 2]), Some(vec![1, 2]));
    }
}
