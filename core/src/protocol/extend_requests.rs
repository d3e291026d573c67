//! Extend requests: the callers' extends that wait for an earlier round, or for an answer.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Error;
use crate::mutant::mutant;
use crate::options::{MAX_TTL, MIN_TTL, check_span, wire_millis};
use crate::protocol::{Amount, CallId, Recipe};
use crate::validity;
use crate::wording::{Part, Text};

/// The span to ask the servers for, if `left` remains now.
pub(super) fn reach(recipe: &Recipe, amount: Amount, left: Duration) -> Result<Duration, Error> {
    let span = match amount {
        Amount::Own => recipe.options.ttl,
        Amount::To(span) => {
            check_span("ttl", span)?;
            if let Some(quorum_config) =
                recipe.quorum_config.filter(|config| wire_millis(recipe.key_span(span)) > config.max_ttl_ms)
            {
                let bound = Part::Time(Duration::from_millis(quorum_config.max_ttl_ms));
                let why = Text::new("on a quorum no more than the client's {max_ttl} may remain, which is {}", [bound]);
                return Err(Error::invalid_time("ttl", span, why));
            }
            span
        }
        Amount::By(more) => {
            let span = validity::asking_for(left.saturating_add(more));
            let longest = recipe
                .quorum_config
                .map_or(MAX_TTL, |config| Duration::from_millis(config.max_ttl_ms).saturating_sub(recipe.options.grace));
            if span > longest {
                let text = match recipe.quorum_config {
                    Some(_) => {
                        "too much: {} remain already, and on a quorum no more than the client's {max_ttl} may remain, which is {}"
                    }
                    None => "too much: {} remain already, and the longest {ttl} is {}",
                };
                return Err(Error::invalid_time("by", more, Text::new(text, [Part::whole_ms(left), Part::Time(longest)])));
            }
            span
        }
    };
    // An extend that adds nothing still needs a ttl that a server can keep.
    Ok(span.max(MIN_TTL))
}

#[derive(Clone, Copy, Debug)]
struct ExtendRequest {
    call: CallId,
    /// The span that shall remain.
    span: Duration,
    /// The first round that would fulfil the request; every later round would, too.
    round: Option<u32>,
    /// The last time at which a try begins for this request. Its caller gets the error of a failure after that time.
    last_try: Tick,
    /// The time at which its caller gets an error, whatever is under way.
    gives_up: Tick,
}

/// The requests of a hold, in the order in which they were made: the first one is the first to give up.
#[derive(Debug, Default)]
pub(super) struct ExtendRequests(VecDeque<ExtendRequest>);

impl ExtendRequests {
    pub(super) fn add(&mut self, recipe: &Recipe, call: CallId, span: Duration, now: Tick) {
        let last_try = now.after(recipe.unavailable_after);
        self.0.push_back(ExtendRequest { call, span, round: None, last_try, gives_up: last_try.after(recipe.response_timeout) });
    }

    /// Moves the time limits by the time in which this process did not run.
    pub(super) fn extend_for_pause(&mut self, late: Duration) {
        for request in &mut self.0 {
            request.last_try = request.last_try.after(late);
            request.gives_up = request.gives_up.after(late);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The span that a round must ask for to fulfil all requests: the longest of theirs.
    pub(super) fn span(&self) -> Option<Duration> {
        self.0.iter().map(|request| request.span).max()
    }

    /// Notes that `round` asks for the span of all requests.
    pub(super) fn sent(&mut self, round: u32) {
        for request in &mut self.0 {
            request.round.get_or_insert(round);
        }
    }

    /// Takes the requests that `round` has fulfilled.
    pub(super) fn fulfil(&mut self, round: u32) -> Vec<CallId> {
        self.take(|request| request.round.is_some_and(|first| first <= round))
    }

    /// Takes the requests for which no other try is made.
    pub(super) fn stop_trying(&mut self, now: Tick) -> Vec<CallId> {
        self.take(|request| now >= request.last_try)
    }

    /// Takes the requests whose callers have waited long enough for the try under way.
    pub(super) fn stop_waiting(&mut self, now: Tick) -> Vec<CallId> {
        self.take(|request| now >= request.gives_up)
    }

    /// Takes all requests.
    pub(super) fn cancel_all(&mut self) -> Vec<CallId> {
        self.take(|_| true)
    }

    fn take(&mut self, which: impl Fn(&ExtendRequest) -> bool) -> Vec<CallId> {
        let calls = self.0.iter().filter(|request| which(request)).map(|request| request.call).collect();
        self.0.retain(|request| !which(request));
        calls
    }

    /// The time by which the next try must have begun.
    pub(super) fn last_try(&self) -> Tick {
        self.first().map_or(Tick::NEVER, |request| request.last_try)
    }

    /// The time at which the first request gives up.
    pub(super) fn gives_up(&self) -> Tick {
        self.first().map_or(Tick::NEVER, |request| request.gives_up)
    }

    fn first(&self) -> Option<&ExtendRequest> {
        self.0.front().filter(|_| !mutant!(ExtendOutlasts))
    }
}
