//! Replies in pieces, of every kind, and bytes that are no reply: the crate's parser must give the same values.

use std::io::{self, Read};

use redis::{RedisResult, Value};

use super::{LONGEST, ROOM, Replies};
use crate::op::history::HISTORY_PART;
use crate::server::redis::commands::extent::tests::LOOKS;

/// A socket that gives its bytes in pieces of these lengths, over and over.
struct Pieces<'a> {
    bytes: &'a [u8],
    lengths: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let most = self.lengths.next().copied().unwrap_or(1).min(self.bytes.len()).min(room.len());
        room[..most].copy_from_slice(&self.bytes[..most]);
        self.bytes = &self.bytes[most..];
        Ok(most)
    }
}

/// All replies in `bytes`, up to the first error. No byte is looked at twice, and no more bytes are kept than the longest reply
/// takes, whatever the bytes announce.
fn replies(bytes: &[u8], lengths: &[usize]) -> Vec<RedisResult<Value>> {
    let mut replies = Replies::default();
    let before = LOOKS.get();
    let out = taken(bytes, lengths, &mut replies);
    assert!(LOOKS.get() - before <= bytes.len(), "{} looks at {} bytes", LOOKS.get() - before, bytes.len());
    assert!(replies.buffer.capacity() <= 2 * LONGEST + 4 * ROOM, "{} bytes are kept", replies.buffer.capacity());
    out
}

fn taken(bytes: &[u8], lengths: &[usize], replies: &mut Replies) -> Vec<RedisResult<Value>> {
    let mut pieces = Pieces { bytes, lengths: lengths.iter().cycle() };
    let mut out: Vec<RedisResult<Value>> = Vec::new();
    loop {
        while let Some(reply) = replies.next() {
            let failed = reply.is_err();
            out.push(reply);
            if failed {
                return out;
            }
        }
        match pieces.read(replies.room()).unwrap() {
            0 => return out,
            count => replies.filled(count),
        }
    }
}

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn the_reply_of_a_script_comes_apart() {
    let text = "*5\r\n$4\r\nvote\r\n:1795224130123456\r\n:7\r\n$-1\r\n:-2\r\n";
    let fields = vec![bulk("vote"), Value::Int(1_795_224_130_123_456), Value::Int(7), Value::Nil, Value::Int(-2)];
    let expected = Value::Array(fields);
    for lengths in [vec![1], vec![2, 3], vec![text.len()], vec![1_000]] {
        let both = [text, text].concat();
        let out: Vec<Value> = replies(both.as_bytes(), &lengths).into_iter().map(Result::unwrap).collect();
        assert_eq!(out, [expected.clone(), expected.clone()], "{lengths:?}");
    }
}

#[test]
fn a_text_may_hold_what_ends_a_line() {
    for text in ["\r\n", "*1\r\n:1\r\n", "ä\0", ""] {
        let reply = format!("*1\r\n${}\r\n{text}\r\n", text.len());
        assert_eq!(replies(reply.as_bytes(), &[3]), [Ok(Value::Array(vec![bulk(text)]))], "{text:?}");
    }
}

#[test]
fn what_is_no_reply_is_an_error_and_no_loop() {
    let huge = format!("*{}\r\n", u64::MAX);
    let text = format!("${}\r\n", usize::MAX - 1);
    for garbage in [
        "HTTP/1.1 400 Bad Request\r\n",
        "\r\n",
        "*x\r\n",
        "$-2\r\n",
        ":1\n",
        "*1\r\nx",
        "$?\r\n",
        &huge,
        &text,
        "%0\r\n\u{15}\u{3}",
        "%9223372036854775807\r\n",
    ] {
        let out = replies(garbage.as_bytes(), &[1]);
        assert!(out.iter().any(RedisResult::is_err), "{garbage:?}: {out:?}");
    }
}

#[test]
fn a_long_reply_takes_room_as_it_comes_and_gives_it_back() {
    let long = "x".repeat(20 * ROOM);
    let reply = format!("${}\r\n{long}\r\n", long.len());
    let mut replies = Replies::default();
    let mut rest = reply.as_bytes();
    while replies.next().is_none() {
        let count = rest.read(replies.room()).unwrap();
        assert_ne!(count, 0);
        replies.filled(count);
        assert!(replies.buffer.len() <= 2 * (reply.len() - rest.len()) + ROOM);
    }
    let count = (&b":1\r\n"[..]).read(replies.room()).unwrap();
    replies.filled(count);
    assert_eq!((replies.next(), replies.buffer.len()), (Some(Ok(Value::Int(1))), ROOM));
}

