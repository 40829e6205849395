//! Typed arguments and answers.

use annals_def::{
    Value,
    typed::{Typed, field},
};
use annals_event::{CallError, Outcome};
use annals_ids::{Mailbox, MemberId, Part};

use crate::{
    behaviour::{Answer, Caller},
    context::{Context, DEFAULT_TIMEOUT_MS, Denied},
};

/// Why a method failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// An operation was denied that the method relies on. It is sent to a caller that waits for an answer, else written
    /// to the process log.
    Denied(Denied),
    /// An error for the caller. One-way callers receive nothing.
    Call(CallError),
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// A generated struct of a method's return values.
pub trait Returned: Sized {
    /// The values in the order of the definition.
    ///
    /// ```
    /// # use annals_reference::*;
    /// use annals_reference::node::typed::Returned;
    ///
    /// let price = avatar::PriceReply { gold: 30 };
    /// assert_eq!(price.into_values(), [Value::UInt(30)]);
    /// ```
    fn into_values(self) -> Vec<Value>;

    /// From such values.
    ///
    /// ```
    /// # use annals_reference::*;
    /// use annals_reference::node::typed::Returned;
    ///
    /// let price = avatar::PriceReply::from_values(&[Value::UInt(30)])?;
    /// assert_eq!(price.gold, 30);
    /// # Ok::<(), CallError>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::InvalidArgs`] if their number or a type differs.
    fn from_values(values: &[Value]) -> Result<Self, CallError>;
}

/// Result of a method with return values.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<R> {
    /// The values.
    Now(R),
    /// No answer yet: [`Later`](crate::typed::Later) gives it.
    Later,
}

impl<R: Returned> From<Reply<R>> for Answer {
    fn from(reply: Reply<R>) -> Self {
        match reply {
            Reply::Now(reply) => Self::Return(reply.into_values()),
            Reply::Later => Self::Later,
        }
    }
}

/// Parameters of a wait for an answer: [`Behaviour::replied`](crate::Behaviour::replied) is called with `then` and
/// `note`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Timeout, milliseconds.
    pub timeout_ms: u64,
    /// What to do with the answer: a number of the game's choice.
    pub then: u32,
    /// Data to keep until then.
    pub note: Vec<u8>,
}

impl Wait {
    /// With the default timeout, [`DEFAULT_TIMEOUT_MS`].
    ///
    /// ```
    /// # use annals_reference::*;
    /// /// What to do with the answer.
    /// const PRICE: u32 = 1;
    ///
    /// let wait = Wait::then(PRICE, b"for the sword".to_vec());
    /// assert_eq!(wait.timeout_ms, 5_000);
    /// // With another time:
    /// let patient = Wait { timeout_ms: 60_000, ..wait };
    /// ```
    #[must_use]
    pub fn then(then: u32, note: Vec<u8>) -> Self {
        Self {
            timeout_ms: DEFAULT_TIMEOUT_MS,
            then,
            note,
        }
    }

    /// Calls a method and waits for its answer.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// Wait::then(1, Vec::new()).ask(own.context, monster, "takeDamage", vec![Value::Int(4)])?;
    /// // The same, by generated code:
    /// monster::CellMailbox(monster).ask_take_damage(own.context, 4, Wait::then(1, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called().len(), 2);
    /// ```
    ///
    /// # Errors
    /// As for [`Context::ask`].
    pub fn ask(self, context: &mut Context<'_>, to: Mailbox, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        context.ask(to, method, args, self.timeout_ms, (self.then, self.note))
    }

    /// Creates an entity on the base owner that the director names; [`Behaviour::learned`](crate::Behaviour::learned)
    /// is called with the answer.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// Wait::then(1, Vec::new()).create_anywhere(own.context, "Hero", Vec::new())?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["learned 1 Created"]);
    /// ```
    ///
    /// # Errors
    /// As for [`Context::create_base_anywhere`].
    pub fn create_anywhere(
        self,
        context: &mut Context<'_>,
        entity_type: &str,
        new: NewProperties,
    ) -> Result<(), Denied> {
        context.create_base_anywhere(entity_type, new, self.timeout_ms, (self.then, self.note))
    }

    /// As [`create_anywhere`](Self::create_anywhere), on the home of another entity.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// let friend = own.context.mailbox(Part::Base);
    /// Wait::then(1, Vec::new()).create_beside(own.context, friend, "Hero", Vec::new())?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["learned 1 Created"]);
    /// ```
    ///
    /// # Errors
    /// As for [`Context::create_base_beside`].
    pub fn create_beside(
        self,
        context: &mut Context<'_>,
        other: Mailbox,
        entity_type: &str,
        new: NewProperties,
    ) -> Result<(), Denied> {
        context.create_base_beside(other, entity_type, new, self.timeout_ms, (self.then, self.note))
    }
}

/// Properties of a new entity that differ from their defaults.
type NewProperties = Vec<(MemberId, Value)>;

/// The arguments of a call, or the values of an answer, if their number is the declared one.
///
/// # Errors
/// If it is not.
pub fn arguments<const N: usize>(values: &[Value]) -> Result<&[Value; N], CallError> {
    values
        .try_into()
        .map_err(|_| CallError::InvalidArgs(format!("{N} values are declared, {} were given", values.len())))
}

/// Converts one of them.
///
/// # Errors
/// If it has another type.
pub fn argument<T: Typed>(name: &str, value: &Value) -> Result<T, CallError> {
    field(name, value).map_err(|mismatch| CallError::InvalidArgs(mismatch.to_string()))
}

/// The return values of an awaited method, in [`Behaviour::replied`](crate::Behaviour::replied).
///
/// ```
/// # use annals_reference::*;
/// let outcome: Outcome = Ok(vec![Value::UInt(30)]);
/// let price: avatar::PriceReply = node::typed::returned(&outcome)?;
/// assert_eq!(price.gold, 30);
/// # Ok::<(), CallError>(())
/// ```
///
/// # Errors
/// The method's error; [`CallError::NoReply`] if no answer came in time; [`CallError::InvalidArgs`] if the values
/// differ from the declaration.
pub fn returned<R: Returned>(outcome: &Outcome) -> Result<R, CallError> {
    match outcome {
        Ok(values) => R::from_values(values),
        Err(error) => Err(error.clone()),
    }
}

/// The failure of a call of an unknown method: impossible if behaviour runs on the schema it was generated from.
#[must_use]
pub fn no_method(entity_type: &str, part: Part, method: MemberId) -> Failure {
    Failure::Call(CallError::Internal(format!(
        "{entity_type} has no {part} method {method}"
    )))
}

/// Converts a result to the answer of a call. A denial is sent to an entity that waits; otherwise it is reported.
pub fn answer(context: &mut Context<'_>, caller: &Caller, done: Result<Answer, Failure>) -> Answer {
    match done {
        Ok(answer) => answer,
        Err(Failure::Call(error)) => Answer::Fail(error),
        Err(Failure::Denied(denied)) => {
            let error = CallError::Internal(denied.to_string());
            if !caller.wants_reply || caller.client().is_some() {
                context.report(denied);
            }
            Answer::Fail(error)
        }
    }
}
