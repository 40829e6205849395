//! Global data and global bases, as behaviour accesses them (rules R1 to R4).

use annals_def::Value;
use annals_event::{
    Body, Call, GLOBAL_KEY_BYTES, GLOBAL_KEYS, GLOBAL_VALUE_BYTES, GlobalData, GlobalEntry, GlobalScope, Registration,
    Subject,
    latest::value::{MAX_DEPTH, value_depth, value_length},
};
use annals_ids::{Address, CallNumber, EntityId, Mailbox, OwnerId, Part, SpaceId, TypeId};

use super::{Context, Denied};
use crate::{
    around::Nowhere,
    behaviour::Caller,
    inquiry::{Learned, NotLearned},
    output::Request,
    owner_context::{GlobalNotice, OwnerContext},
};

impl Context<'_> {
    /// A value of the global data (`globalData`, `baseAppData`, `cellAppData`), as this owner knows it; `None` if there
    /// is none, or parts of this kind have no such data.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_global(GlobalScope::Realm, "weather", Value::Unicode("rain".to_owned()))?;
    /// let weather = own.context.global(GlobalScope::Realm, "weather");
    /// assert_eq!(weather, Some(&Value::Unicode("rain".to_owned())));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn global(&self, scope: GlobalScope, key: &str) -> Option<&Value> {
        self.cx.global_data(scope)?.get(key)
    }

    /// All keys of the global data that have values, with these, ascending by key.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_global(GlobalScope::Cells, "fog", Value::UInt(1))?;
    /// let keys: Vec<&str> = own.context.globals(GlobalScope::Cells).map(|(key, _)| key).collect();
    /// assert_eq!(keys, ["fog"]);
    /// # Ok(()) });
    /// ```
    pub fn globals(&self, scope: GlobalScope) -> impl Iterator<Item = (&str, &Value)> {
        self.cx.global_data(scope).into_iter().flat_map(GlobalData::values)
    }

    /// Writes a value into the global data. This owner's parts see it at once, those of the others within a moment: for
    /// types that [follow](crate::Behaviour::follows_global_data) it, on each owner,
    /// [`global_changed`](crate::Behaviour::global_changed) is called. Of concurrent writes to one key, the later one
    /// wins, by game time; a write is newer than every value that this owner knows.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// own.context.set_global(GlobalScope::Realm, "weather", Value::Unicode("rain".to_owned()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["global_changed Realm weather"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::GlobalScope`] if parts of this kind have no such data, or the scope is the registry;
    /// [`Denied::GlobalKey`] if the key is empty or has more than 128 bytes; [`Denied::GlobalValue`] if the value has
    /// more than 4,096 bytes; [`Denied::GlobalDepth`] if it is nested too deep; [`Denied::GlobalKeys`] if this owner
    /// knows [`GLOBAL_KEYS`] others.
    pub fn set_global(&mut self, scope: GlobalScope, key: &str, value: Value) -> Result<(), Denied> {
        let depth = value_depth(&value);
        if depth > MAX_DEPTH {
            return Err(Denied::GlobalDepth { depth });
        }
        let bytes = value_length(&value);
        if bytes > GLOBAL_VALUE_BYTES {
            return Err(Denied::GlobalValue { bytes });
        }
        self.write_global(scope, key, Some(value))
    }

    /// Removes a value of the global data. The key still counts towards [`GLOBAL_KEYS`]. The removal is written even if
    /// no value is known here: another owner may have written one that has not arrived yet.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_global(GlobalScope::Realm, "weather", Value::UInt(1))?;
    /// own.context.remove_global(GlobalScope::Realm, "weather")?;
    /// assert_eq!(own.context.global(GlobalScope::Realm, "weather"), None);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`set_global`](Self::set_global).
    pub fn remove_global(&mut self, scope: GlobalScope, key: &str) -> Result<(), Denied> {
        self.write_global(scope, key, None)
    }

    /// The base part that is registered under a key (`globalBases`), as this owner knows it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| own.context.register_globally("town hall", 5_000, (1, Vec::new())));
    /// # scene.pass(500);
    /// # scene.on_cell(|own| {
    /// if let Some(hall) = own.context.global_base("town hall") {
    ///     own.context.call(hall, "act", Vec::new())?;
    /// }
    /// # assert!(own.context.global_base("town hall").is_some());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn global_base(&self, key: &str) -> Option<Mailbox> {
        self.cx.global_data(GlobalScope::Registry)?.mailbox(key)
    }

    /// Registers this base part under a key (`registerGlobally`), which at most one entity in the realm has at a time.
    /// [`Behaviour::learned`](crate::Behaviour::learned) is called with `then` and `note`, and
    /// [`Learned::Registered`], [`NotLearned::Taken`], or another reason. By then this owner's parts find it with
    /// [`global_base`](Self::global_base), and those of other owners within a moment.
    ///
    /// The registration ends with the entity, or by [`deregister_globally`](Self::deregister_globally). After
    /// [`NotLearned::Late`] it is not known whether there is one: register again, which has no further effect.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// const REGISTERED: u32 = 1;
    /// own.context.register_globally("town hall", 5_000, (REGISTERED, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called()[0], "learned 1 Ok(Registered { key: \"town hall\" })");
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::GlobalKey`] if the key is empty or has more than 128 bytes.
    /// Later, [`request_denied`](crate::Behaviour::request_denied) gets [`Denied::NoRegistry`] in the first moments of
    /// a realm.
    pub fn register_globally(
        &mut self,
        key: &str,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        self.needs_base("register globally")?;
        check_key(key)?;
        let number = self.await_answer(timeout_ms, (then, note))?;
        let (entity, key) = (self.entity(), key.to_owned());
        self.request(Request::Register { entity, number, key })
    }

    /// Ends this base part's registration under a key (`deregisterGlobally`). Has no effect if it has none. It is
    /// executed after registrations that were requested before.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| own.context.register_globally("town hall", 5_000, (1, Vec::new())));
    /// # scene.pass(500);
    /// # scene.on_base(|own| {
    /// own.context.deregister_globally("town hall")?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert!(scene.on_base(|own| Ok(own.context.global_base("town hall").is_none())));
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::GlobalKey`] if the key is empty or has more than 128 bytes.
    pub fn deregister_globally(&mut self, key: &str) -> Result<(), Denied> {
        let (entity, key) = (self.entity(), key.to_owned());
        self.request(Request::Deregister { entity, key })
    }

    fn write_global(&mut self, scope: GlobalScope, key: &str, value: Option<Value>) -> Result<(), Denied> {
        let (kind, by, now) = (self.cx.state().kind, self.cx.owner(), self.now());
        if scope == GlobalScope::Registry || !scope.includes(kind) {
            return Err(Denied::GlobalScope { scope });
        }
        check_key(key)?;
        let none = GlobalData::default();
        let data = self.cx.global_data(scope).unwrap_or(&none);
        if data.version(key).is_none() && data.len() >= GLOBAL_KEYS {
            return Err(Denied::GlobalKeys { scope });
        }
        let entry = data.next_entry(key, value, now, by);
        self.cx.needs(entry.length())?;
        self.cx.record_global(scope, entry);
        Ok(())
    }
}

