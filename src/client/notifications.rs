//! The streams in which a client hands out what the hub pushes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;

use super::attached::Attached;
use super::error::ClientError;
use super::inbox::Inbox;
use crate::protocol::{Cursor, Notification, Subscription};

/// The taking end of an inbox. Dropping it closes the inbox.
#[derive(Debug)]
pub(super) struct Taker {
    inbox: Arc<Inbox>,
    attached: Arc<Attached>,
}

impl Taker {
    pub fn new(inbox: Arc<Inbox>, attached: Arc<Attached>) -> Self {
        Self { inbox, attached }
    }

    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.attached.leave(&self.inbox);
    }
}

/// A subscription's notifications, in the order of their cursors.
///
/// It goes on over lost connections. It ends after [`Client::unsubscribe`], after the agent has left, and with the
/// client; if the Field does not take the subscription back, the last item is the reason.
///
/// **A slow taker** loses nothing and holds up no call. At most 1,024 notifications and 4 MiB of them wait here for
/// each subscription. While none of a client's streams has room and no call waits, the connection is left unread, so
/// that the hub waits too; for at most ten seconds, for the hub closes a connection that takes nothing. Otherwise what
/// does not fit is let go, and once half of the queue is taken the hub is asked for everything after the last one that
/// did fit. A taker that is slow for long beside a fast one makes the hub send much in vain: give it a client of its
/// own. (A debounced subscription is asked for again at the last place before which nothing was held back. A taker that
/// is more than the queue behind while the hub holds something back is told the same again and comes no further until
/// it is faster, or the pause is over.)
///
/// **Dropping it** only stops listening: the subscription stays in the Field until it is unsubscribed, and another
/// stream can take it up where [`Notifications::cursor`] says.
///
/// [`Client::unsubscribe`]: super::Client::unsubscribe
#[derive(Debug)]
pub struct Notifications {
    subscription: Subscription,
    taker: Taker,
}

impl Notifications {
    pub(super) fn new(subscription: Subscription, taker: Taker) -> Self {
        Self { subscription, taker }
    }

    /// The subscription, as the Field had it when this stream began.
    pub fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Where to resume: of the notification that was taken last, or where the stream began.
    pub fn cursor(&self) -> Cursor {
        self.taker.inbox.taken()
    }

    /// The next notification; nothing once the stream has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Notification, ClientError>> {
        poll_fn(|context| self.taker.inbox.poll_take(context)).await
    }
}

impl Stream for Notifications {
    type Item = Result<Notification, ClientError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.taker.inbox.poll_take(context)
    }
}

/// What an agent is told without a subscription (section 12, `"direct"`): only while it is connected, and only what
/// the taker is in time for. Beyond 1,024 waiting notifications further ones are let go and counted.
#[derive(Debug)]
pub struct DirectNotifications {
    taker: Taker,
}

impl DirectNotifications {
    pub(super) fn new(taker: Taker) -> Self {
        Self { taker }
    }

    /// How many were let go for want of room.
    pub fn missed(&self) -> u64 {
        self.taker.inbox.missed()
    }

    /// The next notification; nothing once the client is gone or the agent has left. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Result<Notification, ClientError>> {
        poll_fn(|context| self.taker.inbox.poll_take(context)).await
    }
}

impl Stream for DirectNotifications {
    type Item = Result<Notification, ClientError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.taker.inbox.poll_take(context)
    }
}
