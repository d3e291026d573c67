//! Work: the bytes that the library sends, taken down by a relay between it and a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use locktender::host::sync::Mutex;
use locktender::{Client, Hold, Lock};

use crate::callers::name;

/// Stands in a recorded name where each write has the time, so that no name is used twice.
const NEW: &str = "0000000000000000";

/// Such a name. All of them have one tag, and so the recorded clock.
pub fn new_name() -> String {
    format!("{{new}}:{}:{NEW}", name(0))
}

/// A hold of a lock, and the bytes of its acquire. The client has had a lock before.
fn acquired(urls: &str, lock: impl FnOnce(&Client) -> Lock) -> (Recorder, Client, Hold, Vec<u8>) {
    let recorder = Recorder::before(urls);
    let client = Client::open(recorder.urls.as_str()).unwrap();
    let lock = lock(&client);
    lock.acquire_blocking().unwrap().release().blocking().unwrap();
    recorder.next();
    let held = lock.acquire_blocking().unwrap();
    let acquire = recorder.next();
    (recorder, client, held, acquire)
}

/// What a caller sends. Every command is answered before the next one of this caller.
pub struct Work {
    /// Sent once, before anything counts.
    pub first: Vec<u8>,
    /// Sent again and again. All of them together count as a pair.
    pub steps: Vec<Vec<u8>>,
    /// Whether a number says that a step was done.
    pub is_done: fn(i64) -> bool,
}

impl Work {
    /// An acquire and a release of a free lock, as the first server gets them.
    pub fn pair(urls: &str, lock: impl FnOnce(&Client) -> Lock) -> Self {
        let (recorder, client, held, acquire) = acquired(urls, lock);
        held.release().blocking().unwrap();
        let release = recorder.next();
        client.close_blocking().unwrap();
        Self { first: Vec::new(), steps: vec![acquire, release], is_done: |number| number >= 0 }
    }

    /// The same two by the library's scripts: as where the user may use neither transactions nor commands that compare, and a
    /// client waits.
    pub fn scripted(url: &str) -> Self {
        let mut stream = BufReader::new(TcpStream::connect(url.trim_start_matches("redis://")).unwrap());
        let mut tell = |command: &[&str]| {
            stream.get_mut().write_all(&words(command)).unwrap();
            // A server doesn't know each of the commands.
            assert_ne!(stream.read_line(&mut String::new()).unwrap(), 0);
        };
        ["-multi", "-delifeq", "-delex"].iter().for_each(|rule| tell(&["ACL", "SETUSER", "default", rule]));
        let recorder = Recorder::before(url);
        let client = Client::open(recorder.urls.as_str()).unwrap();
        let lock = client.lock(name(0));
        let mut sent = [Vec::new(), Vec::new()];
        // On a new connection scripts go as text.
        for _ in 0..3 {
            let held = lock.acquire_blocking().unwrap();
            let acquire = recorder.next();
            tell(&["APPEND", &name(0), " waiters=1"]);
            held.release().blocking().unwrap();
            sent = [acquire, recorder.next()];
        }
        client.close_blocking().unwrap();
        tell(&["ACL", "SETUSER", "default", "+@all"]);
        let steps = sent.iter().map(|sent| last_script(sent)).collect();
        Self { first: Vec::new(), steps, is_done: |number| number >= 0 }
    }

    /// A renewal of a lock that is held.
    pub fn renewal(urls: &str) -> Self {
        // Its locks stay until they expire, so no other side has them.
        let (recorder, client, held, first) = acquired(urls, |client| client.lock(format!("{}:{}", std::process::id(), name(0))));
        // The connection for renewals is opened after a twentieth of the ttl, and the first renewal on it carries the script.
        std::thread::sleep(Duration::from_secs(1));
        held.renew_now().blocking().unwrap();
        recorder.next();
        // In life they come seconds apart, so each of them asks for the time.
        std::thread::sleep(Duration::from_millis(500));
        held.renew_now().blocking().unwrap();
        let renewal = recorder.next();
        client.close_blocking().unwrap();
        Self { first, steps: vec![renewal], is_done: |number| number < 0 }
    }

    /// The least that any library sends for a lock with an owner: `SET NX PX`, and a script that compares and deletes.
    pub fn plain(url: &str, named: &str) -> Self {
        const COMPARE_AND_DELETE: &str =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
        let owner = "app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id=01a1fbe9-40cb-7c52-9d0e-1f6d2c3b4a59";
        let mut stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
        stream.write_all(&words(&["SCRIPT", "LOAD", COMPARE_AND_DELETE])).unwrap();
        let mut answer = [0; "$40\r\n".len() + 40 + 2];
        stream.read_exact(&mut answer).unwrap();
        let sha = String::from_utf8(answer[5..45].to_vec()).unwrap();
        let steps = vec![words(&["SET", named, owner, "NX", "PX", "10000"]), words(&["EVALSHA", &sha, "1", named, owner])];
        Self { first: Vec::new(), steps, is_done: |number| number == 1 }
    }

