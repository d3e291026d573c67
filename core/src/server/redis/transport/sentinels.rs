//! Sentinels: they are asked, all at once, which node is the primary of a service.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind, Reply, Verdict};
use crate::server::Completion;
use crate::server::redis::address::Address;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::known_sentinels::{SentinelAnswer, facts};
use crate::server::redis::sentinel::{Named, Poll, PrimaryReply, logged_in, others, own_id, primary_reply, questions};
use crate::server::redis::sentinel_groups::Ids;
use crate::server::redis::tls_names::TlsNames;
use crate::server::redis::transport::socket::{OpenSocket, Socket};
use crate::server::redis::transport::stream::{Limit, tcp};
use crate::server::redis::transport::tls::shake_hands;
use crate::server::redis::url::Service;

/// Asks for the primary. What is learned of other sentinels on the way is kept for the next time.
///
/// # Errors
/// Nobody names a primary within the limit, or the sentinels disagree.
pub(crate) async fn find(service: &Arc<Service>, limit: Limit) -> Result<Named, Failure> {
    let mut poll = service.known.lock().poll(&service.name);
    let (mut asking, mut answers) = (ask_each(service, poll.asked.clone(), limit), Vec::new());
    let choice = loop {
        let now = Tick::now();
        if let Some(choice) = poll.choice(now, Instant::now() >= limit.at) {
            break choice;
        }
        let gathers = Some(poll.gathers_until).filter(|until| *until != Tick::NEVER);
        let until = gathers.map_or(limit.at, |until| limit.at.min(Instant::now() + until.since(now)));
        tokio::select! {
            biased;
            Some(answer) = asking.join_next() => {
                if let Ok(answer) = answer {
                    take(&mut poll, &answer);
                    answers.push(answer);
                }
            }
            () = sleep_until(until) => {}
        }
    };
    let foreign = poll.foreign();
    answers.retain(|answer| !foreign.contains(&answer.from));
    let mut known = service.known.lock();
    known.learn(&answers);
    match &choice {
        Ok(named) => {
            known.chosen(named.epoch);
            known.believed(poll.ids());
        }
        Err(_) => known.refused(poll.agreed_below(), Tick::now()),
    }
    choice
}

fn take(poll: &mut Poll, answer: &SentinelAnswer) {
    poll.take(answer.from.clone(), answer.reply.clone(), answer.ids.clone(), Tick::now());
}

/// Those of another group.
fn foreign(service: &Service, answers: &[SentinelAnswer]) -> Vec<Address> {
    let mut poll = service.known.lock().poll(&service.name);
    answers.iter().for_each(|answer| take(&mut poll, answer));
    poll.foreign()
}

/// A completion for the answer of the primary to what it is: it adds what all sentinels report, who are asked meanwhile.
pub(crate) fn with_facts(service: &Arc<Service>, span: Duration, host: &Handle, completion: Completion) -> Completion {
    let (sender, received) = oneshot::channel();
    let service = Arc::clone(service);
    host.spawn(async move {
        let (answers, answer) = tokio::join!(ask_all(&service, Limit::new(span)), received);
        // Without an answer the completion is dropped, which says so.
        if let Ok(mut answer) = answer {
            if let Ok(Reply { verdict: Verdict::Described(server), .. }) = &mut answer {
                server.sentinels = Some(facts(&answers, &foreign(&service, &answers)));
            }
            completion.complete(answer);
        }
    });
    Completion::new(move |answer| drop(sender.send(answer)))
}

/// Asks each sentinel that is known, and then those that they know, and waits for all answers within the limit.
async fn ask_all(service: &Arc<Service>, limit: Limit) -> Vec<SentinelAnswer> {
    let mut answers: Vec<SentinelAnswer> = Vec::new();
    loop {
        let mut rest = service.known.lock().all();
        rest.retain(|address| answers.iter().all(|answer| answer.from != *address));
        if rest.is_empty() {
            return answers;
        }
        let mut asking = ask_each(service, rest, limit);
        while let Some(answer) = asking.join_next().await {
            answers.extend(answer);
        }
        let foreign = foreign(service, &answers);
        let own: Vec<SentinelAnswer> = answers.iter().filter(|answer| !foreign.contains(&answer.from)).cloned().collect();
        service.known.lock().learn(&own);
    }
}

