//! Extent: the length of a reply, measured as its bytes arrive, up to the longest reply that may come.
//!
//! A peer may announce any length, or never end. A reply that announces too much is refused before it is read, and before the peer
//! is known to be a server at all. However small the pieces are, each byte is looked at only once.

use redis::{ErrorKind, RedisError};

/// The longest reply. The longest one of a lock's script names a hundred waiters, and takes a tenth of this.
pub(crate) const LONGEST: usize = 1 << 20;

/// The most values in a reply, at all depths together.
pub(crate) const VALUES: usize = 4_096;

/// How long a reply may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// As that of a lock's script.
    #[default]
    Script,
    /// As the map of a cluster: every slot may be a range of its own, with several nodes of which each says several things.
    Map,
}

impl Bounds {
    /// The most bytes, and the most values.
    const fn limits(self) -> (usize, usize) {
        match self {
            Self::Script => (LONGEST, VALUES),
            Self::Map => (32 * LONGEST, 512 * VALUES),
        }
    }
}

/// The greatest depth of a reply: lists in a list in a message would do.
const DEPTH: usize = 8;

/// The longest line: a number, a word or an error.
const LINE: usize = 16 * 1024;

/// The progress through a reply that is not complete yet.
#[derive(Debug)]
pub(crate) struct Extent {
    /// The end of the whole lines so far, and of the texts that they announce. Those texts may not have arrived yet.
    at: usize,
    /// The bytes before this hold no end of the line that begins at `at`.
    looked: usize,
    values: usize,
    /// The number of values that are still to come at each depth.
    wanted: [usize; DEPTH],
    depth: usize,
    bounds: Bounds,
}

impl Default for Extent {
    /// One reply of a script is to come.
    fn default() -> Self {
        Self::within(Bounds::default())
    }
}

/// The reason why the bytes that were read are not the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// The bytes belong to another protocol.
    Foreign,
    /// The bytes are the answer of a TLS server to a client without TLS.
    Tls,
    /// The reply would never end, or be longer than any that may come.
    TooLong(Bounds),
}

impl From<NoReply> for RedisError {
    fn from(no_reply: NoReply) -> Self {
        Self::from((
            ErrorKind::Parse,
            match no_reply {
                NoReply::Foreign => "this is no Redis, or speaks another protocol",
                NoReply::Tls => "this port speaks TLS: its URL begins with rediss://",
                NoReply::TooLong(Bounds::Script) => "a reply is longer than 1 MiB, which none to a lock's script is",
                NoReply::TooLong(Bounds::Map) => "the map of slots is longer than 32 MiB, which none of a cluster is",
            },
        ))
    }
}

