//! Plays the steps of a scenario with the Rust SDK, and reports what it observes: the runner beside
//! `services/client-ts/test/live/runner.mjs`, with the same steps and observations.

use std::{collections::BTreeMap, future::pending, net::SocketAddr, sync::Arc, time::Duration};

use annals_client::{
    Callbacks, Changed, Client, Config, Credentials, EndReason, Event, NoSuchProperty, Password, Reads, Showing, Trust,
    What, client_endpoint,
};
use annals_def::{DataType, EntityType, Schema, Value};
use annals_event::Outcome;
use annals_ids::{Direction, EntityId, Hash, MemberId, Part, Position, TypeId};
use annals_wire::client::ClientMember;
use serde_json::{Value as Json, json};
use tokio::{
    sync::mpsc::{Receiver, Sender, error::TrySendError},
    time::{sleep, timeout},
};

use super::values::{bytes_to_json, from_json, part_at, path_to_json, to_json};

/// Interval of looks at what no event reports.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Interval between two strides of a walk, and the length of one, metres.
const STRIDE_INTERVAL: Duration = Duration::from_millis(50);
const STRIDE: f32 = 2.0;

/// The steps, ascending.
const STEPS: [&str; 13] = [
    "ask",
    "call",
    "leave",
    "log in",
    "look",
    "lose the connection",
    "name the steps",
    "read",
    "read space data",
    "read time of day",
    "restore the network",
    "settle",
    "walk",
];

/// What a player needs to reach a realm.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) login: (SocketAddr, Hash),
    pub(super) schema: Arc<Schema>,
}

/// Why a step could not be done.
type Failure = String;

/// A player that does one step after the other.
pub(super) struct Runner {
    access: Access,
    said: Sender<String>,
    client: Option<Client>,
    callbacks: Callbacks<Vec<Json>>,
    /// The types of the entities that entered a view: one that has left has none any more.
    entered: BTreeMap<EntityId, TypeId>,
    losses: u64,
    /// A client whose network is cut is not driven: nothing reaches it, and nothing that it sends leaves.
    is_cut: bool,
    has_ended: bool,
}

impl Runner {
    pub(super) fn new(access: Access, said: Sender<String>) -> Self {
        let mut callbacks = Callbacks::default();
        for entity_type in access.schema.types() {
            observe_changes(&mut callbacks, &access.schema, entity_type).expect("it has these properties");
        }
        Self {
            access,
            said,
            client: None,
            callbacks,
            entered: BTreeMap::new(),
            losses: 0,
            is_cut: false,
            has_ended: false,
        }
    }

    /// Takes steps, a line of JSON each, and answers each after what was observed before, until there are no more.
    pub(super) async fn run(mut self, mut steps: Receiver<String>) {
        loop {
            tokio::select! {
                step = steps.recv() => {
                    let Some(step) = step else { return };
                    let said = match self.take(&step).await {
                        Ok(answer) => json!({ "answer": answer }),
                        Err(error) => json!({ "error": error }),
                    };
                    self.say(&said);
                }
                () = self.pass() => {}
            }
        }
    }

    /// Does a step; returns its answer.
    async fn take(&mut self, step: &str) -> Result<Json, Failure> {
        let step: Json = serde_json::from_str(step).map_err(|error| error.to_string())?;
        let does = step["does"].as_str().unwrap_or_default();
        match does {
            "log in" => self.log_in(&step)?,
            // What it returns is observed.
            "ask" | "call" => return self.call(&step),
            "settle" => self.until(|client| client.core().unconfirmed_calls() == 0).await?,
            "walk" => self.walk(&step).await?,
            "look" => self.look(&step).await?,
            "read" => return self.read(&step),
            "read space data" => {
                let key = step["key"].as_u64().and_then(|key| u16::try_from(key).ok());
                return Ok(space_data(self.client()?, key.ok_or("a key")?));
            }
            "read time of day" => {
                let core = self.client()?.core();
                let now = core.last_received_at();
                return Ok(json!(now.and_then(|now| core.time_of_day(now))));
            }
            "lose the connection" => self.lose_connection().await?,
            "restore the network" => self.is_cut = false,
            "leave" => self.client_mut()?.leave(),
            "name the steps" => return Ok(json!(STEPS)),
            _ => return Err(format!("unknown step {does}")),
        }
        Ok(Json::Null)
    }

