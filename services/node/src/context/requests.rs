//! Requests of behaviour to its owner, for its own entity or another one.

use annals_event::Call;
use annals_ids::{Address, EntityId, OwnerId, Part};

use super::{Context, Denied};
use crate::output::Request;

impl Context<'_> {
    /// Requests something that only the owner can do. It is executed after the present call; if it is then impossible,
    /// [`request_denied`](crate::Behaviour::request_denied) is called.
    ///
    /// A cell part may request the end of another one that is a ghost here, or has left: the request is forwarded as a
    /// call (rules C1 to C6), after all earlier calls from this part to that one. If there is no such cell part any
    /// more, [`calls_lost`](crate::Behaviour::calls_lost) is called.
    ///
    /// # Errors
    /// If this part cannot make the request, the entity that it names is real elsewhere or unknown, a coordinate is not
    /// a number, or the input has reached its limit of recorded bytes.
    pub fn request(&mut self, request: Request) -> Result<(), Denied> {
        if let Request::Destroy { entity } | Request::DestroyCell { entity } = request
            && let Some(home) = self.forwards_to(entity)
        {
            self.cx.needs(0)?;
            let (from, to) = (self.address(), Address::Cell(entity));
            self.cx.call(from, to, home, Call::DestroyCell);
            return Ok(());
        }
        self.check_request(&request)?;
        self.cx.request(self.entity, request);
        Ok(())
    }

    /// The home of a cell part to which this cell part sends requests by call: a ghost, or one that is real here while
    /// calls to it are in flight.
    fn forwards_to(&self, entity: EntityId) -> Option<OwnerId> {
        if self.part() == Part::Base || entity == self.entity {
            return None;
        }
        match self.cx.image(entity) {
            Some(image) => (!self.cx.is_settled(self.address(), Address::Cell(entity))).then_some(image.home),
            None => Some(self.around.ghost(self.cx.schema(), entity)?.home),
        }
    }

    fn check_request(&self, request: &Request) -> Result<(), Denied> {
        let (what, part) = about(request);
        match (part, self.part()) {
            (Some(Part::Base), Part::Cell) => return Err(Denied::BaseOnly { what }),
            (Some(Part::Cell), Part::Base) => return Err(Denied::CellOnly { what }),
            _ => {}
        }
        let other = match request {
            Request::GiveClient { to, .. } => Some(*to),
            _ => None,
        };
        for entity in std::iter::once(request.entity()).chain(other) {
            if self.cx.image(entity).is_none() {
                return Err(Denied::Elsewhere { entity, what });
            }
        }
        match request {
            Request::CreateCell { place, .. } | Request::OpenSpace { place, .. } if !place.is_sound() => {
                Err(Denied::Place)
            }
            Request::GiveClient { from, to } if from == to => Err(Denied::ClientKept {
                from: *from,
                to: *to,
                why: "the entity already has a client",
            }),
            _ => Ok(()),
        }
    }
}

/// The request's name in denials, and the part that alone can make it.
fn about(request: &Request) -> (&'static str, Option<Part>) {
    match request {
        Request::CreateCell { .. } => ("create a cell part", Some(Part::Base)),
        Request::DestroyCell { .. } => ("end its cell part", None),
        Request::Destroy { .. } => ("end", None),
        Request::GiveClient { .. } => ("give or take a client", Some(Part::Base)),
        Request::CloseClient { .. } => ("close the connection of its client", Some(Part::Base)),
        Request::Teleport { .. } => ("teleport", Some(Part::Cell)),
        Request::OpenSpace { .. } => ("open a space", None),
    }
}
