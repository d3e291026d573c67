//! tmp
#![allow(clippy::print_stdout)]
use locktender_model::{rules::Rule, scenario::Scenario, search::search};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let num = |i: usize| args[i].parse().unwrap();
    let mut s = Scenario::timed(num(0), num(1));
    let mut limit = 20_000_000;
    for a in &args[2..] {
        match a.as_str() {
            "untimed" => s.timed = false,
            "forgets" => s.forgets = true,
            "hands-over" => s.hands_over = true,
            "skewed" => s.skewed = true,
            "resends" => s.resends = true,
            _ if a.starts_with("ahead=") => s.ahead = a[6..].parse().unwrap(),
            _ if a.starts_with("limit=") => limit = a[6..].parse().unwrap(),
            _ => s.broken = Some(*Rule::ALL.iter().find(|r| r.name() == *a).expect(a)),
        }
    }
    println!("{s}");
    let o = search(&s, limit, |i, n, t| println!("{i} of {n} {t:?}")).unwrap();
    println!("{} states {:?} complete {}", o.states, o.took, o.complete);
    if let Some((v, t)) = o.violation { println!("{v:?} after {}\n{t}", t.len()); }
}