    fn say(&self, said: &Json) {
        match self.said.try_send(said.to_string()) {
            // If the test has ended, nobody reads it.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => panic!("the test does not read what is observed"),
        }
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.client.as_ref().ok_or_else(|| "it has not logged in".to_owned())
    }

    fn client_mut(&mut self) -> Result<&mut Client, Failure> {
        self.client.as_mut().ok_or_else(|| "it has not logged in".to_owned())
    }

    /// Drives the client to its next event, for a moment at most.
    async fn pass(&mut self) {
        let next = async {
            match &mut self.client {
                Some(client) if !self.is_cut && !self.has_ended => client.next().await,
                _ => pending().await,
            }
        };
        match timeout(POLL_INTERVAL, next).await {
            Ok(Some(event)) => self.observe(&event),
            Ok(None) => self.has_ended = true,
            Err(_) => {}
        }
    }

    /// Waits until something holds that no event reports. The test that asks gives up if it takes too long.
    async fn until(&mut self, holds: impl Fn(&Client) -> bool) -> Result<(), Failure> {
        while !holds(self.client()?) {
            if self.said.is_closed() {
                return Err("the test has ended".to_owned());
            }
            self.pass().await;
        }
        Ok(())
    }

    fn log_in(&mut self, step: &Json) -> Result<(), Failure> {
        let text = |key: &str| step[key].as_str().map(str::to_owned).ok_or_else(|| key.to_owned());
        let (name, password) = (text("name")?, text("password")?);
        let credentials = if step["register"] == json!(true) {
            let password = Password(password);
            Credentials::Registration { name, password }
        } else {
            Credentials::password(name, password)
        };
        let (login, certificate) = self.access.login;
        let config = Config {
            login,
            trust: Trust::Pinned(certificate),
            credentials,
            schema: Arc::clone(&self.access.schema),
            seed: 7,
            reads: Reads::Predicted,
        };
        let endpoint = client_endpoint(login).map_err(|error| error.to_string())?;
        self.client = Some(Client::start(endpoint, config));
        self.has_ended = false;
        Ok(())
    }

    fn call(&mut self, step: &Json) -> Result<Json, Failure> {
        let part = part(step)?;
        let (entity, method) = (entity(step)?, step["method"].as_str().ok_or("a method")?);
        let core = self.client()?.core();
        let type_id = type_in_view(core, entity).or_else(|| core.controls().map(|(_, type_id)| type_id));
        let entity_type = type_id.and_then(|type_id| self.access.schema.entity_type(type_id));
        let methods = entity_type.map(|entity_type| match part {
            Part::Base => &entity_type.base_methods,
            Part::Cell => &entity_type.cell_methods,
        });
        let found = methods.and_then(|methods| methods.iter().find(|found| found.name == method));
        let data_type = |i: usize| found.and_then(|found| Some(&found.args.get(i)?.data_type));
        let args = step["args"].as_array().map_or(&[][..], Vec::as_slice);
        let args: Vec<Value> = args
            .iter()
            .enumerate()
            .map(|(i, argument)| from_json(data_type(i), argument))
            .collect();
        let called = self.client_mut()?.call(entity, part, method, &args);
        Ok(called.map_or(json!("refused"), |_| Json::Null))
    }

    async fn walk(&mut self, step: &Json) -> Result<(), Failure> {
        let (to, yaw) = (position(&step["to"])?, metres(&step["yaw"])?);
        let driven = step.get("entity").map(|_| entity(step)).transpose()?;
        self.until(|client| client.core().is_playing() && position_of(client, driven).is_some())
            .await?;
        let from = position_of(self.client()?, driven).ok_or("it has no place")?;
        let strides = ((to.x - from.x).hypot(to.z - from.z) / STRIDE).ceil().max(1.0);
        let mut stride = 1.0;
        while stride <= strides {
            let share = stride / strides;
            let position = Position {
                x: from.x + (to.x - from.x) * share,
                y: to.y,
                z: from.z + (to.z - from.z) * share,
            };
            let direction = Direction {
                yaw,
                ..Direction::default()
            };
            let client = self.client_mut()?;
            let is_sent = match driven {
                Some(driven) => client.move_entity(driven, position, direction),
                None => client.move_to(position, direction),
            };
            if !is_sent {
                return Err("there is no connection to move on, or another driver".to_owned());
            }
            let next = sleep(STRIDE_INTERVAL);
            tokio::pin!(next);
            while !next.is_elapsed() {
                tokio::select! {
                    () = &mut next => {}
                    () = self.pass() => {}
                }
            }
            stride += 1.0;
        }
        Ok(())
    }

