//! What is remembered: events, batches, chain hashes, and the state they fold into.
