//! Connection: a raw connection to a server, with which tests look at it without the library under test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::PATIENCE;

/// One reply of a server, in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `nil`, of a missing key or an array that isn't one.
    Nil,
    /// A status such as `OK`.
    Status(String),
    /// An error, with its code.
    Error(String),
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Reply>),
}

impl Reply {
    /// The string or status, or `None` for nil. Panics for anything else.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Nil => None,
            Self::Status(text) | Self::Text(text) => Some(text),
            other => panic!("not a string: {other:?}"),
        }
    }

    /// The integer. Panics for anything else.
    pub fn int(self) -> i64 {
        match self {
            Self::Int(int) => int,
            other => panic!("not an integer: {other:?}"),
        }
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that sends one command at a time and waits for its reply.
pub struct Connection(BufReader<Box<dyn Stream>>);

impl Connection {
    /// Connects to a unix socket.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(Box::new(stream))))
    }

    /// Connects to a port of this machine.
    pub fn tcp(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(Box::new(stream))))
    }

    /// Sends a command without waiting for its reply.
    pub fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(request.as_bytes())
    }

    /// Sends a command and returns the server's reply; an error reply is a reply.
    pub fn command(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.send(words)?;
        self.reply()
    }

    /// Waits for the next reply or push.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mark, rest) = line.trim_end().split_at(1);
        let number = || rest.parse::<i64>().map_err(io::Error::other);
        Ok(match mark {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Int(number()?),
            "$" => match usize::try_from(number()?) {
                Err(_) => Reply::Nil,
                Ok(length) => {
                    let mut text = vec![0; length + 2];
                    self.0.read_exact(&mut text)?;
                    text.truncate(length);
                    Reply::Text(String::from_utf8_lossy(&text).into_owned())
                }
            },
            "*" => match usize::try_from(number()?) {
                Err(_) => Reply::Nil,
                Ok(length) => Reply::Array((0..length).map(|_| self.reply()).collect::<io::Result<_>>()?),
            },
            _ => return Err(io::Error::other(format!("no RESP2 reply: {line:?}"))),
        })
    }
}