    async fn look(&mut self, step: &Json) -> Result<(), Failure> {
        let (entity, at, within) = (entity(step)?, position(&step["at"])?, metres(&step["within"])?);
        self.until(|client| {
            let place = client.core().entity(entity).and_then(|seen| seen.place);
            place.is_some_and(|(found, _)| {
                let off = [found.x - at.x, found.y - at.y, found.z - at.z];
                off.iter().all(|off| off.abs() <= within)
            })
        })
        .await
    }

    fn read(&self, step: &Json) -> Result<Json, Failure> {
        let (entity, property) = (entity(step)?, step["property"].as_str().ok_or("a property")?);
        let core = self.client()?.core();
        let entity_type = type_in_view(core, entity).and_then(|type_id| self.access.schema.entity_type(type_id));
        let found = entity_type.and_then(|entity_type| entity_type.property_named(property));
        let value = core.property(entity, property);
        let read = found.zip(value).map(|(found, value)| to_json(&found.data_type, value));
        Ok(read.unwrap_or(Json::Null))
    }

    async fn lose_connection(&mut self) -> Result<(), Failure> {
        let before = self.losses;
        self.client_mut()?.cut();
        while self.losses == before && !self.has_ended {
            self.pass().await;
        }
        self.is_cut = true;
        Ok(())
    }

    /// The observation of an answer.
    fn answered(
        &self,
        client: &Client,
        entity: EntityId,
        (part, method): (Part, MemberId),
        outcome: &Outcome,
    ) -> Option<Json> {
        let entity_type =
            type_in_view(client.core(), entity).and_then(|found| self.access.schema.entity_type(found))?;
        let method = entity_type.method_of(part, method)?;
        let mut observed = json!({
            "event": "answered", "part": part_name(part), "entity": entity.0.to_string(),
            "type": self.name_of_type(self.entered.get(&entity).copied()), "member": method.name,
        });
        match outcome {
            Ok(values) => {
                let values = method.returns.iter().zip(values);
                let values: Vec<Json> = values.map(|(of, value)| to_json(&of.data_type, value)).collect();
                observed["values"] = json!(values);
            }
            Err(error) => observed["failure"] = json!(error.to_string()),
        }
        Some(observed)
    }

    /// Reports what an event says, or has callbacks report it.
    fn observe(&mut self, event: &Event) {
        let Some(client) = &self.client else { return };
        let mut observed = Vec::new();
        match event {
            Event::Lost(_) => self.losses += 1,
            Event::Entered { entity, type_id, .. } => {
                self.entered.insert(*entity, *type_id);
            }
            _ => {}
        }
        let type_name = |entity: &EntityId| self.name_of_type(self.entered.get(entity).copied());
        match event {
            Event::Shown(Showing {
                entity,
                what: What::Called { method, args },
                ..
            }) => {
                let type_id = type_in_view(client.core(), *entity);
                let entity_type = type_id.and_then(|type_id| self.access.schema.entity_type(type_id));
                let found = entity_type.and_then(|found| found.client_methods.get(usize::from(method.0)));
                if let Some(found) = found {
                    let args = found.args.iter().zip(args);
                    let args: Vec<Json> = args.map(|(of, argument)| to_json(&of.data_type, argument)).collect();
                    observed.push(json!({
                        "event": "called", "entity": entity.0.to_string(), "type": type_name(entity),
                        "member": found.name, "args": args,
                    }));
                }
            }
            Event::Shown(Showing {
                entity,
                what: What::Replied {
                    part, method, outcome, ..
                },
                ..
            }) => observed.extend(self.answered(client, *entity, (*part, *method), outcome)),
            Event::Connected { entity, type_id, .. } => observed.push(self.controls("connected", *entity, *type_id)),
            Event::Controls { entity, type_id } => observed.push(self.controls("controls", *entity, *type_id)),
            Event::Entered { part, entity, .. } => observed.push(json!({
                "event": "entered", "part": part_name(*part), "entity": entity.0.to_string(),
                "type": type_name(entity),
            })),
            Event::Left { part, entity } => observed.push(json!({
                "event": "left", "part": part_name(*part), "entity": entity.0.to_string(), "type": type_name(entity),
            })),
            Event::SpaceDataChanged { key, .. } => observed.push(json!({
                "event": "spaceDataChanged", "key": key, "value": space_data(client, *key),
            })),
            other => observed.extend(plain(other)),
        }
        self.callbacks.dispatch(&mut observed, client.core(), event);
        observed.iter().for_each(|said| self.say(said));
    }

