//! Options: how a server is started.

use std::path::Path;

use crate::{Binary, RealServer};

/// The options of a server: plain, empty and without persistence by default.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub(crate) binary: Option<Binary>,
    pub(crate) password: Option<String>,
    pub(crate) tls: Option<String>,
    pub(crate) mutual: bool,
    pub(crate) persistent: bool,
    pub(crate) clock: bool,
    pub(crate) sentinel: bool,
    pub(crate) cluster: bool,
    pub(crate) config: Vec<String>,
}

impl ServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses a certain version instead of the preferred one.
    pub fn binary(mut self, binary: &Binary) -> Self {
        self.binary = Some(binary.clone());
        self
    }

    /// Sets the password of the default user.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.config(&format!("requirepass {password}"))
    }

    /// Adds a user; the rules are those of `ACL SETUSER`, such as `~app:* +@all -publish`.
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        self.config(&format!("user {name} on >{password} {rules}"))
    }

    /// Uses TLS on the port, with the certificate of that name: `server`, `elsewhere` or `expired`. While the server is killed, a
    /// connection to the port is closed, not refused.
    pub fn tls(mut self, certificate: &str) -> Self {
        self.tls = Some(certificate.to_owned());
        self
    }

    /// Uses TLS on the port, only for clients that show a certificate such as `client`.
    pub fn mutual_tls(mut self, certificate: &str) -> Self {
        self.mutual = true;
        self.tls(certificate)
    }

    /// Keeps data on disk after every write, so that `restart` finds it again.
    pub fn persistent(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// Uses a wall clock that [`RealServer::jump`] sets forward. It works on Linux only, and needs a C compiler.
    pub fn clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Starts a sentinel in place of a server. Its configuration says what it watches.
    pub fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Makes the server a node of a cluster. It is one without slots that knows no other ([`Cluster`](crate::Cluster)).
    pub(crate) fn cluster(mut self) -> Self {
        self.cluster = true;
        self.config("cluster-enabled yes")
    }

    /// Adds a line to the configuration file.
    pub fn config(mut self, line: &str) -> Self {
        self.config.push(line.to_owned());
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> RealServer {
        RealServer::with(self)
    }

    pub(crate) fn configuration(&self, directory: &Path, port: u16) -> String {
        let directory = directory.display();
        let mut lines = vec![
            format!("dir {directory}"),
            "bind 127.0.0.1".to_owned(),
            format!("port {port}"),
            format!("unixsocket {directory}/socket"),
        ];
        if self.sentinel {
            // It keeps no data.
        } else if self.persistent {
            lines.push("appendonly yes\nappendfsync always".to_owned());
        } else {
            lines.push("save \"\"\nappendonly no".to_owned());
        }
        lines.extend_from_slice(&self.config);
        lines.join("\n") + "\n"
    }
}
