//! Ticket: the text with which another process adopts a hold.

use crate::clock::Tick;
use crate::name::Kind;
use crate::owner::escape;
use crate::protocol::Recipe;
use crate::protocol::hold::Hold;

/// The ticket of a hold that is handed over at `now`. Later versions may add fields at its end.
pub(super) fn ticket(recipe: &Recipe, hold: &Hold, now: Tick) -> String {
    let options = &recipe.options;
    let (key, name, ttl) = (escape(recipe.keys.lock()), escape(recipe.name()), options.ttl.as_millis());
    let mut ticket = format!("locktender=1 key={key} name={name} ttl={ttl} owner={}", escape(hold.owner()));
    if recipe.keys.kind() == Kind::Read {
        ticket += " kind=read";
    }
    // The rest of it: the adopter's hold counts it from its own grant.
    let min_hold = hold.granted.after(options.min_hold).since(now);
    for (field, span) in [("min_hold", min_hold), ("grace", options.grace)] {
        if !span.is_zero() {
            ticket += &format!(" {field}={}", span.as_nanos().div_ceil(1_000_000));
        }
    }
    ticket
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::clock::Now;
    use crate::op::{Reply, Verdict};
    use crate::protocol::waiting::tests::{at, ms, recipe};
    use crate::protocol::{Acquisition, Command, Input, Step, Tag};

    #[test]
    fn it_has_what_is_left_of_min_hold_and_the_grace() {
        for (min_hold, grace, expected) in
            [(0, 0, ""), (3_000, 0, " min_hold=2000"), (500, 250, " grace=250"), (1_001, 1, " min_hold=1 grace=1")]
        {
            let mut recipe = recipe(1);
            (recipe.options.min_hold, recipe.options.grace) = (ms(min_hold), ms(grace));
            let now = |tick| Now { tick, wall_us: 0, servers_us: 0 };
            let (mut machine, mut out) = (Acquisition::new(Arc::new(recipe), None, 1, now(at(0))), Vec::new());
            machine.handle(now(at(0)), Input::Start, &mut out);
            let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
            let answer = Ok(Reply::new(Verdict::Vote, 0, 7));
            machine.handle(now(at(0)), Input::Answer { server: 0, tag, answer }, &mut out);
            machine.handle(now(at(1_000)), Input::HandOver(1), &mut out);
            let given =
                |command: &Command| if let Command::HandedOver(_, Ok(ticket)) = command { Some(ticket.clone()) } else { None };
            let ticket = out.iter().find_map(given).unwrap();
            let fields: String = ticket
                .split(' ')
                .filter(|field| field.starts_with("min_hold") || field.starts_with("grace"))
                .map(|field| format!(" {field}"))
                .collect();
            assert_eq!(fields, expected);
        }
    }
}
