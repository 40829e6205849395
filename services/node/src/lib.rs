//! The core contract: log writer, gate, calls, and the driver that services and simulation share.
