//! The C library's allocator, and the settings without which memory that was freed does not go back to the system.
//!
//! By default glibc gives every thread an arena of its own, and raises the size from which blocks are mapped singly as large blocks are freed.
//! Both keep freed memory: merging 24 files of 20 MB peaked at 449 MB so, and at 203 MB with the settings below. Smaller thresholds keep less
//! still, but fresh memory costs a page fault every 4 KiB: at 256 KiB and 1 MiB a merge took 2.7 s of system time where it takes 1.0 s now, with
//! the same peak. Large blocks ask for huge pages, of which one fault brings 2 MiB.

use std::alloc::{GlobalAlloc, Layout, System};

/// Arenas at most: as many as threads merge at once, on the machines that Firn is made for.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;
/// Blocks from this size are mapped singly and go back at once when freed.
const MAPPED_FROM_BYTES: usize = 4 << 20;
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
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES as libc::c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_FROM_BYTES);
    }
}

/// Other C libraries are left as they are.
#[cfg(not(target_env = "gnu"))]
pub fn tune() {}

/// The allocator of every program that merges.
#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

/// The C library's allocator; the kernel is asked to back blocks that are mapped singly by huge pages, where it has them (`madvise` or
/// `always` in /sys/kernel/mm/transparent_hugepage/enabled).
struct LargePages;

#[allow(unsafe_code, reason = "an allocator has no safe form")]
// SAFETY: every block is the system allocator's own, handed on as it came and given back as it was handed on.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        let block = unsafe { System.alloc(layout) };
        ask_for_huge_pages(block, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { System.alloc_zeroed(layout) };
        ask_for_huge_pages(block, layout.size());
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about block and layout is passed on; the block came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { System.realloc(block, layout, bytes) };
        ask_for_huge_pages(block, bytes);
        block
    }
}

/// All pages that the block touches, so that a mapping of its own stays one: `mremap`, by which large blocks grow, takes no two.
#[cfg(target_os = "linux")]
#[inline]
#[allow(unsafe_code, reason = "madvise has no safe form")]
fn ask_for_huge_pages(block: *mut u8, bytes: usize) {
    const PAGE: usize = 4096;
    if bytes < MAPPED_FROM_BYTES || block.is_null() {
        return;
    }
    let before = block.addr() % PAGE;
    // SAFETY: the range lies in pages that hold the block; the advice changes no byte of them, and a refusal changes nothing at all.
    unsafe {
        libc::madvise(block.wrapping_sub(before).cast(), before + bytes, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
#[inline]
fn ask_for_huge_pages(_block: *mut u8, _bytes: usize) {}
