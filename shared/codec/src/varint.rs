//! Variable-length integers (ULEB128), plain and zigzag, as parquet-format and Thrift write them.

use crate::Damage;

/// Reads a number and steps over it.
#[inline]
pub(crate) fn read(bytes: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Damage("ends within a number"))?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            break;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Damage("a number of more than 64 bits"))
}

/// Reads a zigzag number and steps over it.
pub(crate) fn read_signed(bytes: &mut &[u8]) -> Result<i64, Damage> {
    let raw = read(bytes)?;
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

/// Appends a number.
pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a zigzag number.
pub(crate) fn write_signed(value: i64, out: &mut Vec<u8>) {
    write(((value << 1) ^ (value >> 63)) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write(value, &mut out);
            let mut bytes = &out[..];
            assert_eq!((read(&mut bytes), bytes.len()), (Ok(value), 0));
            let signed = value as i64;
            let mut out = Vec::new();
            write_signed(signed, &mut out);
            assert_eq!(read_signed(&mut &out[..]), Ok(signed));
        }
    }

    #[test]
    fn what_is_no_number_is_damage() {
        assert_eq!(read(&mut &[][..]), Err(Damage("ends within a number")));
        assert_eq!(read(&mut &[0x80; 9][..]), Err(Damage("ends within a number")));
        assert_eq!(read(&mut &[0xff; 11][..]), Err(Damage("a number of more than 64 bits")));
        let mut two_bits_too_many = [0xff; 10];
        two_bits_too_many[9] = 2;
        assert_eq!(read(&mut &two_bits_too_many[..]), Err(Damage("a number of more than 64 bits")));
    }
}
