//! Counts: the handles and the threads of this process. On Linux these are its descriptors.

use std::fmt;

/// What grows if something is never given back.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) handles: u32,
    pub(crate) threads: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handles, {} threads", self.handles, self.threads)
    }
}

#[cfg(windows)]
#[allow(unsafe_code, reason = "the standard library doesn't count them")]
pub(crate) fn counts() -> Counts {
    use std::ffi::c_void;

    #[repr(C)]
    struct ThreadEntry {
        size: u32,
        usage: u32,
        thread: u32,
        process: u32,
        priorities: [i32; 2],
        flags: u32,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn CreateToolhelp32Snapshot(flags: u32, process: u32) -> *mut c_void;
        fn Thread32First(snapshot: *mut c_void, entry: *mut ThreadEntry) -> i32;
        fn Thread32Next(snapshot: *mut c_void, entry: *mut ThreadEntry) -> i32;
        fn CloseHandle(handle: *mut c_void) -> i32;
    }

    #[link(name = "ntdll")]
    unsafe extern "system" {
        fn NtQuerySystemInformation(what: i32, into: *mut c_void, size: u32, needed: *mut u32) -> i32;
    }

    const THREADS: u32 = 4;
    const HANDLES: i32 = 16;
    let own = std::process::id();
    let (mut threads, mut needed) = (0, 0);
    let mut entry = ThreadEntry { size: 28, usage: 0, thread: 0, process: 0, priorities: [0; 2], flags: 0 };
    // All handles of the system: their count, and three words for each, which begin with the lower half of the process. wine doesn't know
    // the count of a single process.
    let mut handles = vec![0_u64; 1 << 20];
    let size = (handles.len() * size_of::<u64>()) as u32;
    // SAFETY: each pointer is to a local variable of the type and the size that the function fills, and the snapshot is closed once.
    unsafe {
        NtQuerySystemInformation(HANDLES, handles.as_mut_ptr().cast(), size, &raw mut needed);
        let snapshot = CreateToolhelp32Snapshot(THREADS, 0);
        let mut is_there = Thread32First(snapshot, &raw mut entry);
        while is_there != 0 {
            threads += u32::from(entry.process == own);
            is_there = Thread32Next(snapshot, &raw mut entry);
        }
        CloseHandle(snapshot);
    }
    let all = handles[1..].chunks_exact(3).take(handles[0] as u32 as usize);
    Counts { handles: all.filter(|handle| handle[0] as u16 == own as u16).count() as u32, threads }
}

#[cfg(not(windows))]
pub(crate) fn counts() -> Counts {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).map_or(0, |entries| entries.count() as u32);
    Counts { handles: count("fd"), threads: count("task") }
}