/// Begins to ask the sentinels. The questions end with the set.
fn ask_each(service: &Arc<Service>, addresses: Vec<Address>, limit: Limit) -> JoinSet<SentinelAnswer> {
    let mut asking = JoinSet::new();
    for address in addresses {
        let service = Arc::clone(service);
        asking.spawn(async move {
            let asked = limit.keep(FailureKind::Timeout, "no answer", ask(&service, &address, limit)).await;
            asked.flatten().unwrap_or_else(|failure| SentinelAnswer {
                from: address,
                peer: None,
                reply: PrimaryReply::Failed(advised(&service, failure)),
                others: Vec::new(),
                ids: Ids::default(),
            })
        });
    }
    asking
}

async fn ask(service: &Service, address: &Address, limit: Limit) -> Result<SentinelAnswer, Failure> {
    let mut talk = Talk::begin(service, address, limit).await?;
    questions(&service.name).iter().for_each(|question| talk.send(question));
    talk.log_in(service).await?;
    let reply = match primary_reply(talk.next().await) {
        PrimaryReply::Failed(failure) => return Err(failure),
        reply => reply,
    };
    let ((others, ids), own) = match reply {
        PrimaryReply::Named(_) => (others(talk.next().await), own_id(talk.next().await)),
        _ => Default::default(),
    };
    Ok(SentinelAnswer { from: address.clone(), peer: talk.peer, reply, others, ids: Ids { own, others: ids } })
}

/// A failure with advice, where the port may speak TLS: then it answers everything else with an alert, or hangs up without a word.
fn advised(service: &Service, failure: Failure) -> Failure {
    let may_be_tls = failure.kind == FailureKind::Disconnected || failure.message.contains("speaks TLS");
    if service.tls.is_some() || !may_be_tls {
        return failure;
    }
    let why = "no sentinel answered; if the sentinels speak TLS, write ?sentinel_tls=yes behind the service";
    Failure { message: why.to_owned(), ..failure }
}

/// A connection to one sentinel.
pub(crate) struct Talk {
    pub(crate) socket: OpenSocket,
    pub(crate) buffers: Buffers,
    peer: Option<Address>,
}

impl Talk {
    /// Connects, and sends the credentials ahead of everything else.
    pub(crate) async fn begin(service: &Service, address: &Address, limit: Limit) -> Result<Self, Failure> {
        let socket = open(service, address, limit).await?;
        let peer = socket.peer().map(|peer| Address { host: peer.ip().to_string(), port: peer.port() });
        let mut talk = Self { socket: OpenSocket::new(socket), buffers: Buffers::default(), peer };
        service.login.command().iter().for_each(|command| talk.send(command));
        Ok(talk)
    }

    /// Adds a command to what is sent next.
    pub(crate) fn send(&mut self, command: &[u8]) {
        self.buffers.output.end().extend_from_slice(command);
    }

    /// Takes the answer to the credentials, if there are any.
    pub(crate) async fn log_in(&mut self, service: &Service) -> Result<(), Failure> {
        if service.login.password.is_some() { logged_in(self.next().await) } else { Ok(()) }
    }

    /// Sends what is to be sent, and waits for the next answer or message.
    pub(crate) async fn next(&mut self) -> RedisResult<Value> {
        self.socket.next(&mut self.buffers).await
    }
}

async fn open(service: &Service, address: &Address, limit: Limit) -> Result<Socket, Failure> {
    let stream = tcp(service.address_map.reachable(address), limit).await?;
    let Some(config) = &service.tls else { return Ok(Socket::Tcp(stream)) };
    let names = TlsNames::announced(&address.host, &service.hosts, service.tls_name.as_ref())?;
    let shaken = shake_hands(stream, (&names, config), None, limit).await;
    shaken.map_err(|failure| match failure.lasting {
        // It speaks TLS, with a certificate that is not trusted.
        true => failure,
        false => {
            let advice = "; if the sentinels have no TLS, write ?sentinel_tls=no behind the service";
            Failure { message: failure.message + advice, ..failure }
        }
    })
}
