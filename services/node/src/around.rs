//! What an owner knows of the world around its entities, lent to behaviour while that runs.

use annals_ids::SpaceId;

/// See the module. Whoever holds no cell parts knows nothing, and that is the default of everything here.
pub trait Around {
    /// How far in a space others are known from where an entity stands, metres; `None` if nothing is known of the space.
    fn horizon(&self, _space: SpaceId) -> Option<f32> {
        None
    }
}

/// Where nothing is around.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Around for Nowhere {}
