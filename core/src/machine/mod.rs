//! One server's behaviour as a pure state machine.
