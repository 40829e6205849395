//! Recovery from every fault: real processes killed, frozen and damaged while bots play. The code is in
//! `tests/chaos/tests`.
