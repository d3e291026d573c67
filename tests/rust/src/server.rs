//! Server: a real server as a value.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

use socket2::{Domain, Socket, Type};

use crate::clock::ServerClock;
use crate::terminator::Terminator;
use crate::tether::Tether;
use crate::{Binary, Connection, PATIENCE, Reply, ServerOptions, eventually};

/// The age of a server's answer to TIME: it may have read the clock some moments before.
const TICK_US: u64 = 200_000;

/// How much higher the port of a cluster's bus is: all versions do it so by default.
const BUS: u16 = 10_000;

/// A server in its own process. It ends when the value is dropped and when the test process dies.
pub struct RealServer {
    options: ServerOptions,
    binary: Binary,
    directory: PathBuf,
    port: u16,
    terminator: Option<Terminator>,
    clock: Option<ServerClock>,
    /// `None` while killed.
    tether: Option<Tether>,
    /// Keeps the port while killed.
    kept: Option<Socket>,
}

impl RealServer {
    /// The preferred version with the default options.
    pub fn start() -> Self {
        ServerOptions::new().start()
    }

    pub(crate) fn with(options: ServerOptions) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Short, because a path of a unix socket is at most 107 bytes.
        let name = format!("locktender-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let binary = options.binary.clone().unwrap_or_else(Binary::preferred);
        let clock = options.clock.then(|| ServerClock::new(&name));
        let directory = env::temp_dir().join(name);
        let mut server = Self { options, binary, directory, port: 0, terminator: None, clock, tether: None, kept: None };
        server.run();
        if let Some(certificate) = &server.options.tls {
            server.terminator = Some(Terminator::start(server.port, certificate, server.options.mutual));
        }
        server
    }

    /// Runs the server, on a free port the first time, later on the same port.
    fn run(&mut self) {
        let chosen = self.port != 0;
        self.kept = None;
        loop {
            if !chosen {
                self.port = if self.options.cluster { free_ports() } else { free_port() };
            }
            fs::create_dir_all(&self.directory).unwrap();
            let file = self.directory.join("server.conf");
            fs::write(&file, self.options.configuration(&self.directory, self.port)).unwrap();
            let mut tether = self.tethered(file.to_str().unwrap());
            let ready = self.wait_until_ready(&mut tether);
            self.tether = Some(tether);
            if ready {
                return;
            }
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            // Another program took the free port before the server did: the one case for another try.
            let taken = log.contains("Address already in use") && !chosen;
            assert!(taken, "{} did not start:\n{log}", self.binary.name);
        }
    }

    fn tethered(&self, configuration: &str) -> Tether {
        let program = &self.binary.path;
        match &self.clock {
            None if self.options.sentinel => Tether::start(&self.directory, program, &[configuration, "--sentinel"]),
            None => Tether::start(&self.directory, program, &[configuration]),
            // `env` becomes the server: the process stays the same.
            Some(clock) => {
                let [library, file] = &clock.environment();
                Tether::start(&self.directory, "env".as_ref(), &[library, file, program.to_str().unwrap(), configuration])
            }
        }
    }

