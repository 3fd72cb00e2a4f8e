//! Turns the text of cgroup and `/proc` files into numbers. Reads no files.
//!
//! Formats: cgroup-v2 and cgroup-v1 in the kernel's admin guide, proc_pid_statm(5), proc_pid_status(5).

/// The number after `key` in lines of the form `key value`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    let of_key = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(of_key)
}

/// A file that holds one number.
pub(super) fn single(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The value of `key` in `/proc/PID/status`, bytes: lines of the form `Key:   123 kB`.
pub(super) fn status_bytes(text: &str, key: &str) -> Option<u64> {
    let of_key = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name == key).then(|| value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())?
    };
    Some(text.lines().find_map(of_key)? * 1024)
}

/// Resident pages, the second field of `/proc/PID/statm`.
pub(super) fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_a_v2_cpu_stat() {
        let text = "usage_usec 58520\nuser_usec 40000\nsystem_usec 18520\n";
        assert_eq!(keyed(text, "usage_usec"), Some(58_520));
    }

    #[test]
    fn anonymous_memory_is_read_from_a_v2_memory_stat() {
        let text = "anon 16441344\nfile 18079744\nanon_thp 0\n";
        assert_eq!(keyed(text, "anon"), Some(16_441_344));
    }

    #[test]
    fn total_rss_is_not_mistaken_for_rss() {
        let text = "rss 4096\nmapped_file 0\ntotal_rss 16375808\ntotal_rss_huge 0\n";
        assert_eq!(keyed(text, "total_rss"), Some(16_375_808));
        assert_eq!(keyed(text, "total_cache"), None);
    }

    #[test]
    fn a_file_of_one_number_ends_with_a_line_break() {
        assert_eq!(single("3051820\n"), Some(3_051_820));
        assert_eq!(single("max\n"), None);
    }

    #[test]
    fn status_kilobytes_become_bytes() {
        let text = "Name:\tenvoy\nVmHWM:\t   67000 kB\nRssAnon:\t   15700 kB\n";
        assert_eq!(status_bytes(text, "RssAnon"), Some(15_700 * 1024));
        assert_eq!(status_bytes(text, "VmSwap"), None);
    }

    #[test]
    fn the_resident_pages_are_the_second_field_of_statm() {
        assert_eq!(resident_pages("26000 16750 9000 1 0 20000 0\n"), Some(16_750));
    }
}
