//! Points: events in batches, for who writes them to a time series.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::callback::caught;
use super::{EventKind, LockEvent, Sink, trace};
use crate::error::Error;

/// How many batches may wait.
const WAITING_BATCHES: usize = 10;

type Write = Box<dyn FnMut(&str) -> Result<(), Box<dyn StdError + Send + Sync>> + Send>;

enum Message {
    Line(String),
    /// The waiting thread is notified when everything before it was written.
    Flush(Sender<()>),
}

/// Collects events as lines of [`LockEvent::line_protocol`], and passes them on in batches, on a thread of its own.
///
/// A batch is passed on when so many points have come, and at the latest a while after the first of them. While it is written, points wait
/// for their turn. A point that comes while ten batches wait is dropped, and so is a batch that can't be written, which is reported to
/// `tracing`. When the value is dropped, its thread writes what is left, and ends; call [`flush`](Self::flush) before the program ends.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// # use std::time::Duration;
/// use locktender::Client;
/// use locktender::influxdb::Points;
///
/// # let database = Arc::new(Mutex::new(String::new()));
/// # let send = { let database = Arc::clone(&database); move |lines: &str| database.lock().unwrap().push_str(lines) };
/// let write = move |lines: &str| {
///     send(lines); // a POST to http://localhost:8086/write?db=locktender
///     Ok(())
/// };
/// let points = Arc::new(Points::builder().tag("app", "billing").build(write)?);
/// let client = Client::builder().url("memory://docs-points").sink(points.clone()).build()?;
/// client.lock("orders:42").acquire_blocking()?.release_blocking()?;
/// assert!(points.flush(Duration::from_secs(10)));
/// # assert_eq!(database.lock().unwrap().lines().count(), 3);
/// # Ok::<(), locktender::Error>(())
/// ```
pub struct Points {
    messages: Sender<Message>,
    count: Arc<Count>,
    tags: Vec<(String, String)>,
    most: usize,
}

#[derive(Debug, Default)]
struct Count {
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

/// Makes [`Points`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PointsBuilder {
    tags: Vec<(String, String)>,
    size: usize,
    interval: Duration,
}

impl Points {
    /// A builder of points: batches of 1,000 points, and at most 10 s between the first point and its batch.
    ///
    /// ```
    /// # use locktender::influxdb::Points;
    /// let points = Points::builder().build(|lines| Ok(print!("{lines}")))?;
    /// assert_eq!(points.dropped(), 0);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub const fn builder() -> PointsBuilder {
        PointsBuilder { tags: Vec::new(), size: 1_000, interval: Duration::from_secs(10) }
    }

    /// How many points were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.count.dropped.load(Ordering::Relaxed)
    }

    /// Writes the points that have come so far, and waits for that, for `timeout` at most. False if that was not enough.
    pub fn flush(&self, timeout: Duration) -> bool {
        let (done, wait) = channel();
        self.messages.send(Message::Flush(done)).is_ok() && wait.recv_timeout(timeout).is_ok()
    }
}

impl Sink for Points {
    fn event(&self, event: &LockEvent) {
        if self.count.waiting.load(Ordering::Relaxed) >= self.most {
            self.count.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let tags: Vec<_> = self.tags.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut line = event.line_protocol(&tags, SystemTime::now());
        line.push('\n');
        self.count.waiting.fetch_add(1, Ordering::Relaxed);
        if self.messages.send(Message::Line(line)).is_err() {
            self.count.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points").field("tags", &self.tags).field("count", &self.count).finish_non_exhaustive()
    }
}

impl PointsBuilder {
    /// Adds a tag to every point, such as `app` or `host`.
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((name.into(), value.into()));
        self
    }

    /// The most points in a batch (default 1,000).
    pub const fn size(mut self, size: usize) -> Self {
        self.size = size;
        self
    }

    /// The longest time between a point and its batch (default 10 s).
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Starts the thread that calls `write` with each batch: lines that end with a newline each.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: the size or the interval is 0. `INTERNAL`: the system has no thread for it.
    pub fn build<W>(self, write: W) -> Result<Points, Error>
    where
        W: FnMut(&str) -> Result<(), Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        if self.size == 0 {
            return Err(Error::invalid("size", "0", "a batch has 1 point or more"));
        }
        if self.interval.is_zero() {
            return Err(Error::invalid("interval", "0", "it must be more than 0"));
        }
        let (messages, waiting) = channel();
        let count = Arc::<Count>::default();
        let writer =
            Writer { waiting, count: Arc::clone(&count), write: Box::new(write), size: self.size, interval: self.interval };
        thread::Builder::new()
            .name("locktender-points".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| Error::internal(None, &format!("the system has no thread for points: {error}")))?;
        Ok(Points { messages, count, tags: self.tags, most: self.size.saturating_mul(WAITING_BATCHES) })
    }
}