    fn controls(&self, event: &str, entity: EntityId, type_id: TypeId) -> Json {
        json!({ "event": event, "entity": entity.0.to_string(), "type": self.name_of_type(Some(type_id)) })
    }

    fn name_of_type(&self, type_id: Option<TypeId>) -> Option<&str> {
        let entity_type = self.access.schema.entity_type(type_id?)?;
        Some(&entity_type.name)
    }
}

/// What an event says that needs no definitions.
fn plain(event: &Event) -> Option<Json> {
    Some(match event {
        Event::Queued { position, length } => {
            json!({ "event": "queued", "position": position, "length": length })
        }
        Event::Lost(reason) => json!({ "event": "lost", "reason": format!("{reason:?}") }),
        Event::Resumed { .. } => json!({ "event": "resumed" }),
        Event::RateWarned => json!({ "event": "rateWarned" }),
        Event::Placed { entity, position, .. } => json!({
            "event": "placed", "entity": entity.0.to_string(),
            "place": coordinates(*position),
        }),
        Event::Drives { entity, drives } => json!({
            "event": "drives", "entity": entity.0.to_string(), "drives": drives,
        }),
        Event::SpaceEntered { space, .. } => json!({ "event": "spaceEntered", "space": space.0 }),
        Event::CallRefused {
            entity,
            part,
            number,
            reason,
        } => json!({
            "event": "callRefused", "part": part_name(*part), "entity": entity.0.to_string(),
            "number": number.0.to_string(), "reason": format!("{reason:?}"),
        }),
        Event::CallsLost { entity, part, numbers } => json!({
            "event": "callsLost", "part": part_name(*part), "entity": entity.0.to_string(),
            "numbers": numbers.iter().map(|number| number.0.to_string()).collect::<Vec<_>>(),
        }),
        Event::Downloaded {
            description, content, ..
        } => json!({ "event": "downloaded", "description": description, "content": bytes_to_json(content) }),
        Event::DownloadEnded(_) => json!({ "event": "downloadEnded" }),
        Event::Ended(reason) => match reason {
            EndReason::LoginRefused(reason) => ended("loginRefused", &format!("{reason:?}")),
            EndReason::Rejected(reason) => ended("rejected", &format!("{reason:?}")),
            EndReason::Closed(reason) => ended("closed", &format!("{reason:?}")),
            EndReason::Banned => json!({ "event": "ended", "how": "banned" }),
            EndReason::Left => json!({ "event": "ended", "how": "left" }),
        },
        _ => return None,
    })
}

fn ended(how: &str, reason: &str) -> Json {
    json!({ "event": "ended", "how": how, "reason": reason })
}

