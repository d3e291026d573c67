//! Extensions that no majority answers, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::error::{Code, Error, Loss, LossReason};
use crate::event::EventKind;
use crate::op::{Answer, Failure, FailureKind, LockOp, Op, Reply, Verb, Verdict};
use crate::options::LockOptions;
use crate::protocol::waiting::tests::{at, gone, ms};
use crate::protocol::{Acquisition, Amount, CallId, Command, Input, Manner, Recipe, Release, Step, Tag, waiting};

const HOUR: Duration = Duration::from_secs(3_600);

pub(in crate::protocol) fn recipe(servers: usize, ttl: Duration) -> Recipe {
    let recipe = waiting::tests::recipe(servers);
    Recipe { options: LockOptions { ttl, ..recipe.options }, ..recipe }
}

pub(in crate::protocol) fn yes(verdict: Verdict) -> Answer {
    Ok(Reply::new(verdict, 0, 7))
}

fn refused() -> Answer {
    Err(Failure::not_applied(FailureKind::Refused, "refused"))
}

/// A hold granted at the clock's origin, on servers whose answers to extensions a test chooses.
pub(in crate::protocol) struct Bench {
    machine: Acquisition,
    pub(in crate::protocol) now: Tick,
    /// The answers that are still to come: the time, the server, the tag and the answer.
    answers: Vec<(Tick, usize, Tag, Answer)>,
    pub(in crate::protocol) tries: Vec<Tick>,
    ended: Vec<(CallId, Tick, Result<(), Error>)>,
    released: Vec<Result<Release, Error>>,
    /// The latest event, and the latest one before each answer in `ended`.
    event: Option<EventKind>,
    message: Option<String>,
    events_before: Vec<Option<EventKind>>,
    pub(in crate::protocol) lost: Option<Loss>,
    /// The times at which the connection for renewals was prepared.
    kept_warm: Vec<Tick>,
    /// The end of the key on a server that obeys every request as soon as it is sent.
    pub(in crate::protocol) kept_until: Tick,
}

impl Bench {
    pub(in crate::protocol) fn held(recipe: Recipe) -> Self {
        let now = Now { tick: at(0), wall_us: 0, servers_us: 0 };
        let kept_until = at(0).after(recipe.options.ttl);
        let servers = recipe.servers.len();
        let machine = Acquisition::new(Arc::new(recipe), None, 1, now);
        let (answers, tries, ended) = (Vec::new(), Vec::new(), Vec::new());
        let (lost, kept_warm, event, events_before) = (None, Vec::new(), None, Vec::new());
        let now = at(0);
        let mut bench = Self {
            machine,
            now,
            answers,
            tries,
            ended,
            released: Vec::new(),
            event,
            message: None,
            events_before,
            lost,
            kept_warm,
            kept_until,
        };
        bench.handle(Input::Start, &mut |_, _| None);
        for server in 0..servers {
            let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
            bench.handle(Input::Answer { server, tag, answer: yes(Verdict::Vote) }, &mut |_, _| None);
        }
        assert!(bench.machine.check(at(0)).is_ok(), "granted");
        bench
    }

