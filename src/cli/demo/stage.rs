//! Where the story is played: who is there, what was recorded under which name, and what the Field does not serve and
//! the story has to leave out.

use std::collections::HashMap;
use std::time::Duration;

use super::super::exit::Failure;
use super::super::screen;
use crate::client::{Attune, Client, ClientOptions, Commit, Detect, Merge, Record, Register, Replay};
use crate::protocol::{Capabilities, ConflictId, Operation, UnitId};

/// The running story.
pub(super) struct Stage {
    url: String,
    options: ClientOptions,
    suffix: String,
    pause: Duration,
    can: Capabilities,
    actors: HashMap<&'static str, Client>,
    units: HashMap<&'static str, UnitId>,
}

impl Stage {
    /// `can` is what the Field said that it serves.
    pub fn new(
        url: &str,
        options: ClientOptions,
        suffix: String,
        pause: Duration,
        can: Capabilities,
    ) -> Self {
        let url = url.to_owned();
        Self { url, options, suffix, pause, can, actors: HashMap::new(), units: HashMap::new() }
    }

    fn serves(&self, operation: Operation) -> bool {
        self.can.supported_operations.iter().any(|name| name == operation.name())
    }

    /// Whether the Field compares what is recorded by itself.
    pub fn notices_clashes(&self) -> bool {
        self.can.extensions.iter().any(|name| name == "automatic-detection")
    }

    /// Says once what will not be seen here.
    pub fn tell_what_is_missing(&self) -> Result<(), Failure> {
        let unserved = [Operation::Merge, Operation::Replay].into_iter().filter(|one| !self.serves(*one));
        let mut missing: Vec<_> = unserved.map(|one| one.name().to_owned()).collect();
        if !self.notices_clashes() {
            missing.push("conflicts that the Field notices by itself".to_owned());
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.say(&format!("Left out, because this Field does not serve it: {}", missing.join(", ")))
    }

    /// Tells whoever started it.
    pub fn say(&self, line: &str) -> Result<(), Failure> {
        screen::print(line)
    }

    /// The pause between two steps.
    async fn beat(&self) {
        tokio::time::sleep(self.pause).await;
    }

    /// The pause between two rounds.
    pub async fn rest(&self) {
        tokio::time::sleep(self.pause * 6).await;
    }

    /// Lets an agent join, in a session; one that is there already stays.
    pub async fn join(&mut self, name: &'static str, session: &str, role: Register) -> Result<(), Failure> {
        if let Some(client) = self.actors.remove(name) {
            client.close().await;
        }
        let mut options = self.options.clone().in_session(session);
        options.agent_id = format!("{name}{}", self.suffix);
        let client = Client::connect(&self.url, options).await?;
        let joined = client.register(role).await?;
        let role = joined.agent.map_or_else(String::new, |agent| agent.role.to_string());
        self.actors.insert(name, client);
        self.say(&format!("{name} joins as {role}"))?;
        self.beat().await;
        Ok(())
    }

    fn actor(&self, name: &str) -> Result<&Client, Failure> {
        self.actors.get(name).ok_or_else(|| Failure::failed(format!("{name} is not on stage")))
    }

    /// The id of what was recorded under a label.
    pub fn unit(&self, label: &str) -> Result<UnitId, Failure> {
        let unknown = || Failure::failed(format!("nothing was recorded as {label:?}"));
        self.units.get(label).copied().ok_or_else(unknown)
    }

    /// Records something under a label; the first conflict that it opened.
    pub async fn record(
        &mut self,
        name: &'static str,
        label: &'static str,
        unit: Record,
    ) -> Result<Option<ConflictId>, Failure> {
        let recorded = self.actor(name)?.record(unit).await?;
        self.say(&format!("{name} records {} ({label})", recorded.memory_unit_id))?;
        self.units.insert(label, recorded.memory_unit_id);
        self.beat().await;
        Ok(recorded.conflicts_detected.first().copied())
    }

    /// The conflict about a unit that nobody contradicted, if the Field has noticed one. Where RECORD's answer came before
    /// all was compared, the check does what is left of that and waits for it.
    pub async fn noticed(&self, name: &str, label: &str) -> Result<Option<ConflictId>, Failure> {
        if !self.notices_clashes() || !self.serves(Operation::Detect) {
            return Ok(None);
        }
        let detected = self.actor(name)?.detect(Detect::check(self.unit(label)?)).await?;
        let Some(conflict) = detected.conflicts.first() else { return Ok(None) };
        self.say(&format!("the Field notices {}: {}", conflict.id, conflict.description))?;
        self.beat().await;
        Ok(Some(conflict.id))
    }

    /// Lets an agent be brought what matters to it.
    pub async fn attune(&self, name: &str, request: Attune) -> Result<(), Failure> {
        let brought = self.actor(name)?.attune(request).await?;
        self.say(&format!("{name} attunes and is brought {} units", brought.record.len()))?;
        self.beat().await;
        Ok(())
    }

    /// Makes a draft everyone's.
    pub async fn commit(&self, name: &str, request: Commit) -> Result<(), Failure> {
        let committed = self.actor(name)?.commit(request).await?;
        self.say(&format!("{name} commits the draft {}", committed.memory_unit_id))?;
        self.beat().await;
        Ok(())
    }

    /// Ends a conflict, or has a say in it; where the Field does not serve that, the conflict stays open.
    pub async fn merge(&self, name: &str, request: Merge) -> Result<(), Failure> {
        let strategy = request.strategy().name();
        if !self.can.conflict_strategies.iter().any(|served| served == strategy) {
            return self
                .say(&format!("{name} would settle it by {strategy}, which this Field does not serve"));
        }
        let merged = self.actor(name)?.merge(request).await?;
        self.say(&format!("{name} on {}: {}", merged.conflict.id, merged.status))?;
        self.beat().await;
        Ok(())
    }

    /// Takes a unit back.
    pub async fn retract(&self, name: &str, label: &str, reason: &str) -> Result<(), Failure> {
        let unit = self.unit(label)?;
        self.actor(name)?.retract(unit, reason).await?;
        self.say(&format!("{name} takes {unit} back"))?;
        self.beat().await;
        Ok(())
    }

    /// Asks how something came about, where the Field can tell.
    pub async fn replay(&self, name: &str, request: Replay) -> Result<(), Failure> {
        if !self.serves(Operation::Replay) {
            return Ok(());
        }
        let replayed = self.actor(name)?.replay(request).await?;
        self.say(&format!("{name} replays the decision: {} events", replayed.total_events))?;
        self.beat().await;
        Ok(())
    }

    /// Everybody leaves in good order; where the Field does not serve that, by hanging up.
    pub async fn leave(&mut self) -> Result<(), Failure> {
        let deregisters = self.serves(Operation::Deregister);
        for (_, client) in self.actors.drain() {
            if deregisters {
                client.deregister().await?;
            }
            client.close().await;
        }
        Ok(())
    }
}