impl OwnerContext {
    /// This owner's copy of the data of a scope; `None` if nothing was ever written there.
    #[must_use]
    pub fn global_data(&self, scope: GlobalScope) -> Option<&GlobalData> {
        self.state().globals.get(&scope)
    }

    /// Applies an entry that is newer than the one held.
    pub(crate) fn record_global(&mut self, scope: GlobalScope, entry: GlobalEntry) {
        self.global_notices
            .push_back(GlobalNotice::Changed(scope, entry.clone()));
        self.record(Subject::Owner, false, Body::GlobalData { scope, entry });
    }

    /// Calls the owner that keeps the registry to register a base part that waits under this number. Has no effect if
    /// the part does not wait any more.
    pub fn request_registration(&mut self, (by, of): (EntityId, CallNumber), key: String, registry: OwnerId) {
        let Some(type_id) = self.awaiting(by, of).map(|image| image.type_id) else {
            return;
        };
        let (from, to) = (Address::Owner(self.owner()), Address::Owner(registry));
        self.call(from, to, registry, Call::Register { by, of, key, type_id });
    }

    /// Registers a base part of the calling owner, if the key is free, and answers.
    pub(crate) fn register(&mut self, caller: &Caller, (by, of): (EntityId, CallNumber), key: &str, type_id: TypeId) {
        let mailbox = Mailbox {
            entity: by,
            home: caller.home,
            type_id,
            part: Part::Base,
        };
        let outcome = self.registered(key, mailbox);
        let back = caller.link.back();
        self.call(back.from, back.to, caller.home, Call::Registered { by, of, outcome });
    }