    fn handle(&mut self, input: Input, answer: &mut dyn FnMut(usize, Tick) -> Option<(Duration, Answer)>) {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: self.now, wall_us: 0, servers_us: 0 }, input, &mut out);
        for command in out {
            match command {
                Command::Send { server, tag, request } if tag.step == Step::Extend => {
                    if server == 0 {
                        self.tries.push(self.now);
                    }
                    if let Op::Lock(LockOp { verb: Verb::Extend { ttl_ms, .. }, .. }) = request.op {
                        self.kept_until = self.kept_until.max(self.now.after(ms(ttl_ms)));
                    }
                    if let Some((after, answer)) = answer(server, self.now) {
                        self.answers.push((self.now.after(after), server, tag, answer));
                    }
                }
                Command::KeepWarm => self.kept_warm.push(self.now),
                Command::Lost(loss) => self.lost = Some(loss),
                Command::Emit(event) => (self.event, self.message) = (Some(event.kind), event.message),
                Command::Released(_, result) => self.released.push(result),
                Command::Extended(call, result) => {
                    self.ended.push((call, self.now, result));
                    self.events_before.push(self.event);
                }
                _ => (),
            }
        }
    }

    /// Lets time pass until `until`. `answer` gives the delay and the answer of a server to an extension, if it answers.
    pub(in crate::protocol) fn run(&mut self, until: Tick, answer: impl Fn(usize, Tick) -> Option<(Duration, Answer)>) {
        self.run_mut(until, answer);
    }

    /// [`Bench::run`] with answers that depend on those before them.
    pub(in crate::protocol) fn run_mut(
        &mut self,
        until: Tick,
        mut answer: impl FnMut(usize, Tick) -> Option<(Duration, Answer)>,
    ) {
        for _ in 0..10_000 {
            let first = (0..self.answers.len()).min_by_key(|n| self.answers[*n].0).filter(|n| self.answers[*n].0 <= until);
            let wake = self.machine.wake_at().max(self.now);
            match first {
                Some(first) if self.answers[first].0 <= wake => {
                    let (when, server, tag, reply) = self.answers.remove(first);
                    self.now = when.max(self.now);
                    self.handle(Input::Answer { server, tag, answer: reply }, &mut answer);
                }
                _ if wake <= until => {
                    self.now = wake;
                    self.handle(Input::Wake, &mut answer);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
        panic!("a busy loop at {:?}", self.now);
    }

    pub(in crate::protocol) fn extend(&mut self, call: CallId, answer: impl FnMut(usize, Tick) -> Option<(Duration, Answer)>) {
        self.extend_to(call, Amount::Own, answer);
    }

    pub(in crate::protocol) fn extend_to(
        &mut self,
        call: CallId,
        amount: Amount,
        mut answer: impl FnMut(usize, Tick) -> Option<(Duration, Answer)>,
    ) {
        self.handle(Input::Extend(call, amount), &mut answer);
    }

    pub(in crate::protocol) fn valid_until(&self) -> Tick {
        self.machine.valid_until()
    }

    /// The messages of the errors so far.
    pub(in crate::protocol) fn errors(&self) -> Vec<String> {
        self.ended.iter().filter_map(|(_, _, result)| result.as_ref().err().map(ToString::to_string)).collect()
    }

    /// The results that the callers got, with their times, in the order of the calls.
    pub(in crate::protocol) fn reported(&self) -> Vec<(CallId, Tick, Option<Code>)> {
        let mut reported: Vec<_> =
            self.ended.iter().map(|(call, when, result)| (*call, *when, result.as_ref().err().map(Error::code))).collect();
        reported.sort_unstable_by_key(|(call, ..)| *call);
        reported
    }
}

#[test]
fn a_loss_by_silence_names_the_servers_and_why_they_confirmed_nothing() {
    let mut bench = Bench::held(recipe(3, ms(6_000)));
    // The first one confirms what it is asked, the second one refuses the connection, and the third one is silent.
    bench.run(at(20_000), |server, _| match server {
        0 => Some((ms(3), yes(Verdict::Ok))),
        1 => Some((ms(3), refused())),
        _ => None,
    });
    let reported = bench.lost.as_ref().expect("it is lost").sentence().to_string();
    let expected = "its validity ran out before a renewal was confirmed (s1: refused; s2: had not answered yet)";
    assert!(reported.starts_with(expected), "{reported}");
    let error = bench.machine.check(bench.now).unwrap_err();
    assert!(error.code() == Code::LockLost && error.to_string().contains(expected), "{error}");
    assert_eq!(bench.message.as_deref(), Some("s1: refused; s2: had not answered yet"));
    // Nothing was asked of them: there is nothing to report.
    let mut bench =
        Bench::held(Recipe { options: LockOptions { renew: false, ..recipe(3, ms(6_000)).options }, ..recipe(3, ms(6_000)) });
    bench.run(at(20_000), |_, _| None);
    assert_eq!((bench.lost.map(|loss| loss.silence), bench.message), (Some(String::new()), None));
}

#[test]
fn an_extend_that_servers_refuse_is_cancelled_to_the_microsecond_whatever_the_ttl() {
    for ttl in [ms(6_000), ms(60_000), HOUR] {
        let refuses = |_: usize, _: Tick| Some((ms(3), refused()));
        let mut bench = Bench::held(recipe(3, ttl));
        bench.run(at(100), refuses);
        bench.extend(1, refuses);
        bench.run(at(1_500), refuses);
        bench.extend(2, refuses);
        bench.run(at(20_000), refuses);
        if ttl > ms(6_000) {
            // The last try begins after `unavailable_after`, and ends when a server refuses it.
            let reported = [(1, at(5_103), Some(Code::Unavailable)), (2, at(6_503), Some(Code::Unavailable))];
            assert_eq!(bench.reported(), reported, "{ttl:?}");
        } else {
            let lost = bench.reported().iter().all(|(_, when, code)| *when <= at(6_000) && code.is_some());
            assert!(lost, "validity ends first: {:?}", bench.reported());
        }
    }
}

#[test]
fn an_extend_that_nobody_answers_is_cancelled_a_response_timeout_after_the_last_try() {
    let silent = |_: usize, _: Tick| None;
    let mut bench = Bench::held(recipe(3, HOUR));
    for (call, when) in [(1, 100), (2, 350), (3, 4_900)] {
        bench.run(at(when), silent);
        bench.extend(call, silent);
    }
    bench.run(at(60_000), silent);
    let reported = bench.reported();
    assert_eq!(reported.len(), 3);
    for ((call, when, code), asked) in reported.into_iter().zip([100, 350, 4_900]) {
        assert_eq!(code, Some(Code::Unavailable));
        assert!(when >= at(asked + 5_000) && when <= at(asked + 6_000), "extend {call}: {when:?}");
    }
    let Err(error) = &bench.ended[0].2 else { panic!("no error") };
    assert_eq!(error.servers().len(), 3, "one error per server: {error}");
}

#[test]
fn an_extend_behind_a_renewal_that_hangs_does_not_wait_for_two_rounds() {
    // A deadline shorter than the response timeout: the renewal under way is confirmed after the last moment to try again.
    let mut recipe = recipe(1, ms(30_000));
    recipe.unavailable_after = ms(100);
    let mut bench = Bench::held(recipe);
    // After the time at which the connection is opened.
    bench.run(at(2_000), |_, _| None);
    let renewal = bench.machine.wake_at();
    let slow = |_: usize, sent: Tick| (sent == renewal).then(|| (ms(900), yes(Verdict::Ok)));
    bench.run(renewal.after(ms(50)), slow);
    bench.extend(1, slow);
    bench.run(renewal.after(ms(5_000)), slow);
    assert_eq!(bench.reported(), [(1, renewal.after(ms(50 + 100 + 1_000)), Some(Code::Unavailable))]);
}

#[test]
fn what_the_first_renewal_will_use_is_made_ready_once_and_well_before_it() {
    let mut bench = Bench::held(recipe(1, ms(10_000)));
    bench.run(at(9_000), |_, _| Some((ms(1), yes(Verdict::Ok))));
    assert_eq!((&bench.kept_warm[..], bench.tries[0] > at(3_000)), (&[at(500)][..], true));
    let mut recipe = recipe(1, ms(10_000));
    recipe.options.renew = false;
    let mut bench = Bench::held(recipe);
    bench.run(at(9_000), |_, _| None);
    assert_eq!(bench.kept_warm, [], "nobody renews it");
}

#[test]
fn an_extend_succeeds_within_a_pause_of_the_servers_return() {
    let back = at(4_000);
    let answer = |_: usize, sent: Tick| Some(if sent < back { (ms(1), refused()) } else { (ms(1), yes(Verdict::Ok)) });
    let mut bench = Bench::held(recipe(3, HOUR));
    bench.run(at(100), answer);
    bench.extend(1, answer);
    bench.run(at(10_000), answer);
    let [(1, when, None)] = bench.reported()[..] else { panic!("{:?}", bench.reported()) };
    assert!(when >= back && when <= back.after(ms(252)), "{when:?}");
}

#[test]
fn tries_are_few_and_spread_whether_servers_refuse_or_are_silent() {
    for (ttl, most) in [(ms(200), 90), (ms(10_000), 60), (ms(60_000), 300)] {
        for silent in [false, true] {
            let answer = |_: usize, _: Tick| (!silent).then(|| (ms(1), refused()));
            let mut recipe = recipe(3, ttl);
            // Shorter than every pause.
            recipe.response_timeout = ms(1);
            let mut bench = Bench::held(recipe);
            bench.run(Tick::default().after(ttl), answer);
            assert!(bench.tries.len() > 5 && bench.tries.len() < most, "{ttl:?} {silent}: {} tries", bench.tries.len());
            let closest = bench.tries.windows(2).map(|pair| pair[1].since(pair[0])).min().unwrap();
            assert!(closest >= (ttl / 40).min(ms(250)), "{ttl:?} {silent}: {closest:?} apart");
            let widest = bench.tries.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
            assert!(widest <= ms(252), "{ttl:?} {silent}: {widest:?} apart");
        }
    }
}

#[test]
fn an_answer_comes_behind_the_event_that_it_is_about() {
    let answers = |_: usize, _: Tick| Some((ms(1), yes(Verdict::Ok)));
    let mut bench = Bench::held(recipe(1, ms(10_000)));
    bench.run(at(100), answers);
    bench.extend(1, answers);
    bench.run(at(200), answers);
    // Too late to be cancelled before validity ends.
    bench.run(at(9_000), |_, _| None);
    bench.extend(2, |_, _| None);
    bench.run(at(20_000), |_, _| None);
    assert_eq!(bench.events_before, [Some(EventKind::Extended), Some(EventKind::Lost)]);
}

#[test]
fn a_later_caller_learns_how_long_the_holder_has_continued() {
    let silent = |_: usize, _: Tick| None;
    let mut bench = Bench::held(recipe(1, ms(1_000)));
    let end = bench.valid_until();
    bench.run(at(3_000), silent);
    let overrun = |error: &Error| error.loss().map(|loss| loss.overrun);
    assert_eq!(bench.lost.as_ref().map(|loss| loss.overrun), Some(Duration::ZERO), "reported in time");
    assert_eq!(overrun(&bench.machine.check(at(3_000)).unwrap_err()), Some(at(3_000).since(end)));
    bench.extend(1, silent);
    assert_eq!(bench.ended[0].2.as_ref().err().and_then(overrun), Some(at(3_000).since(end)));
    assert!(bench.errors()[0].contains("went on for"), "{:?}", bench.errors());
    // The end of a body that no server answers.
    bench.handle(Input::Release(2, Manner::EndOfBody), &mut |_, _| None);
    let error = bench.released.remove(0).unwrap_err();
    assert_eq!(overrun(&error), Some(at(3_000).since(end)), "{error}");
    bench.handle(Input::Release(3, Manner::EndOfBody), &mut |_, _| None);
    assert!(bench.released.remove(0).is_ok(), "one answer is enough");
    bench.handle(Input::Release(4, Manner::Explicit), &mut |_, _| None);
    assert_eq!(bench.released.remove(0).unwrap_err().code(), Code::NotHeld);
}

#[test]
fn the_time_that_servers_take_is_not_the_holders() {
    let mut bench = Bench::held(recipe(1, ms(60_000)));
    let end = bench.valid_until();
    bench.run(at(25_000), |_, _| Some((ms(1), yes(gone()))));
    assert_eq!(bench.lost.as_ref().map(|loss| loss.reason), Some(LossReason::Missing));
    let left = at(25_000);
    assert!(left < end);
    bench.handle(Input::Release(1, Manner::EndOfBody), &mut |_, _| None);
    assert!(bench.released.is_empty(), "who has the lock now is worth an answer, while it may still be ours");
    bench.run(at(180_000), |_, _| None);
    let error = bench.released.remove(0).unwrap_err();
    assert_eq!(error.loss().map(|loss| loss.overrun), Some(Duration::ZERO), "{error}");
}
