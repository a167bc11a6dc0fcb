//! Who is woken when something was made durable: only those whom it may concern.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::protocol::EventSet;

/// What wakes one follower, or one connection's followers.
#[derive(Debug)]
pub(super) struct Bell {
    rung: Notify,
    /// The epoch after which the first operation stands for which it was rung since that was asked last.
    rung_after: AtomicU64,
    /// Agents that are told something without a subscription, and the epoch after which it stands.
    direct: Mutex<BTreeMap<Arc<str>, u64>>,
}

impl Bell {
    /// Resolves when it was rung, also before this was called.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    /// The epoch after which it was first rung for something, if it was rung at all; takes it away.
    pub fn take_rung_after(&self) -> Option<u64> {
        let after = self.rung_after.swap(NEVER, Ordering::SeqCst);
        (after != NEVER).then_some(after)
    }

    fn ring(&self, after: u64) {
        self.rung_after.fetch_min(after, Ordering::SeqCst);
        self.rung.notify_one();
    }

    /// Who is to be told something without a subscription, and after which epoch it stands; takes it away.
    pub fn take_direct(&self) -> BTreeMap<Arc<str>, u64> {
        std::mem::take(&mut *self.direct.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that an agent is to be told something without a subscription, which stands after an epoch.
    pub fn look(&self, agent: &Arc<str>, after: u64) {
        // The earlier one stays: what comes after it is found on the way.
        self.direct.lock().unwrap_or_else(PoisonError::into_inner).entry(Arc::clone(agent)).or_insert(after);
    }
}

/// All bells of a Field.
#[derive(Debug, Default)]
pub(super) struct Bells {
    tower: Mutex<Tower>,
    examined: AtomicU64,
}

/// Stands for no epoch.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Default)]
struct Tower {
    /// By place; what each listens for stands beside it, so that passing over one touches nothing else.
    hung: Vec<(EventSet, Option<Arc<Bell>>)>,
    free: Vec<usize>,
    /// The places of the bells that hear of an agent's own doings.
    agents: HashMap<Arc<str>, Vec<usize>>,
}

/// A bell in its place; dropping it takes it down.
#[derive(Debug)]
pub(super) struct Hung {
    bells: Arc<Bells>,
    bell: Arc<Bell>,
    place: usize,
    agents: HashSet<Arc<str>>,
}

impl Bells {
    fn tower(&self) -> MutexGuard<'_, Tower> {
        self.tower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything up to this epoch has rung whom it concerns.
    pub fn examined(&self) -> u64 {
        self.examined.load(Ordering::SeqCst)
    }

    /// Notes that everything up to an epoch has rung whom it concerns.
    pub fn set_examined(&self, epoch: u64) {
        self.examined.store(epoch, Ordering::SeqCst);
    }

    /// Hangs a bell that listens for nothing yet.
    pub fn hang(self: &Arc<Self>) -> Hung {
        let bell = Arc::new(Bell {
            rung: Notify::new(),
            rung_after: AtomicU64::new(NEVER),
            direct: Mutex::default(),
        });
        let mut tower = self.tower();
        let hung = (EventSet::NONE, Some(Arc::clone(&bell)));
        let place = match tower.free.pop() {
            Some(place) => {
                tower.hung[place] = hung;
                place
            }
            None => {
                tower.hung.push(hung);
                tower.hung.len() - 1
            }
        };
        drop(tower);
        Hung { bells: Arc::clone(self), bell, place, agents: HashSet::new() }
    }

    /// Whether nobody listens.
    pub fn is_empty(&self) -> bool {
        let tower = self.tower();
        tower.free.len() == tower.hung.len()
    }

    /// Rings those that listen for one of these events, which stand after an epoch.
    pub fn ring(&self, events: EventSet, after: u64) {
        for (listens, bell) in &self.tower().hung {
            if listens.meets(events)
                && let Some(bell) = bell
            {
                bell.ring(after);
            }
        }
    }

    /// Rings an agent's bells for an operation after an epoch; where `direct`, to look for what is told without a
    /// subscription.
    pub fn ring_agent(&self, agent: &str, after: u64, direct: bool) {
        let tower = self.tower();
        let Some((agent, places)) = tower.agents.get_key_value(agent) else { return };
        tower.ring(agent, places, after, direct);
    }

    /// Rings all of them, to look for everything after an epoch.
    pub fn ring_all(&self, after: u64) {
        let tower = self.tower();
        for (agent, places) in &tower.agents {
            tower.ring(agent, places, after, true);
        }
        tower.hung.iter().filter_map(|(_, bell)| bell.as_ref()).for_each(|bell| bell.ring(after));
    }
}

impl Tower {
    fn ring(&self, agent: &Arc<str>, places: &[usize], after: u64, direct: bool) {
        for bell in places.iter().filter_map(|at| self.hung[*at].1.as_ref()) {
            if direct {
                bell.look(agent, after);
            }
            bell.ring(after);
        }
    }
}

impl Hung {
    /// The bell itself.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Says what it listens for.
    pub fn listen(&self, events: EventSet) {
        self.bells.tower().hung[self.place].0 = events;
    }

    /// Whether it hears of an agent's doings.
    pub fn hears(&self, agent: &str) -> bool {
        self.agents.contains(agent)
    }

    /// Hears of an agent's doings from now on; false if it does already.
    pub fn hear(&mut self, agent: &Arc<str>) -> bool {
        if !self.agents.insert(Arc::clone(agent)) {
            return false;
        }
        self.bells.tower().agents.entry(Arc::clone(agent)).or_default().push(self.place);
        true
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let mut tower = self.bells.tower();
        for agent in &self.agents {
            if let Some(places) = tower.agents.get_mut(agent) {
                places.retain(|place| *place != self.place);
                if places.is_empty() {
                    tower.agents.remove(agent);
                }
            }
        }
        tower.hung[self.place] = (EventSet::NONE, None);
        tower.free.push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::protocol::EventName;

    fn rung(hung: &Hung) -> bool {
        hung.bell().rung().now_or_never().is_some()
    }

    #[test]
    fn rings_whom_it_concerns() {
        let bells = Arc::new(Bells::default());
        assert!(bells.is_empty());
        let (mut one, other) = (bells.hang(), bells.hang());
        one.listen(EventSet::NONE.with(EventName::AgentJoined));
        bells.ring(EventSet::NONE.with(EventName::MemoryRecorded), 3);
        assert!(!rung(&one) && !rung(&other));
        assert_eq!(one.bell().take_rung_after(), None);
        bells.ring(EventSet::ALL, 4);
        bells.ring(EventSet::ALL, 6);
        assert_eq!((one.bell().take_rung_after(), one.bell().take_rung_after()), (Some(4), None));
        assert!(rung(&one) && !rung(&one) && !rung(&other));
        assert!(one.hear(&"a".into()) && !one.hear(&"a".into()));
        bells.ring_agent("a", 7, true);
        bells.ring_agent("a", 9, true);
        bells.ring_agent("a", 5, false);
        assert_eq!(one.bell().take_rung_after(), Some(5));
        assert!(rung(&one) && !rung(&other));
        assert_eq!(one.bell().take_direct(), BTreeMap::from([("a".into(), 7)]));
        assert!(one.bell().take_direct().is_empty());
    }

    #[test]
    fn a_bell_that_was_taken_down_leaves_nothing() {
        let bells = Arc::new(Bells::default());
        for _ in 0..10 {
            let mut hung: Vec<_> = (0..10).map(|_| bells.hang()).collect();
            assert!(hung.iter_mut().all(|hung| hung.hear(&"a".into())));
        }
        assert!(bells.is_empty() && bells.tower().agents.is_empty());
        assert_eq!(bells.tower().hung.len(), 10);
    }
}
