//! Replies in the order of their bytes (RESP 2): pure.

use redis::{RedisResult, Value};

/// The first whole value, and how many bytes it takes; `None` while its end has not arrived.
///
/// # Errors
/// For what is no reply of a Redis; the connection can't be used any more then.
pub(super) fn first(bytes: &[u8]) -> RedisResult<Option<(Value, usize)>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, after) = (&bytes[..end], end + 2);
    let number =
        || line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse::<i64>().ok());
    let value = match (line.first(), number()) {
        (Some(b':'), Some(number)) => Value::Int(number),
        (Some(b'$' | b'*'), Some(-1)) => Value::Nil,
        (Some(b'$'), Some(length)) => return Ok(bulk(bytes, after, length)),
        (Some(b'*'), Some(count)) => return array(bytes, after, count),
        // Statuses and errors, and whatever is none of ours.
        _ => redis::parse_redis_value(&bytes[..after])?,
    };
    Ok(Some((value, after)))
}

fn bulk(bytes: &[u8], after: usize, length: i64) -> Option<(Value, usize)> {
    let end = after.checked_add(usize::try_from(length).ok()?)?;
    let text = bytes.get(after..end)?;
    (bytes.len() >= end + 2).then(|| (Value::BulkString(text.to_vec()), end + 2))
}

fn array(bytes: &[u8], mut after: usize, count: i64) -> RedisResult<Option<(Value, usize)>> {
    let mut values = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(16));
    for _ in 0..count {
        let Some((value, taken)) = first(&bytes[after..])? else { return Ok(None) };
        values.push(value);
        after += taken;
    }
    Ok(Some((Value::Array(values), after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_taken_only_when_it_is_whole() {
        let bytes = b"*5\r\n$4\r\nvote\r\n:17\r\n:-2\r\n$-1\r\n+OK\r\n:9\r\n";
        let whole = bytes.len() - 4;
        for cut in 0..whole {
            assert_eq!(first(&bytes[..cut]).unwrap(), None, "{cut}");
        }
        let fields = vec![Value::BulkString(b"vote".to_vec()), Value::Int(17), Value::Int(-2), Value::Nil, Value::Okay];
        assert_eq!(first(bytes).unwrap(), Some((Value::Array(fields), whole)));
    }

    #[test]
    fn an_error_is_a_value_with_its_code() {
        let (value, taken) = first(b"-NOSCRIPT No matching script.\r\n").unwrap().unwrap();
        assert!(matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT"));
        assert_eq!(taken, 31);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"$x\r\n", b"\r\n", b"*1\r\nhello\r\n"] {
            assert!(first(bytes).is_err(), "{bytes:?}");
        }
    }
}
