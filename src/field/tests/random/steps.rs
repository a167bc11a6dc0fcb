//! What may happen at random, and how often.

use proptest::prelude::*;

use super::AGENTS;
use crate::field::tests::model::{How, Link, PutAway};

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Register {
        agent: usize,
        role: u8,
        over: Option<u64>,
    },
    Deregister {
        agent: usize,
        target: usize,
        over: Option<u64>,
    },
    Record {
        agent: usize,
        over: Option<u64>,
        draft: bool,
        links: Vec<(Link, usize)>,
        confidence: (u8, u8),
    },
    Retract {
        agent: usize,
        unit: usize,
    },
    Commit {
        agent: usize,
        unit: usize,
        links: Option<Vec<(Link, usize)>>,
    },
    Discard {
        agent: usize,
        unit: usize,
    },
    Merge {
        agent: usize,
        conflict: usize,
        how: How,
        winner: Winner,
        text: bool,
    },
    Look {
        agent: usize,
        over: Option<u64>,
    },
    Compact {
        agent: usize,
        how: PutAway,
        status: Option<usize>,
        max_age: Option<u64>,
        preview: bool,
    },
    Subscribe {
        agent: usize,
        over: Option<u64>,
        name: u8,
        events: Option<u8>,
        debounce_ms: Option<u64>,
    },
    Unsubscribe {
        agent: usize,
        name: u8,
    },
    Again,
    Drop(u64),
    Wait(u64),
    Attune {
        agent: usize,
        over: Option<u64>,
        own: bool,
        archived: bool,
    },
    /// From here on embeddings can be made, or cannot.
    Outage(bool),
    /// The embeddings of these units were made at last, of those that wait and of others.
    Enriched(Vec<usize>),
    /// So many units were compared behind.
    Behind(usize),
}

/// Whom a MERGE names as winner.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Winner {
    Nobody,
    Older,
    Newer,
    Any(usize),
}

fn merge() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        6 => Just(How::Vote),
        3 => Just(How::Human),
        1 => Just(How::LastWrite),
        2 => Just(How::Confidence),
        2 => Just(How::Evidence),
        1 => Just(How::Authority),
        2 => Just(How::Synthesis),
    ];
    let winner = prop_oneof![
        3 => Just(Winner::Nobody),
        3 => Just(Winner::Older),
        3 => Just(Winner::Newer),
        1 => (0..100usize).prop_map(Winner::Any),
    ];
    // Seldom wrong: whether there is a text follows from the strategy.
    let odd = prop::bool::weighted(0.1);
    (0..AGENTS.len(), 0..100usize, how, winner, odd).prop_map(|(agent, conflict, how, winner, odd)| {
        let joins = how == How::Synthesis;
        let winner = if joins && !odd { Winner::Nobody } else { winner };
        Step::Merge { agent, conflict, how, winner, text: joins != odd }
    })
}

fn links() -> impl Strategy<Value = Vec<(Link, usize)>> {
    let link = prop_oneof![
        3 => Just(Link::Supersedes),
        3 => Just(Link::Contradicts),
        1 => Just(Link::Supports),
        1 => Just(Link::Informs),
    ];
    prop::collection::vec((link, 0..100usize), 0..3)
}

/// What COMPACT asks for by status.
pub(super) const STATUSES: [&str; 4] = ["active", "superseded", "retracted", "pending_enrichment"];

fn compact() -> impl Strategy<Value = Step> {
    let how =
        prop_oneof![3 => Just(PutAway::Archive), 2 => Just(PutAway::Summarize), 1 => Just(PutAway::Purge)];
    let (status, max_age) =
        (prop::option::weighted(0.7, 0..STATUSES.len()), prop::option::weighted(0.6, 0..25u64));
    (0..AGENTS.len(), how, status, max_age, prop::bool::weighted(0.2)).prop_map(
        |(agent, how, status, max_age, preview)| Step::Compact { agent, how, status, max_age, preview },
    )
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let agent = || 0..AGENTS.len();
    let over = || prop::option::weighted(0.4, 1..4u64);
    let unit = || 0..100usize;
    prop_oneof![
        3 => (agent(), 0..2u8, over()).prop_map(|(agent, role, over)| Step::Register { agent, role, over }),
        1 => (agent(), agent(), over())
            .prop_map(|(agent, target, over)| Step::Deregister { agent, target, over }),
        12 => (agent(), over(), prop::bool::weighted(0.3), links(), (1..4u8, 0..2u8)).prop_map(
            |(agent, over, draft, links, confidence)| Step::Record { agent, over, draft, links, confidence }
        ),
        10 => merge(),
        3 => (agent(), unit()).prop_map(|(agent, unit)| Step::Retract { agent, unit }),
        5 => (agent(), unit(), prop::option::weighted(0.3, links()))
            .prop_map(|(agent, unit, links)| Step::Commit { agent, unit, links }),
        1 => (agent(), unit()).prop_map(|(agent, unit)| Step::Discard { agent, unit }),
        3 => compact(),
        2 => (agent(), over()).prop_map(|(agent, over)| Step::Look { agent, over }),
        4 => (agent(), over(), 0..5u8, prop::option::weighted(0.8, 0..3u8), prop::option::weighted(0.3, 0..3u64))
            .prop_map(|(agent, over, name, events, debounce_ms)| Step::Subscribe {
                agent, over, name, events, debounce_ms
            }),
        1 => (agent(), 1..5u8).prop_map(|(agent, name)| Step::Unsubscribe { agent, name }),
        2 => (agent(), over(), any::<bool>(), any::<bool>())
            .prop_map(|(agent, over, own, archived)| Step::Attune { agent, over, own, archived }),
        3 => any::<bool>().prop_map(Step::Outage),
        3 => prop::collection::vec(unit(), 1..4).prop_map(Step::Enriched),
        2 => Just(Step::Again),
        2 => (1..4u64).prop_map(Step::Drop),
        2 => (1..6usize).prop_map(Step::Behind),
        2 => prop_oneof![Just(1_000), Just(29_990), Just(30_000)].prop_map(Step::Wait),
    ]
}