impl Extent {
    /// One reply is to come, within these bounds.
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self { at: 0, looked: 0, values: 0, wanted: [1, 0, 0, 0, 0, 0, 0, 0], depth: 0, bounds }
    }

    fn too_long(&self) -> NoReply {
        NoReply::TooLong(self.bounds)
    }

    /// Whether nothing is known yet.
    pub(crate) fn is_new(&self) -> bool {
        self.looked == 0
    }

    /// The length in bytes of the reply with which these bytes begin, if all of it is there. A further call continues where the
    /// last one ended: its bytes are those of the last call, and more.
    pub(crate) fn measure(&mut self, bytes: &[u8]) -> Result<Option<usize>, NoReply> {
        let (longest, most) = self.bounds.limits();
        while let Some(wanted) = self.next_depth() {
            let Some(&kind) = bytes.get(self.at) else { return Ok(None) };
            if !b"+-:_#,($=!*~>%|".contains(&kind) {
                // The beginning of a TLS alert, or of a TLS handshake.
                return Err(if [0x15, 0x16].contains(&kind) { NoReply::Tls } else { NoReply::Foreign });
            }
            let Some(line) = self.line(bytes)? else { return Ok(None) };
            self.wanted[self.depth] = wanted - 1;
            self.values += 1;
            if self.values > most {
                return Err(self.too_long());
            }
            if b"+-:_#,(".contains(&kind) || line == b"$-1" || line == b"*-1" {
                continue;
            }
            let digits = std::str::from_utf8(&line[1..]).map_err(|_| NoReply::Foreign)?;
            let count: u64 = digits.parse().map_err(|_| NoReply::Foreign)?;
            let count = usize::try_from(count).ok().filter(|count| *count <= longest).ok_or(self.too_long())?;
            match kind {
                b'$' | b'=' | b'!' => {
                    self.at += count + 2;
                    self.looked = self.at;
                }
                b'%' => self.descend(2 * count)?,
                b'|' => {
                    // Attributes come before the value that they describe.
                    self.wanted[self.depth] += 1;
                    self.descend(2 * count)?;
                }
                _ => self.descend(count)?,
            }
            if self.at > longest {
                return Err(self.too_long());
            }
        }
        Ok((self.at <= bytes.len()).then_some(self.at))
    }

    /// Goes up to the depth at which values are still to come, and gives their number.
    fn next_depth(&mut self) -> Option<usize> {
        while self.wanted[self.depth] == 0 {
            self.depth = self.depth.checked_sub(1)?;
        }
        Some(self.wanted[self.depth])
    }

    fn descend(&mut self, count: usize) -> Result<(), NoReply> {
        if self.depth + 1 == DEPTH || self.values + count > self.bounds.limits().1 {
            return Err(self.too_long());
        }
        self.depth += 1;
        self.wanted[self.depth] = count;
        Ok(())
    }

    /// The line that begins here, without its end, if all of it is there.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, NoReply> {
        let begin = self.at;
        let from = self.looked.max(begin);
        let end = bytes[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at);
        self.looked = end.map_or(bytes.len(), |end| end + 1);
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + self.looked - from);
        if self.looked - begin > LINE {
            return Err(self.too_long());
        }
        let Some(end) = end else { return Ok(None) };
        self.at = end + 1;
        // A line ends with a carriage return and a line feed.
        bytes[begin..end].strip_suffix(b"\r").map(Some).ok_or(NoReply::Foreign)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// The number of bytes that this thread has looked at.
        pub(crate) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    const TOO_LONG: NoReply = NoReply::TooLong(Bounds::Script);

    #[test]
    fn the_map_of_a_cluster_may_be_longer() {
        let begins = |count: usize| Extent::within(Bounds::Map).measure(format!("*{count}\r\n").as_bytes());
        assert_eq!(begins(VALUES), Ok(None));
        assert_eq!(begins(512 * VALUES), Err(NoReply::TooLong(Bounds::Map)));
    }

    fn length(bytes: &[u8]) -> Result<Option<usize>, NoReply> {
        Extent::default().measure(bytes)
    }

    #[test]
    fn it_is_known_where_every_kind_of_reply_ends() {
        for reply in [
            "+OK\r\n",
            "-NOSCRIPT No matching script\r\n",
            ":12\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(12345678901234567890\r\n",
            "$3\r\nabc\r\n",
            "$0\r\n\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "=7\r\ntxt:abc\r\n",
            "*2\r\n*1\r\n:1\r\n+a\r\n",
            "*2\r\n*0\r\n+a\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "~2\r\n:1\r\n:2\r\n",
            ">2\r\n+smessage\r\n:1\r\n",
            "|1\r\n+ttl\r\n:3\r\n:1\r\n",
            "!5\r\nERR x\r\n",
            "*1\r\n|1\r\n+a\r\n+b\r\n:1\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ] {
            let bytes = reply.as_bytes();
            assert_eq!(length(bytes), Ok(Some(bytes.len())), "{reply:?}");
            let mut piecemeal = Extent::default();
            for cut in 0..bytes.len() {
                assert_eq!(length(&bytes[..cut]), Ok(None), "{:?}", &reply[..cut]);
                assert_eq!(piecemeal.measure(&bytes[..cut]), Ok(None), "{:?}", &reply[..cut]);
            }
            assert_eq!(piecemeal.measure(bytes), Ok(Some(bytes.len())), "{reply:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_by_what_it_says_of_itself() {
        let bulk = |count: usize| format!("${count}\r\n");
        let list = |count: usize| format!("*{count}\r\n");
        for (begin, expected) in [
            (bulk(LONGEST - 20), Ok(None)),
            (bulk(LONGEST), Err(TOO_LONG)),
            (bulk(usize::MAX), Err(TOO_LONG)),
            (list(VALUES - 1), Ok(None)),
            (list(VALUES), Err(TOO_LONG)),
            (format!("%{}\r\n", VALUES / 2), Err(TOO_LONG)),
            (format!("|{}\r\n", u64::MAX), Err(TOO_LONG)),
            (list(2) + &list(VALUES - 4), Ok(None)),
            (list(2) + &list(VALUES - 1), Err(TOO_LONG)),
            (list(3) + &(bulk(LONGEST / 2) + &"x".repeat(LONGEST / 2) + "\r\n").repeat(2), Err(TOO_LONG)),
            (list(1).repeat(DEPTH - 1), Ok(None)),
            (list(1).repeat(DEPTH), Err(TOO_LONG)),
            ("+".to_owned() + &"x".repeat(LINE - 2), Ok(None)),
            ("+".to_owned() + &"x".repeat(LINE), Err(TOO_LONG)),
            ("+".to_owned() + &"x".repeat(LINE) + "\r\n", Err(TOO_LONG)),
            ("\u{15}\u{3}".to_owned(), Err(NoReply::Tls)),
            ("HTTP/1.1".to_owned(), Err(NoReply::Foreign)),
        ] {
            assert_eq!(length(begin.as_bytes()), expected, "{:?}", &begin[..begin.len().min(40)]);
        }
    }
}
