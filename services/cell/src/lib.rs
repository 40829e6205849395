//! The cell core: real entities, ghosts, witnesses, hand-over.
