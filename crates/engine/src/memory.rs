//! How much memory reading may take where nobody said.

use std::sync::OnceLock;

/// At least this is taken to be there.
const LEAST: u64 = 1 << 30;

/// 1 GiB, or half of the system's memory where that is more: of the machine's or of the control group's, whichever is less.
pub fn default_limit() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let group = group.iter().filter_map(|path| read(path).trim().parse().ok()).min();
        half(machine(&read("/proc/meminfo")), group)
    })
}

fn half(machine: Option<u64>, group: Option<u64>) -> u64 {
    let all = machine.into_iter().chain(group).min();
    all.map_or(LEAST, |bytes| (bytes / 2).max(LEAST))
}

/// Bytes of memory that the machine has.
fn machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_half_of_what_there_is() {
        let info = "MemFree:  1 kB\nMemTotal:       24000000 kB\n";
        assert_eq!(machine(info), Some(24_576_000_000));
        assert_eq!(machine("nothing"), None);
        assert_eq!(half(machine(info), None), 12_288_000_000);
        assert_eq!(half(machine(info), Some(4 << 30)), 2 << 30);
        // Control groups without a limit say 2^63 or so, and small machines are not refused what is usual.
        assert_eq!(half(Some(1 << 29), Some(u64::MAX / 2)), LEAST);
        assert_eq!(half(None, None), LEAST);
        assert!(default_limit() >= LEAST);
    }
}
