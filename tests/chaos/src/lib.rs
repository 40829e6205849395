//! Recovery under every fault: real processes killed, frozen and damaged under bots. All of it is in `tests/chaos/tests`.
