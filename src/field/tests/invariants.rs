//! What holds of every state, however it came about.

use std::collections::BTreeSet;

use super::*;
use crate::protocol::ConflictStatus;
use crate::protocol::UnitStatus::{Contested, Superseded};

/// Recounts what the world keeps counted, and checks what its collections say of each other.
pub fn check(world: &World) {
    for status in UnitStatus::ALL {
        let recount = standing(world).filter(|slot| slot.status == *status).count() as u64;
        assert_eq!(world.count(*status), recount, "{status}");
    }
    assert_eq!(world.live_by_author.len(), world.agents.len());
    for (no, kept) in (0..).zip(&world.live_by_author) {
        let live = standing(world).filter(|slot| slot.author == no && slot.status.is_live()).count();
        assert_eq!(*kept as usize, live, "live units of agent {no}");
    }
    put_away(world);
    pending(world);
    timeline(world);
    conflicts(world);
    chains(world);
    subscriptions(world);
}

/// All units but those that were purged.
fn standing(world: &World) -> impl Iterator<Item = &Slot> {
    world.units.iter().filter(|slot| !slot.purged)
}

fn put_away(world: &World) {
    let numbered = || (0..).zip(&world.units);
    let archived: Vec<_> = numbered().filter(|(no, _)| world.is_archived(*no)).collect();
    assert_eq!(world.archived.len() as usize, archived.len());
    for (_, slot) in &archived {
        assert!(!slot.purged && slot.status != Contested && slot.status != UnitStatus::Draft, "{}", slot.id);
    }
    let live = |author| {
        let of = |(_, slot): &&(UnitNo, &Slot)| slot.status.is_live() && author == slot.author;
        archived.iter().filter(of).count() as u64
    };
    let agents = 0..world.agents.len() as AgentNo;
    let all: u64 = agents
        .map(|no| {
            assert_eq!(world.archived_live(Some(no)), live(no), "archived live units of agent {no}");
            live(no)
        })
        .sum();
    assert_eq!(world.archived_live(None), all);
    let purged = numbered().filter(|(_, slot)| slot.purged && slot.place.is_some()).count();
    assert_eq!(world.purged as usize, purged);
    let cold = |place: u32| {
        let no = world.timeline[place as usize].1;
        world.is_archived(no) || world.slot(no).purged
    };
    let first_warm = (0..world.timeline.len() as u32).find(|place| !cold(*place));
    assert!(world.cold.prefix() <= first_warm.unwrap_or(world.timeline.len() as u32));
    let texts = world.units.iter().filter(|slot| slot.purged).map(|slot| slot.text_bytes());
    assert_eq!(texts.sum::<usize>(), 0, "nothing that was purged is left");
    for (no, slot) in numbered().filter(|(_, slot)| slot.is_shelved()) {
        assert!(world.is_archived(no) && !slot.purged, "what is not archived is held whole");
    }
}

/// What waits for its embedding is live and committed, and is called so unless it is contested.
fn pending(world: &World) {
    for (no, slot) in (0..).zip(&world.units).filter(|(_, slot)| !slot.purged) {
        let waits = world.pending.contains(&no);
        let is_so = slot.status == UnitStatus::PendingEnrichment || (waits && slot.status == Contested);
        assert_eq!(waits, is_so, "{} is {}", slot.id, slot.status);
        assert!(!waits || slot.place.is_some(), "a draft waits for nothing");
    }
    assert!(world.pending.iter().all(|no| !world.slot(*no).purged));
}

fn subscriptions(world: &World) {
    let by_agent: BTreeSet<_> = world
        .subscribed
        .iter()
        .inspect(|(_, ids)| assert!(!ids.is_empty(), "an agent without any has no set"))
        .flat_map(|(agent, ids)| ids.iter().map(|id| (*agent, id.clone())))
        .collect();
    let by_id: BTreeSet<_> = world.subscriptions.iter().map(|(id, of)| (of.agent, id.clone())).collect();
    assert_eq!(by_agent, by_id);
    for (id, record) in &world.subscriptions {
        assert_eq!(*id, record.subscription.id);
        assert!(!record.subscription.events.is_empty());
        let status = world.agent(record.agent).agent.status;
        assert_ne!(status, crate::protocol::AgentStatus::Offline, "who left has none");
    }
}

fn timeline(world: &World) {
    let times: Vec<_> = world.timeline.iter().map(|(epoch, _)| *epoch).collect();
    assert!(times.is_sorted(), "ascending: {times:?}");
    let committed = world.units.iter().filter(|slot| slot.mode == crate::protocol::Mode::Committed);
    assert_eq!(world.timeline.len(), committed.count());
    assert!(world.timeline.iter().all(|&(epoch, no)| world.slot(no).epoch == epoch));
    assert!(world.units.iter().map(|slot| slot.id).is_sorted_by(|a, b| a < b));
}

fn conflicts(world: &World) {
    let mut contested = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    for (no, conflict) in (0..).zip(&world.conflicts) {
        assert_eq!(world.unresolved.contains(&no), conflict.is_unresolved());
        let is_told = matches!(conflict.status, ConflictStatus::Resolved | ConflictStatus::Escalated);
        assert_eq!(conflict.resolution.is_some(), is_told, "{conflict:?}");
        assert!(conflict.status != ConflictStatus::Resolving || !conflict.ballots.is_empty());
        if !conflict.is_unresolved() {
            continue;
        }
        let pair = [conflict.unit_a, conflict.unit_b].map(|id| world.find(id).expect("a known unit"));
        assert!(pair.iter().all(|unit| world.slot(*unit).status.is_live()), "both live: {conflict:?}");
        assert!(world.slot(pair[0]).epoch < world.slot(pair[1]).epoch, "unit_a is the older one");
        assert!(pairs.insert([pair[0].min(pair[1]), pair[0].max(pair[1])]), "one a pair");
        contested.extend(pair);
    }
    for (no, slot) in (0..).zip(&world.units) {
        assert_eq!(slot.status == Contested, contested.contains(&no), "{}", slot.id);
        assert_eq!(world.open_disputes.contains_key(&no), contested.contains(&no), "{}", slot.id);
    }
}

fn chains(world: &World) {
    for (no, slot) in (0..).zip(&world.units) {
        let latest = world.latest(no);
        assert_eq!(latest != no, slot.status == Superseded, "{}", slot.id);
        assert_ne!(world.slot(latest).status, Superseded, "a chain has an end");
    }
}