/// Registers callbacks for all changes of a type's properties that clients see.
fn observe_changes(
    callbacks: &mut Callbacks<Vec<Json>>,
    schema: &Schema,
    entity_type: &EntityType,
) -> Result<(), NoSuchProperty> {
    for member in entity_type.client_properties() {
        let Some(property) = entity_type.property(*member) else {
            continue;
        };
        let name = (entity_type.name.as_str(), property.name.as_str());
        let described = || Described {
            entity_type: entity_type.name.clone(),
            property: property.name.clone(),
            data_type: property.data_type.clone(),
            client_id: property.client_id.map(ClientMember),
        };
        let of = described();
        callbacks.set(schema, name, move |observed, changed, old| {
            let mut said = of.changed(&changed, &[], None);
            if let Some(old) = old {
                said["old"] = to_json(&of.data_type, old);
            }
            observed.push(said);
        })?;
        if !matches!(property.data_type, DataType::Array(_) | DataType::FixedDict(_)) {
            continue;
        }
        let of = described();
        callbacks.nested(schema, name, move |observed, changed, steps, old| {
            let mut said = of.changed(&changed, steps, None);
            if let Some((data_type, _)) = of.part(&changed, steps) {
                said["old"] = to_json(data_type, old);
            }
            observed.push(said);
        })?;
        let of = described();
        callbacks.slice(schema, name, move |observed, changed, steps, range, old| {
            let mut said = of.changed(&changed, steps, Some(range.start as usize..range.end as usize));
            said["at"] = json!(range.start);
            if let Some((DataType::Array(sequence), _)) = of.part(&changed, steps) {
                let old = old.iter().map(|element| to_json(&sequence.of, element));
                said["old"] = Json::Array(old.collect());
            }
            observed.push(said);
        })?;
    }
    Ok(())
}

/// A property whose changes are observed.
struct Described {
    entity_type: String,
    property: String,
    data_type: DataType,
    client_id: Option<ClientMember>,
}

impl Described {
    /// The part of the present value to which steps lead.
    fn part<'v>(&'v self, changed: &Changed<'v>, steps: &[annals_def::Step]) -> Option<(&'v DataType, &'v Value)> {
        let value = changed.seen.property(self.client_id?)?;
        part_at(&self.data_type, value, steps)
    }

    /// A change, with the present value at its path, or these elements of it.
    fn changed(
        &self,
        changed: &Changed<'_>,
        steps: &[annals_def::Step],
        elements: Option<std::ops::Range<usize>>,
    ) -> Json {
        let value = self.part(changed, steps).map(|(data_type, value)| {
            let whole = to_json(data_type, value);
            match (elements, &whole) {
                (Some(range), Json::Array(all)) => json!(all.get(range)),
                _ => whole,
            }
        });
        json!({
            "event": "changed", "entity": changed.entity.0.to_string(), "type": self.entity_type,
            "member": self.property, "path": path_to_json(steps), "value": value,
        })
    }
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Base => "base",
        Part::Cell => "cell",
    }
}

fn part(step: &Json) -> Result<Part, Failure> {
    match step["part"].as_str() {
        Some("base") => Ok(Part::Base),
        Some("cell") => Ok(Part::Cell),
        other => Err(format!("no part: {other:?}")),
    }
}

fn entity(step: &Json) -> Result<EntityId, Failure> {
    let id = step["entity"].as_str().and_then(|id| id.parse().ok());
    id.map(EntityId).ok_or_else(|| format!("no entity: {}", step["entity"]))
}

fn metres(json: &Json) -> Result<f32, Failure> {
    #[expect(clippy::cast_possible_truncation, reason = "coordinates have this precision")]
    let metres = json.as_f64().map(|metres| metres as f32);
    metres.ok_or_else(|| format!("no number: {json}"))
}

fn position(json: &Json) -> Result<Position, Failure> {
    let [x, y, z] = [metres(&json[0])?, metres(&json[1])?, metres(&json[2])?];
    Ok(Position { x, y, z })
}

fn coordinates(Position { x, y, z }: Position) -> [f64; 3] {
    [x, y, z].map(f64::from)
}

/// Where an entity is seen: the own one, if none is named.
fn position_of(client: &Client, entity: Option<EntityId>) -> Option<Position> {
    let own = client.core().controls().map(|(own, _)| own);
    Some(client.core().entity(entity.or(own)?)?.place?.0)
}

fn type_in_view(core: &annals_client::ClientCore, entity: EntityId) -> Option<TypeId> {
    let views = [Part::Cell, Part::Base].map(|part| core.view(part).entities().get(&entity));
    views.into_iter().flatten().next().map(|seen| seen.type_id)
}

fn space_data(client: &Client, key: u16) -> Json {
    let value = client.core().space_data().and_then(|data| data.get(key));
    value.map_or(Json::Null, bytes_to_json)
}
