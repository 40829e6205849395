//! Arguments in, answers out.

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

/// Why a method did not do what it was called for.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Something was denied that the method takes for granted. Whoever waits for an answer is told; else the process's log
    /// is.
    Denied(Denied),
    /// What the caller is to be told. One-way callers are told nothing.
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

/// A generated struct of what a method returns.
pub trait Returned: Sized {
    /// The values in the order of the definition.
    fn into_values(self) -> Vec<Value>;

    /// From such values.
    ///
    /// # Errors
    /// When there are more or fewer, or one is of another type.
    fn from_values(values: &[Value]) -> Result<Self, CallError>;
}

/// What a method with return values answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<R> {
    /// This.
    Now(R),
    /// Nothing yet: [`Later`](crate::typed::Later) will.
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

/// How an answer is waited for: [`Behaviour::replied`](crate::Behaviour::replied) is called with `then` and `note`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// How long, milliseconds.
    pub timeout_ms: u64,
    /// What is to be done with the answer: a number of the game's own.
    pub then: u32,
    /// What has to be remembered until then.
    pub note: Vec<u8>,
}

impl Wait {
    /// As long as usual.
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
    /// # Errors
    /// As for [`Context::ask`].
    pub fn ask(self, context: &mut Context<'_>, to: Mailbox, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        context.ask(to, method, args, self.timeout_ms, (self.then, self.note))
    }
}

/// The arguments of a call, or the values of an answer, if there are as many as declared.
///
/// # Errors
/// When there are more or fewer.
pub fn arguments<const N: usize>(values: &[Value]) -> Result<&[Value; N], CallError> {
    values
        .try_into()
        .map_err(|_| CallError::InvalidArgs(format!("{N} values are declared, {} were given", values.len())))
}

/// One of them.
///
/// # Errors
/// When it is of another type.
pub fn argument<T: Typed>(name: &str, value: &Value) -> Result<T, CallError> {
    field(name, value).map_err(|mismatch| CallError::InvalidArgs(mismatch.to_string()))
}

/// What an awaited method returned.
///
/// # Errors
/// Why it did not, or that it returned something else than declared.
pub fn returned<R: Returned>(outcome: &Outcome) -> Result<R, CallError> {
    match outcome {
        Ok(values) => R::from_values(values),
        Err(error) => Err(error.clone()),
    }
}

/// That a part has no such method: never, if behaviour runs on the schema it was generated from.
#[must_use]
pub fn no_method(entity_type: &str, part: Part, method: MemberId) -> Failure {
    Failure::Call(CallError::Internal(format!(
        "{entity_type} has no {part} method {method}"
    )))
}

/// The answer to a call. What was denied is told to whoever waits; if nobody does, it is reported.
pub fn answer(context: &mut Context<'_>, caller: &Caller, done: Result<Answer, Failure>) -> Answer {
    match done {
        Ok(answer) => answer,
        Err(Failure::Call(error)) => Answer::Fail(error),
        Err(Failure::Denied(denied)) => {
            let error = CallError::Internal(denied.to_string());
            if !caller.wants_reply {
                context.report(denied);
            }
            Answer::Fail(error)
        }
    }
}
