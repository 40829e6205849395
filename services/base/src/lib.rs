//! The base core: base entities, proxies and client sessions.
