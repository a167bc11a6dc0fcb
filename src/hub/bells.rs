//! Who is woken when something was made durable: only those whom it may concern.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::protocol::EventSet;

/// What wakes one follower, or one connection's followers.
#[derive(Debug)]
pub(super) struct Bell {
    rung: Notify,
    /// Agents that are told something without a subscription, and the epoch after which it stands.
    direct: Mutex<BTreeMap<Arc<str>, u64>>,
}

impl Bell {
    /// Resolves when it was rung, also before this was called.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    /// Who is to be told something without a subscription, and after which epoch it stands; takes it away.
    pub fn take_direct(&self) -> BTreeMap<Arc<str>, u64> {
        std::mem::take(&mut *self.direct.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn look(&self, agent: &Arc<str>, after: u64) {
        // The earlier one stays: what comes after it is found on the way.
        self.direct.lock().unwrap_or_else(PoisonError::into_inner).entry(Arc::clone(agent)).or_insert(after);
    }
}

/// All bells of a Field.
#[derive(Debug, Default)]
pub(super) struct Bells(Mutex<Tower>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hangs a bell that listens for nothing yet.
    pub fn hang(self: &Arc<Self>) -> Hung {
        let bell = Arc::new(Bell { rung: Notify::new(), direct: Mutex::default() });
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

    /// Rings those that listen for one of these events.
    pub fn ring(&self, events: EventSet) {
        for (listens, bell) in &self.tower().hung {
            if listens.meets(events)
                && let Some(bell) = bell
            {
                bell.rung.notify_one();
            }
        }
    }

    /// Rings an agent's bells; with `direct`, to look for what is told without a subscription after that epoch.
    pub fn ring_agent(&self, agent: &str, direct: Option<u64>) {
        let tower = self.tower();
        let Some((agent, places)) = tower.agents.get_key_value(agent) else { return };
        tower.ring(agent, places, direct);
    }

    /// Rings all of them, to look for everything after an epoch.
    pub fn ring_all(&self, after: u64) {
        let tower = self.tower();
        for (agent, places) in &tower.agents {
            tower.ring(agent, places, Some(after));
        }
        tower.hung.iter().filter_map(|(_, bell)| bell.as_ref()).for_each(|bell| bell.rung.notify_one());
    }
}

impl Tower {
    fn ring(&self, agent: &Arc<str>, places: &[usize], direct: Option<u64>) {
        for bell in places.iter().filter_map(|at| self.hung[*at].1.as_ref()) {
            if let Some(after) = direct {
                bell.look(agent, after);
            }
            bell.rung.notify_one();
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
        bells.ring(EventSet::NONE.with(EventName::MemoryRecorded));
        assert!(!rung(&one) && !rung(&other));
        bells.ring(EventSet::ALL);
        assert!(rung(&one) && !rung(&one) && !rung(&other));
        assert!(one.hear(&"a".into()) && !one.hear(&"a".into()));
        bells.ring_agent("a", Some(7));
        bells.ring_agent("a", Some(9));
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
