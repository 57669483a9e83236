//! How much memory the process has used.

/// The highest resident set of this process so far, in bytes; None where the system does not say (only Linux does).
pub fn peak_rss_bytes() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(peak_of("Name:\tfirn\nVmPeak:\t  900 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 1 kB\n"), Some(1_263_616));
        assert_eq!(peak_of("VmRSS:\t 1 kB\n"), None);
        assert_eq!(peak_of("VmHWM:\t 1 MB\n"), None);
        #[cfg(target_os = "linux")]
        assert!(peak_rss_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
