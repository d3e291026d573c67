//! The meter: it measures pairs of acquire and release, after a warm-up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Connections are made, scripts are loaded and buffers have grown before anything counts.
const WARM_UP: Duration = Duration::from_millis(300);

/// When a side's measurement begins and ends.
#[derive(Clone, Copy)]
pub struct Span {
    pub begin: Instant,
    end: Instant,
}

impl Span {
    pub fn starting_now(length: Duration) -> Self {
        let begin = Instant::now() + WARM_UP;
        Self { begin, end: begin + length }
    }
}

/// What one caller counts.
pub struct Tally {
    span: Span,
    last: Instant,
    /// Nanoseconds of each pair within the span.
    times: Vec<u64>,
    /// Pairs of the warm-up.
    before: usize,
}

impl Tally {
    pub fn new(span: Span) -> Self {
        Self { span, last: Instant::now(), times: Vec::with_capacity(65_536), before: 0 }
    }

    /// Counts pairs that ended together; whether to go on.
    pub fn count(&mut self, pairs: usize) -> bool {
        let now = Instant::now();
        let each = u64::try_from((now - self.last).as_nanos()).unwrap() / pairs as u64;
        if now < self.span.begin {
            self.before += pairs;
        } else if self.last >= self.span.begin {
            self.times.extend(std::iter::repeat_n(each, pairs));
        } else {
            // Half in, half out.
            self.before += pairs;
        }
        self.last = now;
        now < self.span.end
    }
}

/// Processor time of this process, seconds.
pub fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A number that a server tells about itself.
pub fn info(url: &str, section: &str, field: &str) -> f64 {
    let mut server = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
    server.write_all(format!("INFO {section}\r\nQUIT\r\n").as_bytes()).unwrap();
    let mut told = String::new();
    server.read_to_string(&mut told).unwrap();
    let number = |line: &str| line.strip_prefix(field)?.strip_prefix(':')?.parse().ok();
    told.lines().find_map(number).unwrap()
}

/// Prints what the callers of a side counted. `cpu` is what the process used within the span.
pub fn report(tallies: Vec<Tally>, span: Span, cpu: f64) {
    let seconds = span.begin.elapsed().as_secs_f64();
    let warm_up: usize = tallies.iter().map(|tally| tally.before).sum();
    let mut times: Vec<u64> = tallies.into_iter().flat_map(|tally| tally.times).collect();
    times.sort_unstable();
    let pairs = times.len() as f64;
    let micros = |nanos: u64| nanos as f64 / 1e3;
    println!(
        "pairs={pairs} all_pairs={} seconds={seconds:.3} pairs_per_second={:.1} us_per_pair={:.2} p50_us={:.2} p99_us={:.2} cpu_us_per_pair={:.3}",
        times.len() + warm_up,
        pairs / seconds,
        seconds * 1e6 / pairs,
        micros(times[times.len() / 2]),
        micros(times[times.len() * 99 / 100]),
        cpu * 1e6 / pairs,
    );
}
