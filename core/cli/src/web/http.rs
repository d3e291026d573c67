//! HTTP: the answers to browsers, and the stream of changes. A reader that is too slow is cut off; its page connects again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use locktender::host::sync::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::sleep;

use super::gate::{Gate, Refusal, Wanted};
use super::history::Shared;
use super::line::now;
use super::page::{self, random};

/// The most connections at a time, and how many of them follow the changes.
const MOST_CONNECTIONS: usize = 32;
const MOST_READERS: usize = 16;

/// A reader that is so many messages behind is cut off.
const BEHIND: usize = 20;

/// What the system keeps for a reader that is behind.
const SEND_BUFFER: u32 = 256 * 1024;

/// How long a request may take to come.
const REQUEST: Duration = Duration::from_secs(2);

/// How long a whole answer may take to be read.
const ANSWER: Duration = Duration::from_secs(10);

const ELSEWHERE: &str = "this page has no other name than 127.0.0.1 and localhost, with its own port; \
                         through ssh: locktender watch --web --port 9000, and ssh -L 9000:127.0.0.1:9000\n";

pub(super) struct Site {
    pub(super) gate: Gate,
    pub(super) history: Shared,
    readers: Mutex<Vec<Reader>>,
    /// The connections without a request, the oldest first.
    silent: Mutex<VecDeque<Arc<Notify>>>,
    /// The page has it, and the stream repeats it: another program that gets this port later does not know it.
    proof: String,
}

struct Reader {
    messages: mpsc::Sender<Bytes>,
    connection: Arc<Notify>,
}

/// Listens on this machine only. Must be called within a runtime.
pub(super) fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    socket.listen(128)
}

impl Site {
    pub(super) fn new(gate: Gate, history: Shared) -> Self {
        Self { gate, history, readers: Mutex::default(), silent: Mutex::default(), proof: random() }
    }

    /// Answers every connection.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Such as too many open files.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            // A silent connection makes room: otherwise any program of this machine could keep browsers away, without the token.
            let full = places.available_permits() == 0;
            if let Some(oldest) = full.then(|| self.silent.lock().pop_front()).flatten() {
                oldest.notify_one();
            }
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (site, cut) = (Arc::clone(&self), Arc::new(Notify::new()));
            self.silent.lock().push_back(Arc::clone(&cut));
            tokio::spawn(async move {
                site.connection(stream, &cut).await;
                site.forget_silent(&cut);
                drop(place);
            });
        }
    }

    fn forget_silent(&self, connection: &Arc<Notify>) {
        self.silent.lock().retain(|each| !Arc::ptr_eq(each, connection));
    }

    /// Sends what has changed to all who follow.
    pub(super) fn push_changes(&self) {
        let mut readers = self.readers.lock();
        let part = self.history.lock().part(now());
        let message = event("part", &part);
        readers.retain(|reader| match reader.messages.try_send(message.clone()) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                reader.connection.notify_one();
                false
            }
        });
    }

    async fn connection(&self, stream: TcpStream, cut: &Arc<Notify>) {
        let service = service_fn(|request| {
            self.forget_silent(cut);
            let answer = self.answer(&request, cut);
            if answer.body().rest.is_none() {
                let cut = Arc::clone(cut);
                tokio::spawn(async move {
                    sleep(ANSWER).await;
                    cut.notify_one();
                });
            }
            async { Ok::<_, Infallible>(answer) }
        });
        let mut server = http1::Builder::new();
        server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(REQUEST);
        tokio::select! {
            _ = server.serve_connection(TokioIo::new(stream), service) => (),
            () = cut.notified() => (),
        }
    }

    fn answer(&self, request: &Request<Incoming>, connection: &Arc<Notify>) -> Response<Answer> {
        let named = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let hosts = request.headers().get_all(header::HOST).iter().map(HeaderValue::as_bytes).chain(named);
        let is_head = request.method() == hyper::Method::HEAD;
        match self.gate.allow(request.method().as_str(), hosts, request.uri().path()) {
            Ok(Wanted::Stream) if is_head => answer(StatusCode::OK, "text/event-stream", Bytes::new()),
            Ok(Wanted::Stream) => self.stream(connection),
            Ok(Wanted::Page) => shown(&self.proof),
            Err(refusal) => refused(refusal),
        }
    }

    fn stream(&self, connection: &Arc<Notify>) -> Response<Answer> {
        let mut readers = self.readers.lock();
        readers.retain(|reader| !reader.messages.is_closed());
        if readers.len() >= MOST_READERS {
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n");
        }
        let (messages, rest) = mpsc::channel(BEHIND);
        // A change between this and the next message is in both.
        let all = self.history.lock().all(now()).replacen('{', &format!("{{\"proof\":\"{}\",", self.proof), 1);
        readers.push(Reader { messages, connection: Arc::clone(connection) });
        let mut response = answer(StatusCode::OK, "text/event-stream", event("all", &all));
        response.body_mut().rest = Some(rest);
        response
    }
}

fn event(name: &str, json: &str) -> Bytes {
    format!("event: {name}\nretry: 1000\ndata: {json}\n\n").into()
}

fn shown(proof: &str) -> Response<Answer> {
    let page = page::live(proof);
    let mut response = answer(StatusCode::OK, "text/html; charset=utf-8", page.text.into());
    if let Ok(policy) = HeaderValue::from_str(&page.policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn refused(refusal: Refusal) -> Response<Answer> {
    let (status, why) = match refusal {
        Refusal::WrongToken => (StatusCode::FORBIDDEN, "the address is the one that locktender printed, with its token\n"),
        Refusal::NotFound => (StatusCode::NOT_FOUND, "there is no such page\n"),
        Refusal::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "this page can only be read\n"),
        Refusal::WrongHost => (StatusCode::MISDIRECTED_REQUEST, ELSEWHERE),
    };
    let mut response = text(status, why);
    if refusal == Refusal::WrongMethod {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Answer> {
    answer(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn answer(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer { first: Some(body).filter(|body| !body.is_empty()), rest: None });
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The body of an answer: what is there at once, and of a stream the rest, which comes.
struct Answer {
    first: Option<Bytes>,
    rest: Option<mpsc::Receiver<Bytes>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match (self.first.take(), &mut self.rest) {
            (None, Some(rest)) => rest.poll_recv(context),
            (first, _) => Poll::Ready(first),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self.rest {
            None => hyper::body::SizeHint::with_exact(self.first.as_ref().map_or(0, |body| body.len() as u64)),
            Some(_) => hyper::body::SizeHint::default(),
        }
    }
}
