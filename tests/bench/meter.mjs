// The meter of a Node side: pairs of acquire and release, after a warm-up, with the fields of core/benches/sides/meter.rs.
const WARM_UP_MS = 300

/** Runs `pair(name)` over and over in `callers` tasks for so many seconds, and prints what was counted. */
export async function measure(seconds, callers, pair) {
  await pair('bench:first')
  const begin = performance.now() + WARM_UP_MS
  const end = begin + seconds * 1000
  const times = []
  let all = 0
  let before

  async function caller(number) {
    const name = `bench:${String(number).padStart(3, '0')}`
    let last = performance.now()
    while (last < end) {
      await pair(name)
      const now = performance.now()
      all += 1
      if (last >= begin) times.push(now - last)
      else if (now >= begin) before ??= process.cpuUsage()
      last = now
    }
  }

  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
  const span = (performance.now() - begin) / 1000
  const used = process.cpuUsage(before)
  times.sort((a, b) => a - b)
  const fields = {
    pairs: times.length,
    all_pairs: all,
    seconds: span,
    pairs_per_second: times.length / span,
    us_per_pair: (span * 1e6) / times.length,
    p50_us: times[Math.floor(times.length / 2)] * 1000,
    p99_us: times[Math.floor(times.length * 0.99)] * 1000,
    cpu_us_per_pair: (used.user + used.system) / times.length,
  }
  console.log(Object.entries(fields).map(([name, value]) => `${name}=${value}`).join(' '))
}
