//! A scripted server for tests.
