//! Who listens, as far as relevance goes: one profile for all who play the same role and care for the same, and each
//! unit's relevance to it computed once.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::told::Told;
use crate::protocol::Cursor;
use crate::relevance::Profile;

/// Relevances that are remembered before the older half is forgotten: a few megabytes.
const REMEMBERED: usize = 32 * 1024;

/// Profiles that are kept though nobody listens with them at the moment.
const LATEST: usize = 256;

/// A role and interests.
type Key = (Arc<str>, Box<[Box<str>]>);

/// A profile that at least one listener has.
#[derive(Debug)]
pub(super) struct Known {
    number: u64,
    profile: Profile,
}

/// The profiles of a Field's listeners.
pub(super) struct Profiles {
    meaning: bool,
    next: AtomicU64,
    known: Mutex<HashMap<Key, Weak<Known>>>,
    /// The newest, so that who polls finds its own again.
    latest: Mutex<VecDeque<Arc<Known>>>,
    scores: Mutex<Scores>,
}

#[derive(Default)]
struct Scores {
    new: HashMap<(Cursor, u64), f32>,
    old: HashMap<(Cursor, u64), f32>,
}

impl Profiles {
    pub fn new(meaning: bool) -> Self {
        Self {
            meaning,
            next: AtomicU64::new(0),
            known: Mutex::default(),
            latest: Mutex::default(),
            scores: Mutex::default(),
        }
    }

    /// The profile of a role and interests.
    pub fn of(&self, role: &Arc<str>, interests: &[Box<str>]) -> Arc<Known> {
        let key = (Arc::clone(role), Box::from(interests));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(profile) = known.get(&key).and_then(Weak::upgrade) {
            return profile;
        }
        // Those that nobody has any more are looked for when the map would have to grow.
        if known.len() == known.capacity() {
            known.retain(|_, profile| profile.strong_count() > 0);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let profile = Profile::new(role, interests.iter().map(AsRef::as_ref), self.meaning);
        let profile = Arc::new(Known { number, profile });
        known.insert(key, Arc::downgrade(&profile));
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.push_back(Arc::clone(&profile));
        if latest.len() > LATEST {
            latest.pop_front();
        }
        profile
    }

    /// How much what is told matters to a profile: 1 where it is about no unit.
    pub fn relevance(&self, told: &Told, to: &Known) -> f32 {
        let key = (told.notice.cursor, to.number);
        let scores = || self.scores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = scores().get(key) {
            return known;
        }
        // Two listeners may compute the same at the same time; they come to the same.
        let Some(portrait) = told.portrait(self.meaning) else { return 1.0 };
        let score = to.profile.relevance(portrait);
        scores().insert(key, score);
        score
    }

    /// Whether a question is about one of a profile's interests.
    pub fn interested(&self, told: &Told, listener: &Known) -> bool {
        told.is_question()
            && told.portrait(self.meaning).is_some_and(|unit| listener.profile.is_interested(unit))
    }
}

impl Scores {
    fn get(&self, key: (Cursor, u64)) -> Option<f32> {
        self.new.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    fn insert(&mut self, key: (Cursor, u64), score: f32) {
        if self.new.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, score);
    }
}
