//! Settings of the C library's allocator, without which memory that was freed does not go back to the system.
//!
//! By default glibc gives every thread an arena of its own, and raises the size from which blocks are mapped singly as large blocks are freed.
//! Both keep freed memory: merging 24 files of 20 MB peaked at 449 MB so, and at 203 MB with the settings below. Smaller thresholds keep less
//! still, but fresh memory costs a page fault every 4 KiB: at 256 KiB and 1 MiB a merge took 2.7 s of system time where it takes 1.0 s now, with
//! the same peak.

/// Arenas at most: as many as threads merge at once, on the machines that Firn is made for.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;
/// Blocks from this size are mapped singly and go back at once when freed.
#[cfg(target_env = "gnu")]
const MAPPED_FROM_BYTES: libc::c_int = 4 << 20;
/// Free memory at the end of the heap from which it is given back.
#[cfg(target_env = "gnu")]
const TRIM_FROM_BYTES: libc::c_int = 32 << 20;

/// Applies the settings. To be called before any thread is started.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "mallopt has no safe form")]
pub fn tune() {
    // SAFETY: mallopt takes numbers, keeps no pointer, and is called while the process has one thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_FROM_BYTES);
    }
}

/// Other C libraries are left as they are.
#[cfg(not(target_env = "gnu"))]
pub fn tune() {}
