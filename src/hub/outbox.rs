//! What is pushed to one reader: its followers, taking turns.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;

use super::bells::Hung;
use super::feed::{Feed, Stretch};
use super::follower::{Follower, Gate, Heard, Step};
use super::push::Push;
use crate::field::Listener;
use crate::log::LogError;
use crate::protocol::{Cursor, DIRECT, EventName, EventSet, Subscription};

/// How long to wait before a log that could not be read is tried again.
pub(super) const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Everything that one connection, stream or poll is told. Nothing is queued here: what is not taken costs nothing.
pub struct Outbox {
    feed: Arc<Feed>,
    hung: Hung,
    followers: Vec<Follower>,
    /// Whose turn it is.
    turn: usize,
    gate: Gate,
    /// What had happened when it was made.
    began: u64,
    /// Whether authors hear of resolved conflicts without a subscription.
    direct: bool,
    /// Everything that was pushed, or passed by, stands at or before this place.
    ended: Option<Cursor>,
}

/// What the followers together come to.
enum Round {
    Push(Push),
    /// Nothing at hand, but there is more to look at.
    Again,
    /// Nothing at hand; a follower needs this page of the log.
    Fetch {
        at: usize,
        after: u64,
        goes_on: bool,
        until: Option<Instant>,
    },
    Wait(Option<Instant>),
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("followers", &self.followers.len()).finish_non_exhaustive()
    }
}

impl Outbox {
    /// An outbox to which nothing is attached. With a connection, that connection's own operations are pushed after
    /// their replies only, and its agents are told of their resolved conflicts.
    pub(super) fn new(feed: Arc<Feed>, connection: Option<u64>) -> Self {
        let hung = feed.bells.hang();
        let (gate, began) = (Gate { connection, replied: 0 }, feed.head());
        Self {
            feed,
            hung,
            followers: Vec::new(),
            turn: 0,
            gate,
            began,
            direct: connection.is_some(),
            ended: None,
        }
    }

    /// An agent has spoken over the connection, first at this epoch: it is told what concerns it alone from then on,
    /// also of what happened while the reply was on its way.
    pub fn speaks(&mut self, agent: &str, epoch: u64) {
        if !self.hung.hears(agent) {
            let (agent, since) = (Arc::from(agent), epoch.max(self.began));
            self.hung.hear(&agent);
            // Heard of from now on; what came before rang for nobody here.
            if self.feed.may_have_resolved_since(since) {
                self.hung.bell().look(&agent, since);
            }
        }
    }

    /// The reply to the operation at this epoch is written.
    pub fn replied(&mut self, epoch: u64) {
        self.gate.replied = self.gate.replied.max(epoch);
    }

    /// Attaches a subscription, from a place on. One that is attached already goes on from there, or, with no place
    /// of its own, where it is: what changes about it takes effect at its place in the order.
    pub fn attach(&mut self, listener: Listener, place: Cursor, resumes: bool) {
        let attached = self.followers.iter().position(|known| {
            known.listener().subscription.id == listener.subscription.id
                && known.listener().agent == listener.agent
                && known.events() != EventSet::NONE
        });
        match attached {
            // A repeated message attaches nothing anew.
            Some(at) if !resumes || self.followers[at].listener().since() >= listener.since() => return,
            Some(at) => drop(self.followers.swap_remove(at)),
            None => {}
        }
        if let Some(agent) = &listener.agent {
            self.hung.hear(agent);
        }
        // Listening comes before looking: what is made durable in between rings.
        self.hung.listen(self.events().or(listener.events()));
        // Most connections have one.
        self.followers.reserve_exact(1);
        self.followers.push(Follower::new(&self.feed, listener, place));
    }