/// A reply of random kinds.
fn random(rng: &mut fastrand::Rng, depth: usize, out: &mut Vec<u8>) {
    let kinds: &[u8] = if depth == 0 { b"+-:_#,($=N" } else { b"+-:_#,($=N***~%>" };
    let kind = *rng.choice(kinds).unwrap_or(&b':');
    let mut line = |text: String| out.extend(format!("{text}\r\n").bytes());
    match kind {
        b'+' => line(["+OK", "+PONG", "+", "+a b"][rng.usize(..4)].into()),
        b'-' => line(["-ERR no", "-LOADING Redis is loading", "-NOSCRIPT No", "-x"][rng.usize(..4)].into()),
        b':' => line(format!(":{}", rng.i64(..))),
        b'#' => line(["#t", "#f"][rng.usize(..2)].into()),
        b',' => line([",1.5", ",inf", ",-0"][rng.usize(..3)].into()),
        b'(' => line(format!("({}", rng.i128(..))),
        b'_' => line("_".into()),
        b'N' => line(["$-1", "*-1"][rng.usize(..2)].into()),
        b'$' => {
            let text: String =
                (0..rng.usize(..12)).map(|_| *rng.choice(&['a', '\r', '\n', 'ö', '*', ':', '$']).unwrap_or(&'b')).collect();
            line(format!("${}\r\n{text}", text.len()));
        }
        b'=' => line("=7\r\ntxt:abc".into()),
        _ => {
            let count = rng.usize(..6);
            line(format!("{}{count}", char::from(kind)));
            let (first, values) = if kind == b'>' { (true, count) } else { (false, count * if kind == b'%' { 2 } else { 1 }) };
            for at in 0..values {
                if first && at == 0 { out.extend(b"+message\r\n") } else { random(rng, depth - 1, out) }
            }
        }
    }
}

/// The number of random streams to try: more by `LOCKTENDER_SEEDS`.
fn seeds() -> u64 {
    std::env::var("LOCKTENDER_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3_000)
}

/// The values that the crate's parser makes of the same bytes.
fn by_the_crate(bytes: &[u8]) -> Vec<RedisResult<Value>> {
    let (mut parser, mut rest, mut out) = (redis::Parser::new(), bytes, Vec::new());
    loop {
        match parser.parse_value(&mut rest) {
            Ok(value) => out.push(Ok(value)),
            Err(error) => {
                // This error looks like the end of a stream that was cut where a reply begins.
                out.push(Err(error));
                return out;
            }
        }
    }
}

#[test]
fn random_replies_in_random_pieces_are_what_the_crate_makes_of_them() {
    for seed in 0..seeds() {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = Vec::new();
        (0..rng.usize(1..6)).for_each(|_| random(&mut rng, 3, &mut bytes));
        let lengths: Vec<usize> = (0..4).map(|_| rng.usize(1..40)).collect();
        let mut expected = by_the_crate(&bytes);
        expected.pop();
        assert_eq!(replies(&bytes, &lengths), expected, "seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn replies_that_are_broken_somewhere_never_become_others() {
    for seed in 0..seeds() {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = Vec::new();
        (0..rng.usize(1..4)).for_each(|_| random(&mut rng, 2, &mut bytes));
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..3) {
                0 => bytes[at] = *rng.choice(b"0123456789-:$*\r\nx~%|").unwrap_or(&0),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, rng.u8(..)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let ours = replies(&bytes, &[rng.usize(1..30)]);
        let crates = by_the_crate(&bytes);
        for (ours, crates) in ours.iter().zip(&crates) {
            // The two may find an error at different places. But replies that both of them read must be equal.
            if let (Ok(ours), Ok(crates)) = (ours, crates) {
                assert_eq!(ours, crates, "seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}

#[test]
fn what_has_no_end_is_refused_and_takes_neither_memory_nor_time() {
    let long = |begin: &str, more: &str| begin.to_owned() + &more.repeat(4 * LONGEST / more.len());
    for endless in [
        long("+", "x"),
        long("", "*1\r\n"),
        long("", "*1000\r\n:1\r\n"),
        long("*4000\r\n", "$1000\r\n"),
        long("$1048000\r\n", "x"),
        long("*8\r\n", &format!("$200000\r\n{}\r\n", "x".repeat(200_000))),
        long(">3000\r\n", "|1\r\n"),
    ] {
        for lengths in [&[1][..], &[7, 4_000], &[100_000]] {
            let out = replies(endless.as_bytes(), lengths);
            assert!(matches!(out[..], [Err(_)]), "{:?}: {} replies", &endless[..20], out.len());
        }
    }
}

#[test]
fn a_part_of_the_history_comes_through() {
    let field = |name: &str, value: &str| format!("$1\r\n{name}\r\n${}\r\n{value}\r\n", value.len());
    let [key, owner, fence] = ["x".repeat(256 + 1_024), "x".repeat(960), "9".repeat(16)];
    let fields = [field("l", &key), field("o", &owner), field("f", &fence), field("s", "released")].concat();
    let entry = format!("*2\r\n$15\r\n1795227605250-0\r\n*8\r\n{fields}");
    let reply = format!("*{HISTORY_PART}\r\n{}", entry.repeat(HISTORY_PART as usize));
    assert_eq!(replies(reply.as_bytes(), &[100_000]), [redis::parse_redis_value(reply.as_bytes())]);
}

#[test]
fn the_longest_reply_of_all_comes_through() {
    // Inspect: a hundred waiters of a kilobyte each, and some of their letters take two bytes.
    let waiters: Vec<String> = (0..100).map(|_| "ö".repeat(512)).collect();
    let texts: String = waiters.iter().map(|waiter| format!("$1024\r\n{waiter}\r\n")).collect();
    let reply = format!("*7\r\n$4\r\ninfo\r\n:1\r\n:1\r\n$-1\r\n:-2\r\n:100\r\n*100\r\n{texts}");
    let out = replies(reply.as_bytes(), &[1_000, 1]);
    assert_eq!(out, [redis::parse_redis_value(reply.as_bytes())]);
    assert!(reply.len() < LONGEST / 8);
}
