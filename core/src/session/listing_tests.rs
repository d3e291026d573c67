//! A list in parts, of a server that is another one meanwhile.

use std::sync::Arc;

use crate::op::{Cursor, Op, Reply, Verdict};
use crate::server::{Completion, Request, Server};
use crate::sync::Mutex;
use crate::{Client, Code};

/// A server that lists nothing in two parts, and answers each of them with its next run id.
struct Parts {
    run_ids: Mutex<Vec<&'static str>>,
    cursors: Mutex<Vec<u64>>,
}

impl Server for Parts {
    fn address(&self) -> &str {
        "parts"
    }

    fn submit(&self, request: Request, completion: Completion) {
        let Op::Scan { cursor, .. } = request.op else { panic!("{:?}", request.op) };
        self.cursors.lock().push(cursor.own);
        let run_id = self.run_ids.lock().pop().map(Arc::from);
        let next = Cursor { own: if cursor.own == 0 { 7 } else { 0 }, place: 0 };
        completion.complete(Ok(Reply { run_id, ..Reply::new(Verdict::Scanned { next, keys: Vec::new() }, 0, 0) }));
    }
}

/// The cursors that a list asks for, and the code of its error.
fn listed(run_ids: &[&'static str]) -> (Vec<u64>, Option<Code>) {
    let run_ids = Mutex::new(run_ids.iter().rev().copied().collect());
    let parts = Arc::new(Parts { run_ids, cursors: Mutex::default() });
    let client = Client::builder().server(Arc::clone(&parts) as Arc<dyn Server>).build().unwrap();
    let listed = client.locks_blocking("*", None);
    let cursors = parts.cursors.lock().clone();
    (cursors, listed.err().map(|error| error.code()))
}

#[test]
fn a_list_begins_again_where_another_server_answers() {
    assert_eq!(listed(&["a", "a"]), (vec![0, 7], None));
    assert_eq!(listed(&[]), (vec![0, 7], None), "nobody says which server it is");
    assert_eq!(listed(&["a", "b", "b", "b"]), (vec![0, 7, 0, 7], None));
    assert_eq!(listed(&["a", "b", "a", "b", "a", "a"]), (vec![0, 7, 0, 7, 0, 7], None));
    let (cursors, code) = listed(&["a", "b"].repeat(10));
    assert_eq!((cursors.len(), code), (20, Some(Code::Unavailable)), "it never ends");
}
