//! On which clients a generated client method is called.

use annals_def::Value;
use annals_event::Audience;
use annals_ids::EntityId;

use crate::context::{Context, Denied};

/// The clients on which a client method is called, and the entity of which they are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Clients that see the calling entity.
    Audience(Audience),
    /// The client of the calling entity alone, which is shown a method of this one.
    InView(EntityId),
}

impl Recipients {
    /// Calls a client method. Generated code does so.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// use annals_reference::node::typed::Recipients;
    ///
    /// let all = Recipients::Audience(Audience::All);
    /// all.invoke(own.context, "onSay", vec![Value::Unicode("Hello".to_owned())])?;
    /// # Ok(()) });
    /// # scene.pass(300);
    /// # assert_eq!(scene.realm.received(scene.player, scene.avatar, "onSay").len(), 1);
    /// ```
    ///
    /// # Errors
    /// As for [`Context::invoke`] and [`Context::invoke_in_view`].
    pub fn invoke(self, context: &mut Context<'_>, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        match self {
            Self::Audience(audience) => context.invoke(audience, method, args),
            Self::InView(entity) => context.invoke_in_view(entity, method, args),
        }
    }
}
