//! What the hub's process costs, as the kernel counts it.

use std::fs;

use super::super::exit::Failure;

/// Ticks of processor time a second: 100 on every Linux that a program sees (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a process has used, seconds.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64, Failure> {
    let text = read(pid, "stat")?;
    cpu_of(&text).ok_or_else(|| Failure::failed(format!("unreadable /proc/{pid}/stat: {text:?}")))
}

/// Memory of a process that is resident, bytes.
pub(super) fn resident_bytes(pid: u32) -> Result<u64, Failure> {
    let text = read(pid, "status")?;
    resident_of(&text).ok_or_else(|| Failure::failed(format!("no VmRSS in /proc/{pid}/status")))
}

fn read(pid: u32, what: &str) -> Result<String, Failure> {
    let path = format!("/proc/{pid}/{what}");
    fs::read_to_string(&path).map_err(|error| {
        Failure::failed(format!("cannot read {path}: {error}; --hub-pid is the hub's process id, on Linux"))
    })
}

/// Fields 14 and 15; the second one, the name, may contain anything.
fn cpu_of(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 5 0 99 1 2";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(resident_of("VmPeak:\t 9 kB\nVmRSS:\t    12 kB\n"), Some(12 * 1024));
        assert_eq!((cpu_of("x"), resident_of("x")), (None, None));
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() > 0 && cpu_seconds(own).is_ok());
    }
}
