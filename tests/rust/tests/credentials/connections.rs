//! Connections that are made at the same time, and servers of a quorum.

use std::sync::{Arc, Barrier};

use locktender::Client;
use locktender_tests::ServerOptions;

use crate::tokens::{self, Tokens};

#[test]
fn connections_that_are_made_together_share_one_call() {
    let server = tokens::server(ServerOptions::new());
    let tokens = Tokens::new(&server, None);
    let client = tokens.builder().build().unwrap();
    let barrier = Arc::new(Barrier::new(8));
    let visits = (0..8).map(|number| {
        let (client, barrier) = (client.clone(), Arc::clone(&barrier));
        std::thread::spawn(move || {
            // Each has a runtime of its own, and so a connection.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            barrier.wait();
            runtime.block_on(async { client.lock(format!("a{number}")).acquire().await.unwrap().release().await.unwrap() });
        })
    });
    visits.collect::<Vec<_>>().into_iter().for_each(|visit| visit.join().unwrap());
    assert_eq!(tokens.calls(), 1);
}

#[test]
fn each_server_of_a_quorum_asks_for_itself() {
    let servers = [(); 3].map(|()| ServerOptions::new().password("hunter2").start());
    let provider = || async { Ok::<_, std::io::Error>(locktender::Credentials::new("hunter2")) };
    let urls = servers.iter().map(|server| format!("redis://127.0.0.1:{}", server.port())).collect::<Vec<_>>();
    let client = Client::builder().urls(urls).credentials(provider).build().unwrap();
    client.initialize_quorum().blocking().unwrap();
    client.lock("a").acquire_blocking().unwrap().release_blocking().unwrap();
}
