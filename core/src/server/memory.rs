//! The in-memory server.
