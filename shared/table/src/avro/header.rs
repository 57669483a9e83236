//! The header of an Avro file ("Object Container Files" of the Avro spec), taken apart and put together again with other metadata.

use std::io::{Chain, Cursor, Read};

const MAGIC: &[u8] = b"Obj\x01";
const MARKER: usize = 16;

/// A file whose header is another: the header in memory, then what follows it.
pub(crate) type Changed<'a> = Chain<Cursor<Vec<u8>>, Cursor<&'a [u8]>>;

/// The same Avro file with other metadata: `change` gets each key with its value and answers the new value, or None to keep it.
///
/// # Errors
/// A sentence when the header is none, or that of `change`.
pub(crate) fn with_metadata(
    file: &[u8],
    mut change: impl FnMut(&[u8], &[u8]) -> Result<Option<Vec<u8>>, String>,
) -> Result<Changed<'_>, String> {
    let (entries, rest) = metadata(file)?;
    let mut header = MAGIC.to_vec();
    put_long(&mut header, entries.len() as i64);
    for (key, value) in entries {
        put_bytes(&mut header, key);
        match change(key, value)? {
            Some(changed) => put_bytes(&mut header, &changed),
            None => put_bytes(&mut header, value),
        }
    }
    put_long(&mut header, 0);
    Ok(Cursor::new(header).chain(Cursor::new(rest)))
}

/// The value of a key of the metadata; None when there is none.
///
/// # Errors
/// A sentence when the header is none.
pub(crate) fn value<'a>(file: &'a [u8], key: &str) -> Result<Option<&'a [u8]>, String> {
    let (entries, _) = metadata(file)?;
    Ok(entries.into_iter().find(|(found, _)| *found == key.as_bytes()).map(|(_, value)| value))
}

type Entries<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The metadata of the header, and what follows it, the sync marker first.
fn metadata(file: &[u8]) -> Result<(Entries<'_>, &[u8]), String> {
    let mut rest = file.strip_prefix(MAGIC).ok_or("is no Avro file")?;
    let entries = header_entries(&mut rest).ok_or("has no whole Avro header")?;
    match rest.len() < MARKER {
        true => Err("has no whole Avro header".to_owned()),
        false => Ok((entries, rest)),
    }
}

/// The metadata map of the header, which `rest` is moved past.
fn header_entries<'a>(rest: &mut &'a [u8]) -> Option<Entries<'a>> {
    let mut entries = Vec::new();
    loop {
        let count = take_long(rest)?;
        if count == 0 {
            return Some(entries);
        }
        if count < 0 {
            // A negative count is followed by the size of the block in bytes.
            take_long(rest)?;
        }
        for _ in 0..count.unsigned_abs() {
            entries.push((take_bytes(rest)?, take_bytes(rest)?));
        }
    }
}

/// A zigzag varint.
fn take_long(rest: &mut &[u8]) -> Option<i64> {
    let mut bits = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        bits |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((bits >> 1) as i64 ^ -((bits & 1) as i64));
        }
    }
    None
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_long(rest)?).ok()?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}

fn put_long(out: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)) as u64;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avro::testing::{read, two_rows};
    use proptest::prelude::*;

    #[test]
    fn values_are_changed_where_asked_and_a_cut_header_is_an_error() {
        let file = two_rows(r#"{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}"#);
        let same = with_metadata(&file, |_, _| Ok(None)).unwrap();
        assert_eq!(read(same), read(file.as_slice()));
        let changed = with_metadata(&file, |key, _| Ok((key == b"k").then(|| b"another, longer".to_vec()))).unwrap();
        let (metadata, rows) = read(changed);
        assert_eq!((metadata["k"].as_slice(), rows), (b"another, longer".as_slice(), read(file.as_slice()).1));
        assert_eq!(value(&file, "k").unwrap(), Some(b"v".as_slice()));
        assert_eq!(value(&file, "l").unwrap(), None);
        assert!(with_metadata(&file, |_, _| Err("no".to_owned())).is_err());
        let marker_ends = file.len() - 16 - 2 - 2 - 16;
        for length in [0, 3, 4, 5, 20, marker_ends] {
            assert!(with_metadata(&file[..length], |_, _| Ok(None)).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn longs_survive(value in any::<i64>()) {
            let mut bytes = Vec::new();
            put_long(&mut bytes, value);
            prop_assert_eq!(take_long(&mut bytes.as_slice()), Some(value));
        }
    }
}