/// What runs on the thread.
struct Writer {
    waiting: Receiver<Message>,
    count: Arc<Count>,
    write: Write,
    size: usize,
    interval: Duration,
}

impl Writer {
    fn run(mut self) {
        while let Ok(flush) = self.batch() {
            // Nobody may wait any more.
            _ = flush.map(|done| done.send(()));
        }
    }

    /// Collects a batch and passes it on; gives who waits for that. An error is the end.
    fn batch(&mut self) -> Result<Option<Sender<()>>, RecvError> {
        let (mut batch, mut points, mut due) = (String::new(), 0, None);
        let end = loop {
            let next = match due {
                None => self.waiting.recv().map_err(RecvTimeoutError::from),
                Some(due) => self.waiting.recv_timeout(Instant::saturating_duration_since(&due, Instant::now())),
            };
            match next {
                Ok(Message::Line(line)) => {
                    batch.push_str(&line);
                    points += 1;
                    due = due.or_else(|| Instant::now().checked_add(self.interval));
                    if points == self.size {
                        break Ok(None);
                    }
                }
                Ok(Message::Flush(done)) => break Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) => break Ok(None),
                Err(RecvTimeoutError::Disconnected) => break Err(RecvError),
            }
        };
        if points > 0 {
            self.pass_on(&batch, points);
        }
        end
    }

    fn pass_on(&mut self, batch: &str, points: usize) {
        self.count.waiting.fetch_sub(points, Ordering::Relaxed);
        let write = &mut self.write;
        // How the error reads is the user's code, too.
        let warning = match caught(|| write(batch).map_err(|error| format!("points could not be written: {error}"))) {
            Ok(Ok(())) => return,
            Ok(Err(message)) => LockEvent { message: Some(message), ..LockEvent::new(EventKind::Warning) },
            Err(panic) => panic.warning("the function that writes points"),
        };
        self.count.dropped.fetch_add(points as u64, Ordering::Relaxed);
        let _ = caught(|| trace(&warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    const SOON: Duration = Duration::from_secs(30);

    /// What was written, as numbers of lines.
    fn kept(builder: PointsBuilder) -> (Points, Arc<Mutex<Vec<usize>>>) {
        let batches = Arc::<Mutex<Vec<usize>>>::default();
        let kept = Arc::clone(&batches);
        let write = move |lines: &str| {
            kept.lock().push(lines.lines().count());
            Ok(())
        };
        (builder.build(write).unwrap(), batches)
    }

    fn send(points: &Points, number: usize) {
        (0..number).for_each(|_| points.event(&LockEvent::new(EventKind::Round)));
    }

    #[test]
    fn a_batch_is_full_or_flushed_or_the_last_one() {
        let (points, batches) = kept(Points::builder().size(3).interval(Duration::MAX).tag("app", "billing"));
        send(&points, 7);
        assert!(points.flush(SOON));
        assert_eq!(*batches.lock(), [3, 3, 1]);
        send(&points, 2);
        drop(points);
        while Arc::strong_count(&batches) > 1 {
            thread::yield_now();
        }
        assert_eq!(*batches.lock(), [3, 3, 1, 2]);
    }

    #[test]
    fn a_batch_is_passed_on_after_its_interval() {
        let (points, batches) = kept(Points::builder().interval(Duration::from_millis(1)));
        send(&points, 2);
        while batches.lock().iter().sum::<usize>() < 2 {
            thread::yield_now();
        }
        assert_eq!(points.dropped(), 0);
    }

    #[test]
    fn what_is_too_much_or_can_not_be_written_is_dropped_and_counted() {
        let (go, wait) = channel::<()>();
        let mut fail = [true, false].into_iter();
        let write = move |_: &str| {
            _ = wait.recv();
            match fail.next() {
                Some(true) => Err("the database is full".into()),
                Some(false) => panic!("the database is gone"),
                None => Ok(()),
            }
        };
        let points = Points::builder().size(1).build(write).unwrap();
        send(&points, 1);
        while points.count.waiting.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        // The first one is being written, ten may wait.
        send(&points, 12);
        assert_eq!(points.dropped(), 2);
        drop(go);
        assert!(points.flush(SOON));
        assert_eq!(points.dropped(), 4);
    }

    #[test]
    fn what_can_not_be_is_refused() {
        for (builder, argument) in [(Points::builder().size(0), "size"), (Points::builder().interval(Duration::ZERO), "interval")]
        {
            assert_eq!(builder.build(|_| Ok(())).unwrap_err().argument(), Some(argument));
        }
    }
}
