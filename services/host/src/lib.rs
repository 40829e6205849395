//! The shells: clock, sockets, files and one thin binary per service.
