//! Measures memory: an allocator that counts, thread by thread.
#![allow(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one only counts and passes on"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes held by this thread.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Peak since counting began.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

/// Peak bytes held during `work`, beyond those held before.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}

fn count(bytes: isize) {
    // An ending thread frees memory after its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.set(PEAK.get().max(held.get()));
    });
}

fn size(layout: Layout) -> isize {
    isize::try_from(layout.size()).expect("invariant: layouts are at most isize::MAX bytes")
}

// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout));
        // SAFETY: the caller keeps to what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-size(layout));
        // SAFETY: the caller keeps to what `dealloc` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}