    /// The same for the lock of another caller, as the library's sides have one each.
    pub fn of_caller(&self, caller: usize) -> Self {
        let (from, to) = (name(0), name(caller));
        let renamed = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap().replace(&from, &to).into_bytes();
        Self { first: renamed(&self.first), steps: self.steps.iter().map(renamed).collect(), is_done: self.is_done }
    }
}

/// What is sent in one write. Each acquire in it proposes the time as its fence, and new names have the time in them.
pub struct Batch {
    bytes: Vec<u8>,
    /// The places of the time.
    times: Vec<usize>,
    /// The number of commands.
    pub commands: usize,
}

impl Batch {
    pub fn new(bytes: Vec<u8>) -> Self {
        // No other word has 16 digits.
        let is_proposal = |at: usize| bytes[..at].ends_with(b"\r\n$16\r\n") && bytes[at].is_ascii_digit();
        let times = (0..bytes.len()).filter(|at| is_proposal(*at) || bytes[*at..].starts_with(NEW.as_bytes())).collect();
        Self { commands: commands(&bytes), bytes, times }
    }

    /// The bytes, with the time as it is now.
    pub fn now(&mut self) -> &[u8] {
        let now = UNIX_EPOCH.elapsed().unwrap().as_micros().to_string();
        for at in &self.times {
            self.bytes[*at..at + now.len()].copy_from_slice(now.as_bytes());
        }
        &self.bytes
    }
}

/// The last command among these, a script.
fn last_script(sent: &[u8]) -> Vec<u8> {
    let name = sent.windows(9).rposition(|word| word == b"\r\nEVALSHA").unwrap();
    let begin = sent[..name].iter().rposition(|byte| *byte == b'*').unwrap();
    sent[begin..].to_vec()
}

/// Has so many readers inside of a lock.
pub fn crowd(url: &str, lock: &str, readers: usize) {
    const FOR_MS: u64 = 600_000;
    let ends = (u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap() + FOR_MS).to_string();
    let marks = format!("{{{lock}}}:~lt:shared");
    let mut stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
    let members: Vec<String> = (0..readers).map(|reader| format!("host=crowd id={reader:036}")).collect();
    let pairs = members.chunks(500).map(|some| some.iter().flat_map(|member| [&*ends, member]).collect::<Vec<_>>());
    let mut commands = vec![words(&["DEL", &marks]), words(&["SET", lock, "read 1", "PXAT", &ends])];
    commands.extend(pairs.map(|pairs| words(&[&["ZADD", &*marks], &pairs[..]].concat())));
    commands.push(words(&["PEXPIREAT", &marks, &ends]));
    stream.write_all(&commands.concat()).unwrap();
    let mut answers = BufReader::new(stream);
    commands.iter().for_each(|_| assert_ne!(answers.read_line(&mut String::new()).unwrap(), 0));
}

/// The number of commands in these bytes.
fn commands(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some((line, mut rest)) = split_line(bytes) {
        for _ in 0..line {
            let (length, word) = split_line(rest).unwrap();
            rest = &word[length + 2..];
        }
        (bytes, count) = (rest, count + 1);
    }
    count
}

/// The number in the first line, behind the sign of its kind, and the bytes behind the line.
fn split_line(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((std::str::from_utf8(&bytes[1..end]).unwrap().parse().unwrap(), &bytes[end + 2..]))
}

/// A command in the form of the protocol.
fn words(words: &[&str]) -> Vec<u8> {
    let words: String = std::iter::once(format!("*{}\r\n", words.len()))
        .chain(words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())))
        .collect();
    words.into_bytes()
}

/// A relay before the first server, and what the library has sent to it since it was last asked.
struct Recorder {
    /// The servers, the first one behind the relay.
    urls: String,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    fn before(urls: &str) -> Self {
        let (first, others) = urls.split_once(',').map_or((urls, None), |(first, others)| (first, Some(others)));
        let address = first.trim_start_matches("redis://").to_owned();
        let relay = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = format!("redis://{}", relay.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in relay.incoming() {
                let (record, address) = (Arc::clone(&record), address.clone());
                std::thread::spawn(move || pass(client.unwrap(), &address, &record));
            }
        });
        Self { urls: others.map_or(front.clone(), |others| format!("{front},{others}")), sent }
    }

    /// What was sent. The first server of several may get it after the others have answered.
    fn next(&self) -> Vec<u8> {
        loop {
            std::thread::sleep(Duration::from_millis(10));
            let sent = std::mem::take(&mut *self.sent.lock());
            if !sent.is_empty() {
                return sent;
            }
        }
    }
}

/// Passes on what a client sends, and writes it down; and the answers.
fn pass(mut client: TcpStream, address: &str, record: &Mutex<Vec<u8>>) {
    let mut server = TcpStream::connect(address).unwrap();
    let (mut back, mut forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        record.lock().extend_from_slice(&buffer[..count]);
        server.write_all(&buffer[..count]).unwrap();
    }
}
