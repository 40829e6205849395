//! What is sent: bus messages, subjects and client frames.
