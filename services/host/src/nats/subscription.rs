//! A subscription that yields what services have sent. A user who may create consumers of a stream can have a stored
//! message delivered to any subject, also to those on which it may not publish; JetStream marks such a message.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_nats::{Message, Subscriber};
use futures::Stream;

/// Start of the reply subject of every message that a consumer delivers.
const OF_CONSUMERS: &str = "$JS.ACK.";

/// Messages on a subject, without those that a consumer of a stream delivers there.
#[derive(Debug)]
pub struct Subscription(Subscriber);

impl From<Subscriber> for Subscription {
    fn from(subscriber: Subscriber) -> Self {
        Self(subscriber)
    }
}

impl Stream for Subscription {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_next(context)) {
                Some(message) if is_delivered(&message) => {
                    tracing::warn!(
                        subject = %message.subject,
                        "ignored a message that a consumer of a stream delivered: a process with permission to read \
                         logs misuses it"
                    );
                }
                message => return Poll::Ready(message),
            }
        }
    }
}

fn is_delivered(message: &Message) -> bool {
    message
        .reply
        .as_ref()
        .is_some_and(|reply| reply.starts_with(OF_CONSUMERS))
}
