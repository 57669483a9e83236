//! Which glibc a program needs: the versions that its section `.gnu.version_r` names (ELF-64, System V ABI and "Linux Standard
//! Base, symbol versioning"). Reads the program header's `PT_DYNAMIC`, which a stripped program has too.

/// A version of glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(pub(crate) u32, pub(crate) u32);

impl std::fmt::Display for Glibc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;

/// The highest version of glibc that the program needs; None: none at all (a static program).
///
/// # Errors
/// A sentence: it is no program for Linux on x86-64, or is damaged.
pub(crate) fn needed_glibc(program: &[u8]) -> Result<Option<Glibc>, String> {
    let file = Elf(program);
    if program.get(..6) != Some(b"\x7fELF\x02\x01") || file.u16(18) != Some(EM_X86_64) {
        return Err("is no program for Linux on x86-64, which is what Azure runs".into());
    }
    file.needed().ok_or_else(|| "is a damaged program: its headers point outside of it".into())
}

struct Elf<'a>(&'a [u8]);

/// A loadable part: where it lies in memory and in the file.
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
}

impl Elf<'_> {
    fn needed(&self) -> Option<Option<Glibc>> {
        let (mut loads, mut dynamic) = (Vec::new(), None);
        let (table, size, count) = (self.u64(32)?, u64::from(self.u16(54)?), u64::from(self.u16(56)?));
        for index in 0..count {
            let at = table.checked_add(index * size)?;
            let segment = Segment { address: self.u64(at + 16)?, offset: self.u64(at + 8)?, size: self.u64(at + 32)? };
            match self.u32(at)? {
                PT_LOAD => loads.push(segment),
                PT_DYNAMIC => dynamic = Some(segment),
                _ => {}
            }
        }
        let Some(dynamic) = dynamic else { return Some(None) };
        let (mut names, mut needs, mut need_count) = (None, None, 0);
        for at in (dynamic.offset..dynamic.offset.checked_add(dynamic.size)?).step_by(16) {
            let value = self.u64(at + 8)?;
            match self.u64(at)? {
                DT_NULL => break,
                DT_STRTAB => names = Some(in_file(&loads, value)?),
                DT_VERNEED => needs = Some(in_file(&loads, value)?),
                DT_VERNEEDNUM => need_count = value,
                _ => {}
            }
        }
        let (Some(names), Some(mut need)) = (names, needs) else { return Some(None) };
        let mut highest = None;
        // Elf64_Verneed: one a library; Elf64_Vernaux: one a version of it.
        for _ in 0..need_count {
            let mut version = need.checked_add(u64::from(self.u32(need + 8)?))?;
            for _ in 0..self.u16(need + 2)? {
                let name = self.text(names.checked_add(u64::from(self.u32(version + 8)?))?)?;
                highest = highest.max(version_of(name));
                version = version.checked_add(u64::from(self.u32(version + 12)?))?;
            }
            need = need.checked_add(u64::from(self.u32(need + 12)?))?;
        }
        Some(highest)
    }

    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(&self, at: u64) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: u64) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: u64) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn text(&self, at: u64) -> Option<&str> {
        let rest = self.0.get(usize::try_from(at).ok()?..)?;
        std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
    }
}

fn in_file(loads: &[Segment], address: u64) -> Option<u64> {
    let segment =
        loads.iter().find(|load| (load.address..load.address.saturating_add(load.size)).contains(&address))?;
    Some(address - segment.address + segment.offset)
}

/// `GLIBC_2.28`; `GLIBC_PRIVATE` and versions of other libraries are none.
fn version_of(name: &str) -> Option<Glibc> {
    let mut parts = name.strip_prefix("GLIBC_")?.split('.');
    Some(Glibc(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert!(version_of("GLIBC_2.9") < version_of("GLIBC_2.28"));
        assert_eq!(version_of("GLIBC_2.2.5"), Some(Glibc(2, 2)));
        assert_eq!((version_of("GLIBC_PRIVATE"), version_of("GCC_3.0")), (None, None));
        assert_eq!(Glibc(2, 28).to_string(), "2.28");
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
    #[test]
    fn this_program_needs_what_other_readers_say() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let needed = needed_glibc(&bytes).unwrap().unwrap();
        assert!(needed >= Glibc(2, 2) && needed < Glibc(3, 0), "{needed}");
        // Binutils come with the compiler that links.
        let told = std::process::Command::new("objdump").arg("-p").arg(&path).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout);
        let highest = told.split_whitespace().filter_map(version_of).max();
        assert_eq!(Some(needed), highest);
        for cut in [0, 5, 40, 64, 300, bytes.len() / 2] {
            // Wherever it is cut, the answer is an error or a version, never a panic.
            let _ = needed_glibc(&bytes[..cut]);
        }
    }

    #[test]
    fn other_files_are_told() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"MZ"] {
            assert!(needed_glibc(bytes).unwrap_err().starts_with("is no program for Linux"));
        }
    }
}
