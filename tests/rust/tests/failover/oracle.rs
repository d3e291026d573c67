//! Oracle: a false sentinel, which names what a test orders.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The service that it reports.
pub const SERVICE: &str = "main";

#[derive(Default)]
struct State {
    host: &'static str,
    port: u16,
    epoch: u64,
    flags: &'static str,
    /// The connections that have subscribed.
    listeners: Vec<TcpStream>,
    asked: usize,
}

/// A listening oracle. It runs until the test process ends.
#[derive(Clone)]
pub struct Oracle {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Oracle {
    /// Names the node at this port of 127.0.0.1, in this epoch.
    pub fn naming(port: u16, epoch: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::new(Mutex::new(State { host: "127.0.0.1", port, epoch, flags: "master", ..State::default() }));
        let oracle = Self { port: listener.local_addr().unwrap().port(), state };
        let serving = oracle.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let oracle = serving.clone();
                thread::spawn(move || oracle.serve(stream.unwrap()));
            }
        });
        oracle
    }

    /// Names another node from now on, and notifies nobody.
    pub fn name(&self, port: u16, epoch: u64) {
        let mut state = self.state.lock().unwrap();
        (state.port, state.epoch) = (port, epoch);
    }

    /// Announces the primary at another host from now on.
    pub fn announce(&self, host: &'static str) {
        self.state.lock().unwrap().host = host;
    }

    /// Shows other flags of the primary, such as `master,o_down`.
    pub fn flag(&self, flags: &'static str) {
        self.state.lock().unwrap().flags = flags;
    }

    /// Publishes a failover of this service.
    pub fn publish(&self, service: &str) {
        let text = format!("{service} 127.0.0.1 1 127.0.0.1 2");
        let message = format!("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{text}\r\n", text.len());
        for listener in &mut self.state.lock().unwrap().listeners {
            listener.write_all(message.as_bytes()).unwrap();
        }
    }

    pub fn listeners(&self) -> usize {
        self.state.lock().unwrap().listeners.len()
    }

    /// How often it was asked for the primary.
    pub fn asked(&self) -> usize {
        self.state.lock().unwrap().asked
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(words) = command(&mut reader) {
            let mut state = self.state.lock().unwrap();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let answer = match *words {
                ["SENTINEL", "MASTER", SERVICE] => {
                    state.asked += 1;
                    state.shown()
                }
                ["SENTINEL", "MASTER", _] => "-ERR No such master with that name\r\n".to_owned(),
                ["SENTINEL", "SENTINELS", _] => "*0\r\n".to_owned(),
                ["SUBSCRIBE", channel] => {
                    state.listeners.push(stream.try_clone().unwrap());
                    format!("*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len())
                }
                _ => "-ERR unknown command\r\n".to_owned(),
            };
            if (&stream).write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

impl State {
    fn shown(&self) -> String {
        let (port, epoch) = (self.port.to_string(), self.epoch.to_string());
        let fields = [
            ("name", SERVICE),
            ("ip", self.host),
            ("port", &port),
            ("flags", self.flags),
            ("config-epoch", &epoch),
            ("quorum", "2"),
            ("down-after-milliseconds", "30000"),
        ];
        let words: Vec<&str> = fields.iter().flat_map(|(name, value)| [*name, *value]).collect();
        let shown: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        format!("*{}\r\n{shown}", words.len())
    }
}

/// The next command, as long as there is one.
fn command(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let count = number(reader)?;
    let mut word = || {
        let mut bytes = vec![0; number(reader)? + 2];
        reader.read_exact(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(bytes.strip_suffix(b"\r\n")?).into_owned())
    };
    (0..count).map(|_| word()).collect()
}

fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}
