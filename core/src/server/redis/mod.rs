//! A Redis or Valkey server.
