//! Accounts: who logs in, which avatars they have, and which one they play.

use annals_def::{Schema, Value};
use annals_event::Audience;
use annals_node::{Answer, Context, Denied, Request};

use crate::{PLAZA, elements, near, properties, text, unknown, unsigned};

/// Whoever has not chosen an avatar after so long is given one, milliseconds.
pub const CHOICE_MS: u64 = 1_000;

/// Most avatars of one account.
const MAX_AVATARS: usize = 8;

/// Longest name of an avatar, characters.
const MAX_NAME: usize = 32;

pub(crate) fn client_attached(context: &mut Context<'_>) -> Result<(), Denied> {
    let log_ins = unsigned(context.get("logIns")?);
    context.set("logIns", Value::UInt((log_ins + 1) % (1 << 32)))?;
    if let Value::Mailbox(Some(avatar)) = *context.get("avatar")? {
        // Whoever played it on another connection sees that one closed.
        let (from, to) = (context.entity(), avatar.entity);
        context.request(Request::GiveClient { from, to });
        return Ok(());
    }
    offer(context)
}

/// Shows the client its avatars and lets it choose.
fn offer(context: &mut Context<'_>) -> Result<(), Denied> {
    let names = context.get("avatarNames")?.clone();
    context.invoke(Audience::Own, "onAvatars", vec![names])?;
    context.set_timer(CHOICE_MS, 0, 0);
    Ok(())
}

/// The client has had time to choose.
pub(crate) fn timer(schema: &Schema, context: &mut Context<'_>) -> Result<(), Denied> {
    let chose = context.get("avatar")? != &Value::Mailbox(None);
    if chose || context.client().is_none() {
        return Ok(());
    }
    let known = elements(context.get("avatarNames")?).into_iter().next();
    let name = match known {
        Some(Value::Unicode(name)) => name,
        _ => {
            let name = own_name(context)?;
            remember(context, &name)?;
            name
        }
    };
    enter(schema, context, &name, None)
}

pub(crate) fn client_lost(context: &mut Context<'_>) -> Result<(), Denied> {
    if context.get("avatar")? == &Value::Mailbox(None) {
        let entity = context.entity();
        context.request(Request::Destroy { entity });
    }
    Ok(())
}

pub(crate) fn call(schema: &Schema, context: &mut Context<'_>, name: &str, args: &[Value]) -> Result<Answer, Denied> {
    match (name, args) {
        ("createAvatar", [Value::Unicode(avatar), appearance]) => {
            create_avatar(schema, context, avatar, appearance)?;
        }
        ("enterWorld", [Value::Unicode(avatar)]) => {
            if elements(context.get("avatarNames")?).contains(&text(avatar)) {
                enter(schema, context, avatar, None)?;
            } else {
                refuse(context, "you have no avatar of this name")?;
            }
        }
        ("avatarLeft", []) => {
            context.set("avatar", Value::Mailbox(None))?;
            match context.client() {
                Some(_) => offer(context)?,
                None => client_lost(context)?,
            }
        }
        _ => return Ok(unknown(name)),
    }
    Ok(Answer::DONE)
}

fn create_avatar(schema: &Schema, context: &mut Context<'_>, avatar: &str, appearance: &Value) -> Result<(), Denied> {
    let known = elements(context.get("avatarNames")?);
    let reason = if avatar.trim().is_empty() || avatar.chars().count() > MAX_NAME {
        "a name has 1 to 32 characters"
    } else if known.contains(&text(avatar)) {
        "you have an avatar of this name"
    } else if known.len() >= MAX_AVATARS {
        "you have as many avatars as one can have"
    } else {
        remember(context, avatar)?;
        return enter(schema, context, avatar, Some(appearance));
    };
    refuse(context, reason)
}

fn remember(context: &mut Context<'_>, avatar: &str) -> Result<(), Denied> {
    let mut names = elements(context.get("avatarNames")?);
    names.push(text(avatar));
    context.set("avatarNames", Value::Sequence(names))
}

fn refuse(context: &mut Context<'_>, reason: &str) -> Result<(), Denied> {
    context.invoke(Audience::Own, "onRefused", vec![text(reason)])
}

/// Makes the avatar and gives it the client. If another one is in the world, the client is given to that.
fn enter(schema: &Schema, context: &mut Context<'_>, name: &str, appearance: Option<&Value>) -> Result<(), Denied> {
    let from = context.entity();
    if let Value::Mailbox(Some(avatar)) = *context.get("avatar")? {
        let to = avatar.entity;
        context.request(Request::GiveClient { from, to });
        return Ok(());
    }
    let account = Value::Mailbox(Some(context.mailbox(annals_ids::Part::Base)));
    let of_base = vec![("account", account), ("knownAs", text(name))];
    let avatar = context.create_base("Avatar", properties(schema, "Avatar", of_base))?;
    context.set("avatar", Value::Mailbox(Some(avatar)))?;
    let mut of_cell = vec![("name", text(name))];
    of_cell.extend(appearance.map(|appearance| ("appearance", appearance.clone())));
    let place = near(context, annals_ids::Position::default(), PLAZA);
    let entity = avatar.entity;
    // In this order, so that the cell part begins with its client.
    context.request(Request::GiveClient { from, to: entity });
    context.request(Request::CreateCell {
        entity,
        place,
        properties: properties(schema, "Avatar", of_cell),
    });
    Ok(())
}

/// What an avatar is called whose player did not say.
fn own_name(context: &Context<'_>) -> Result<String, Denied> {
    Ok(match context.get("accountName")? {
        Value::Unicode(name) if !name.is_empty() => name.chars().take(MAX_NAME).collect(),
        _ => format!("Wanderer {}", context.entity()),
    })
}