    /// The result of a registration, which is recorded if it is new.
    fn registered(&mut self, key: &str, mailbox: Mailbox) -> Registration {
        let none = GlobalData::default();
        let data = self.global_data(GlobalScope::Registry).unwrap_or(&none);
        match data.entry(key) {
            Some(entry) if entry.mailbox() == Some(mailbox) => return Registration::Done(entry),
            Some(entry) if let Some(by) = entry.mailbox() => return Registration::Taken(by),
            None if data.len() >= GLOBAL_KEYS => {
                let scope = GlobalScope::Registry;
                return Registration::Refused(Denied::GlobalKeys { scope }.to_string());
            }
            _ => {}
        }
        let entry = data.next_entry(key, Some(Value::Mailbox(Some(mailbox))), self.now().world, self.owner());
        if let Err(spent) = self.needs(entry.length()) {
            return Registration::Refused(spent.to_string());
        }
        self.record_global(GlobalScope::Registry, entry.clone());
        Registration::Done(entry)
    }

    /// Delivers the answer of the owner that keeps the registry.
    pub(crate) fn take_registration(&mut self, (by, of): (EntityId, CallNumber), outcome: Registration) {
        let outcome = match outcome {
            Registration::Done(entry) => {
                let key = entry.key.clone();
                self.take_global(GlobalScope::Registry, entry);
                Ok(Learned::Registered { key })
            }
            Registration::Taken(by) => Err(NotLearned::Taken(by)),
            Registration::Refused(why) => Err(NotLearned::Refused(why)),
        };
        self.inform(&Nowhere, (by, of), &outcome);
    }

    /// Applies an entry of another owner if it is newer and this input has room for it; otherwise it is sent again.
    pub fn take_global(&mut self, scope: GlobalScope, entry: GlobalEntry) {
        let data = self.global_data(scope);
        let is_news = data.is_none_or(|data| data.is_news(&entry.key, entry.version));
        if is_news && self.needs(entry.length()).is_ok() {
            self.record_global(scope, entry);
        }
    }

    /// Ends the registration of an entity under a key, if it has it.
    pub(crate) fn end_registration(&mut self, entity: EntityId, key: &str) {
        let Some(data) = self.global_data(GlobalScope::Registry) else {
            return;
        };
        if data.mailbox(key).is_some_and(|holder| holder.entity == entity) {
            let entry = data.next_entry(key, None, self.now().world, self.owner());
            self.record_global(GlobalScope::Registry, entry);
        }
    }

    /// Calls the owner that keeps the registry to end a registration of an entity of this owner.
    pub fn deregister(&mut self, entity: EntityId, key: String, registry: OwnerId) {
        let (from, to) = (Address::Owner(self.owner()), Address::Owner(registry));
        self.call(from, to, registry, Call::Deregister { entity, key });
    }
}

/// The number of the wait in a registration that claims a space: the role takes the answer. Waits of behaviour are
/// numbered from 1.
pub const SPACE_CLAIM: CallNumber = CallNumber(0);

/// The key under which an entity that has claimed a space is registered globally. [`Context::global_base`] with it finds
/// the entity, on every owner.
#[must_use]
pub fn space_key(space: SpaceId) -> String {
    format!("annals/space/{space}")
}

/// Checks a key: the log cannot be read with another.
pub(super) fn check_key(key: &str) -> Result<(), Denied> {
    let bytes = key.len();
    let fits = (1..=GLOBAL_KEY_BYTES).contains(&bytes);
    fits.then_some(()).ok_or(Denied::GlobalKey { bytes })
}