    /// Whether nothing is attached.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.followers.is_empty()
    }

    /// Where to resume: nothing at or before it is still to come. With one subscription attached, which may have
    /// ended meanwhile.
    pub fn cursor(&self) -> Option<Cursor> {
        self.followers.iter().map(Follower::safe).min().or(self.ended)
    }

    /// What the bell is rung for. What is told without a subscription has a ring of its own.
    fn events(&self) -> EventSet {
        let subscribed = self.followers.iter().filter(|follower| !is_direct_id(follower.listener()));
        subscribed.fold(EventSet::NONE, |all, follower| all.or(follower.events()))
    }

    /// The next push. Waits for as long as there is none; dropping the wait loses nothing. A stream ends with its
    /// subscription; to a connection something may always be attached.
    pub async fn next(&mut self) -> Option<Push> {
        loop {
            match self.round() {
                Round::Push(push) => return Some(push),
                Round::Again => tokio::task::yield_now().await,
                Round::Fetch { at, after, goes_on, until } => {
                    let page = tokio::select! {
                        page = self.feed.page(after, goes_on) => page,
                        // Others may have something meanwhile.
                        () = self.hung.bell().rung() => continue,
                        () = due(until) => continue,
                    };
                    self.take_page(at, page);
                }
                Round::Wait(_) if self.followers.is_empty() && !self.direct => return None,
                Round::Wait(until) => {
                    tokio::select! {
                        () = self.hung.bell().rung() => {}
                        () = due(until) => {}
                    }
                }
            }
        }
    }

    /// The next push, if one is at hand.
    pub fn ready(&mut self) -> Option<Push> {
        match self.round() {
            Round::Push(push) => Some(push),
            Round::Again | Round::Fetch { .. } | Round::Wait(_) => None,
        }
    }

    /// The next push of what there is already, in memory or in the log; nothing once everything was looked at.
    pub async fn present(&mut self) -> Option<Push> {
        loop {
            match self.round() {
                Round::Push(push) => return Some(push),
                Round::Again => tokio::task::yield_now().await,
                Round::Fetch { at, after, goes_on, .. } => {
                    let page = self.feed.page(after, goes_on).await;
                    if !self.take_page(at, page) {
                        return None;
                    }
                }
                Round::Wait(_) => return None,
            }
        }
    }

    /// Gives a follower the page that it needs; false where the log could not be read.
    fn take_page(&mut self, at: usize, page: Result<Stretch, Arc<LogError>>) -> bool {
        match page {
            Ok(page) => self.followers[at].give_page(page),
            Err(error) => {
                tracing::warn!(%error, "the log cannot be read for a follower; it is tried again");
                self.read_again(at, &error);
                return false;
            }
        }
        true
    }

    /// Lets a follower try a log again that could not be read for it; tells when.
    fn read_again(&mut self, at: usize, error: &LogError) -> Instant {
        tracing::debug!(%error, "a follower waits for the log");
        let then = Instant::now() + LOG_PAUSE;
        self.followers[at].read_again_at(then.into_std());
        then
    }

    /// Lets each follower have its turn until one has something.
    fn round(&mut self) -> Round {
        self.skip();
        self.look_for_direct();
        self.round_of(Instant::now(), true)
    }

    fn round_of(&mut self, now: Instant, again: bool) -> Round {
        let (mut until, mut fetch, mut held, mut more) = (None::<Instant>, None, false, false);
        let mut left = self.followers.len();
        while left > 0 {
            left -= 1;
            let at = self.turn % self.followers.len();
            self.turn = at + 1;
            match self.turn_of(at, now) {
                Step::Push(push) => return Round::Push(push),
                // Begun at once, so that it comes along while others are told.
                Step::Fetch { after, goes_on } => match self.feed.page(after, goes_on).now_or_never() {
                    None => fetch = fetch.or(Some((at, after, goes_on))),
                    Some(page) => {
                        self.take_page(at, page);
                        more = true;
                    }
                },
                Step::Unread(error) => {
                    let then = self.read_again(at, &error);
                    until = Some(until.map_or(then, |until| until.min(then)));
                }
                Step::Again => more = true,
                Step::Wait(due) => until = until.into_iter().chain(due.map(Instant::from_std)).min(),
                Step::Hold => held = held || is_direct_id(self.followers[at].listener()),
                Step::Ended => {
                    self.ended = Some(self.followers[at].safe());
                    self.followers.remove(at);
                    self.turn = at;
                    if self.followers.is_empty() {
                        break;
                    }
                }
            }
        }
        if held && again {
            // What is told directly comes behind the subscriptions, which have all had their turn now.
            return self.round_of(now, false);
        }
        match fetch {
            _ if more => Round::Again,
            Some((at, after, goes_on)) => Round::Fetch { at, after, goes_on, until },
            None => Round::Wait(until),
        }
    }

    /// Passes over what rang for nobody here: a follower that waits need not look at it, however much it is.
    fn skip(&mut self) {
        // In this order: a ring that is not noted yet stands after what was examined by now.
        let examined = self.feed.bells.examined();
        let rung = self.hung.bell().take_rung_after();
        for follower in &mut self.followers {
            follower.skip(rung.map_or(examined, |after| after.min(examined)));
            if rung.is_some() {
                follower.wake();
            }
        }
    }

    /// A follower's turn; the bell listens for what the follower does.
    fn turn_of(&mut self, at: usize, now: Instant) -> Step {
        loop {
            let before = self.followers[at].events();
            let step = self.step(at, now);
            if self.followers[at].events() == before {
                return step;
            }
            self.hung.listen(self.events());
            if !matches!(step, Step::Wait(_)) {
                return step;
            }
            // What came before the bell listened for it did not ring: it is looked for.
        }
    }

    fn step(&mut self, at: usize, now: Instant) -> Step {
        let now = now.into_std();
        let (before, rest) = self.followers.split_at_mut(at);
        let Some((follower, after)) = rest.split_first_mut() else { return Step::Ended };
        if !is_direct_id(follower.listener()) {
            return follower.step(&self.feed, self.gate, now, |_| Heard::Tell);
        }
        let agent = follower.listener().agent.clone().unwrap_or_default();
        let own = |other: &&Follower| {
            let listener = other.listener();
            !is_direct_id(listener) && listener.agent.as_ref() == Some(&agent)
        };
        let others: Vec<_> = before.iter().chain(after.iter()).filter(own).collect();
        follower.step(&self.feed, self.gate, now, |told| match told.notice.concerns_author(&agent) {
            true => undirected(&others, told.notice.cursor),
            false => Heard::Leave,
        })
    }

    /// Something was resolved that concerns an agent of this connection: it is looked for like everything else, from
    /// its place in the stream.
    fn look_for_direct(&mut self) {
        let direct = self.hung.bell().take_direct();
        if direct.is_empty() || !self.direct {
            return;
        }
        let world = self.feed.world();
        for (agent, after) in direct {
            let known = self.followers.iter().any(|follower| is_direct(follower.listener(), &agent));
            let here = world.agent_no(&agent).is_some_and(|no| world.agent(no).is_active());
            // A follower that is there comes by of itself, or has been there already.
            if here && !known {
                let subscription = Subscription {
                    id: DIRECT.into(),
                    events: vec![EventName::ConflictResolved],
                    min_relevance: 0.0,
                    debounce_ms: 0,
                    include_unit: false,
                };
                let listener = Listener::passing(agent, Arc::new(subscription), after);
                self.followers.push(Follower::new(&self.feed, listener, Cursor::new(after, u32::MAX)));
            }
        }
    }
}

/// What becomes of a notice that is told directly, given the agent's subscriptions: one that listens for it brings it;
/// whether it still does is known when it has come as far.
fn undirected(subscriptions: &[&Follower], place: Cursor) -> Heard {
    let listening =
        subscriptions.iter().filter(|other| other.hears_resolved_after().is_some_and(|after| after < place));
    let mut behind = false;
    for other in listening {
        if other.place() >= place {
            return Heard::Leave;
        }
        behind = true;
    }
    if behind { Heard::Later } else { Heard::Tell }
}

fn is_direct_id(listener: &Listener) -> bool {
    *listener.subscription.id == *DIRECT
}

fn is_direct(listener: &Listener, agent: &Arc<str>) -> bool {
    is_direct_id(listener) && listener.agent.as_ref() == Some(agent)
}

/// Resolves at that time; never without one.
async fn due(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
