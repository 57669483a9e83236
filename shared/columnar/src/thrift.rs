//! Enough of Thrift's compact protocol to look at bytes before the Parquet crate trusts them.
//!
//! The Parquet crate sizes vectors by the counts that a file claims, so one flipped bit could ask for gigabytes before
//! the damage shows. Everything is therefore walked here first: after [`struct_length`] every count is backed by bytes.
//! Page headers and offset indexes are read here as well, because their offsets are needed, which the crate hides.

/// Why Thrift bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThriftError {
    /// The bytes end too early; with more of them it may succeed.
    Short,
    /// No number of bytes would make this right.
    Bad(&'static str),
}

/// The type of a field or of a list's elements (compact protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    True,
    False,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn from_nibble(nibble: u8) -> Result<Self, ThriftError> {
        Ok(match nibble {
            1 => Self::True,
            2 => Self::False,
            3 => Self::I8,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(ThriftError::Bad("unknown Thrift type")),
        })
    }
}

/// Parquet's own structures nest 5 deep; deeper ones are damage.
const MAX_DEPTH: usize = 32;

/// A position in Thrift bytes.
#[derive(Debug, Clone)]
pub(crate) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftError::Bad("a number of more than 64 bits"))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, ThriftError> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ThriftError> {
        i32::try_from(self.i64()?).map_err(|_| ThriftError::Bad("a number of more than 32 bits"))
    }

    /// A count or size that may not be negative.
    pub(crate) fn size(&mut self) -> Result<u32, ThriftError> {
        u32::try_from(self.i64()?).map_err(|_| ThriftError::Bad("a negative or too large size"))
    }

    fn advance(&mut self, length: u64) -> Result<(), ThriftError> {
        let left = (self.bytes.len() - self.at) as u64;
        if length > left {
            return Err(ThriftError::Short);
        }
        self.at += length as usize;
        Ok(())
    }

    /// The next field of a struct, or `None` at its end. `last` is the id of the field before, 0 at the start.
    pub(crate) fn field(&mut self, last: &mut i16) -> Result<Option<(i16, Kind)>, ThriftError> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let id = match byte >> 4 {
            0 => i16::try_from(self.i64()?).map_err(|_| ThriftError::Bad("a field id of more than 16 bits"))?,
            delta => last.checked_add(i16::from(delta)).ok_or(ThriftError::Bad("a field id of more than 16 bits"))?,
        };
        *last = id;
        Ok(Some((id, Kind::from_nibble(byte & 0x0f)?)))
    }

    /// The header of a list: how many elements of which kind. Each takes at least a byte, so a larger count is damage
    /// (or the bytes are short).
    pub(crate) fn list(&mut self) -> Result<(usize, Kind), ThriftError> {
        let byte = self.byte()?;
        let kind = Kind::from_nibble(byte & 0x0f)?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(ThriftError::Short);
        }
        Ok((count as usize, kind))
    }

    /// Steps over the value of a field.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<(), ThriftError> {
        match kind {
            Kind::True | Kind::False => Ok(()),
            other => self.skip_value(other, 0),
        }
    }

    fn skip_value(&mut self, kind: Kind, depth: usize) -> Result<(), ThriftError> {
        if depth > MAX_DEPTH {
            return Err(ThriftError::Bad("structures nested too deep"));
        }
        match kind {
            // As an element of a list or map a boolean takes a byte.
            Kind::True | Kind::False | Kind::I8 => self.advance(1),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(|_| ()),
            Kind::Double => self.advance(8),
            Kind::Uuid => self.advance(16),
            Kind::Binary => {
                let length = self.varint()?;
                self.advance(length)
            }
            Kind::List => {
                let (count, element) = self.list()?;
                for _ in 0..count {
                    self.skip_value(element, depth + 1)?;
                }
                Ok(())
            }
            Kind::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::from_nibble(kinds >> 4)?, Kind::from_nibble(kinds & 0x0f)?);
                for _ in 0..count {
                    self.skip_value(key, depth + 1)?;
                    self.skip_value(value, depth + 1)?;
                }
                Ok(())
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some((_, field)) = self.field(&mut last)? {
                    match field {
                        Kind::True | Kind::False => {}
                        other => self.skip_value(other, depth + 1)?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// Walks one struct and gives its length in bytes.
pub(crate) fn struct_length(bytes: &[u8]) -> Result<usize, ThriftError> {
    let mut compact = Compact::new(bytes);
    compact.skip_value(Kind::Struct, 0)?;
    Ok(compact.position())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths() {
        assert_eq!(Compact::new(&[0x02]).i64(), Ok(1));
        assert_eq!(Compact::new(&[0x01]).i64(), Ok(-1));
        assert_eq!(Compact::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).i64(), Ok(i64::MIN));
        let eleven = [0xff; 11];
        assert_eq!(Compact::new(&eleven).i64(), Err(ThriftError::Bad("a number of more than 64 bits")));
        assert_eq!(Compact::new(&[0x80]).i64(), Err(ThriftError::Short));
        assert_eq!(Compact::new(&[0x01]).size(), Err(ThriftError::Bad("a negative or too large size")));
    }

    #[test]
    fn counts_must_be_backed_by_bytes() {
        // Field 1 is a list of 2^31 - 1 structs, and then nothing.
        let huge = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
        assert_eq!(struct_length(&huge), Err(ThriftError::Short));
        // Field 1 is a string of 3 bytes, field 2 true, field 3 a list of two booleans.
        let small = [0x18, 0x03, b'a', b'b', b'c', 0x11, 0x19, 0x21, 0x01, 0x02, 0x00];
        assert_eq!(struct_length(&small), Ok(small.len()));
        for cut in 0..small.len() {
            assert_eq!(struct_length(&small[..cut]), Err(ThriftError::Short), "{cut}");
        }
    }

    #[test]
    fn endless_nesting_is_damage() {
        let nested = [0x1c; 1000];
        assert_eq!(struct_length(&nested), Err(ThriftError::Bad("structures nested too deep")));
    }
}