    fn wait_until_ready(&self, tether: &mut Tether) -> bool {
        let deadline = Instant::now() + PATIENCE;
        // It listens on the port before it answers on the socket, which nobody else can have.
        while Instant::now() < deadline && !tether.ended() {
            if self.try_command(&["PING"]).is_ok_and(|reply| reply == Reply::Status("PONG".to_owned())) {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// The version of the server.
    pub fn binary(&self) -> &Binary {
        &self.binary
    }

    /// The server's port on 127.0.0.1; it stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.terminator.as_ref().map_or(self.port, |terminator| terminator.port)
    }

    /// The port on which it speaks without TLS.
    pub(crate) fn own_port(&self) -> u16 {
        self.port
    }

    /// The port on which the nodes of a cluster speak with each other.
    pub(crate) fn bus_port(&self) -> u16 {
        self.port + BUS
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.running().pid()
    }

    /// The URL of its port, with the password if it needs one.
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// The same URL with another port, such as a proxy's.
    pub fn url_at(&self, port: u16) -> String {
        let scheme = if self.options.tls.is_some() { "rediss" } else { "redis" };
        let password = self.options.password.as_ref();
        let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
        format!("{scheme}://{login}127.0.0.1:{port}")
    }

    /// The path of its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// The URL of its unix socket.
    pub fn unix_url(&self) -> String {
        let query = self.options.password.as_ref().map(|password| format!("?pass={password}"));
        format!("unix://{}{}", self.socket().display(), query.unwrap_or_default())
    }

    /// A raw connection over the unix socket, logged in.
    pub fn connection(&self) -> io::Result<Connection> {
        let mut connection = Connection::unix(&self.socket())?;
        if let Some(password) = &self.options.password {
            connection.command(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// Asks the server directly, without the library under test. An error reply is a reply.
    pub(crate) fn try_command(&self, words: &[&str]) -> io::Result<Reply> {
        self.connection()?.command(words)
    }

    /// The owner in the value of a lock's key.
    pub fn holder(&self, key: &str) -> Option<String> {
        self.command(&["GET", key]).text().map(|value| locktender::machine::owner_of(&value).to_owned())
    }

    /// Asks the server directly, without the library under test. An error reply fails the test.
    pub fn command(&self, words: &[&str]) -> Reply {
        match self.try_command(words).unwrap() {
            Reply::Error(error) => panic!("{words:?}: {error}"),
            reply => reply,
        }
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        self.tether.take().expect("the server is already killed").kill();
        self.kept = kept(self.port).ok();
    }

    /// Whether there is a process, which may be paused.
    pub(crate) fn is_running(&self) -> bool {
        self.tether.is_some()
    }

    /// Stops the process: connections stay open and nothing answers.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Continues a paused server.
    pub fn resume(&self) {
        self.running().resume();
    }

    /// The server's wall clock, in microseconds since the epoch.
    fn time_us(&self) -> u64 {
        let Reply::Array(parts) = self.command(&["TIME"]) else { panic!("TIME answers with two numbers") };
        let [seconds, micros] = [0, 1].map(|part| parts[part].clone().text().unwrap().parse::<u64>().unwrap());
        seconds * 1_000_000 + micros
    }

    /// Sets the clock of a server started with one ([`ServerOptions::clock`]) forward by a time. Waits until the server uses it:
    /// some versions read the clock only from time to time, and count from there.
    pub fn jump(&self, forward: Duration) {
        let clock = self.clock.as_ref().expect("the server goes by the machine's clock");
        clock.jump(forward);
        eventually("the server sees the clock", PATIENCE, || self.time_us() > clock.now_us() - TICK_US);
    }

    /// Kills the server, if it runs, and starts it on the same port with its data from the disk.
    pub fn restart(&mut self) {
        if let Some(tether) = self.tether.take() {
            tether.kill();
        }
        self.run();
    }

    /// Kills the server, if it runs, and starts it on the same port without any data.
    pub fn restart_empty(&mut self) {
        if let Some(tether) = self.tether.take() {
            tether.kill();
        }
        fs::remove_dir_all(&self.directory).unwrap();
        self.run();
    }

    fn running(&self) -> &Tether {
        self.tether.as_ref().expect("the server is killed")
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        drop(self.tether.take());
        // The tether has removed it already unless the server was killed before.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A socket on which nobody listens. It keeps a port from the servers and the connections of other tests.
fn kept(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // What is left of the killed server's connections is no hindrance. From then on no other socket may listen there.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
    socket.set_reuse_address(false)?;
    Ok(socket)
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A port that was free a moment ago, and that of the bus, too. Both lie below those that a system gives to a program that asks for
/// any: so nobody takes them while a node is killed.
fn free_ports() -> u16 {
    let mut port = process::id() % 10_000;
    loop {
        port = (port + RandomState::new().hash_one(port) as u32 % 1_000) % 10_000;
        let chosen = 11_000 + port as u16;
        if [chosen, chosen + BUS].iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
            return chosen;
        }
    }
}
