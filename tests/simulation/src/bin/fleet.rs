//! The simulated fleet in its full size. It prints what it has seen as `name=value` fields; `tests/bench/fleet.py` reads them.

#![allow(clippy::print_stdout, reason = "a program that prints what it has seen")]

use locktender_simulation::{FleetPlan, Report, Spread, run_fleet};

fn main() {
    let plan = if std::env::args().any(|argument| argument == "small") { FleetPlan::small() } else { FleetPlan::large() };
    let confirms_all = std::env::args().any(|argument| argument == "confirms-all");
    let report = run_fleet(FleetPlan { confirms_all, ..plan.clone() });
    println!("clients={} shards={} held={} names={}", plan.clients, plan.shards, plan.held, plan.names);
    println!("node_timeout_us={} takeover_us={} ran_us={}", plan.node_timeout_us, report.takeover_us, report.ran_us);
    show(&report);
}

fn show(report: &Report) {
    println!("lost={} unavailable={} not_released={}", report.lost, report.unavailable, report.not_released);
    println!("fails_in={} recovers_in={}", report.during.start, report.during.end);
    println!("{}", spread("recovery", &report.recovery));
    for shard in 0..report.rates.len() {
        let (before, during) = (report.rate(shard, &report.before), report.rate(shard, &report.during));
        println!("shard{shard}_rate_before={before:.1} shard{shard}_rate_during={during:.1}");
        println!("{}", spread(&format!("shard{shard}_before"), &report.hand_overs_before[shard]));
        println!("{}", spread(&format!("shard{shard}_during"), &report.hand_overs_during[shard]));
        let rates: Vec<String> = report.rates[shard].iter().map(u32::to_string).collect();
        println!("shard{shard}_rates={}", rates.join(","));
    }
}

fn spread(name: &str, spread: &Spread) -> String {
    let Spread { count, p50, p99, max } = spread;
    format!("{name}_count={count} {name}_p50_us={p50} {name}_p99_us={p99} {name}_max_us={max}")
}
