//! What can be asked that changes nothing: ATTUNE, DETECT and REPLAY (section 7).

use serde::Serialize;

use crate::protocol::{
    ConflictStatus, ConflictType, Format, MemoryType, ReplayDepth, ReplayTarget, TemporalLayer, UnitId,
};

#[derive(Debug, Clone, Serialize)]
struct Scope {
    role: String,
    max_units: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_own: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_drafts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<MemoryType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interests: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_task_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    temporal_layers: Vec<TemporalLayer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relevance_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recency_weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of_epoch: Option<u64>,
}

/// ATTUNE's request.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
/// use akashik_hub::client::Attune;
///
/// let need = Attune::for_role("strategist", 10).hint("draft the positioning section").max_tokens(2_000);
/// let found = client.attune(need).await?;
/// // Later: only what is new since then.
/// let news = client.attune(Attune::for_role("strategist", 10).since(found.epoch)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Attune {
    scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_epoch: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    explain: bool,
}

impl Attune {
    /// For this role, at most so many units (1 to 1000).
    pub fn for_role(role: impl Into<String>, max_units: u64) -> Self {
        Self {
            scope: Scope {
                role: role.into(),
                max_units,
                include_own: false,
                include_drafts: false,
                session_id: None,
                types: Vec::new(),
                max_tokens: None,
                interests: Vec::new(),
                active_task_id: None,
                temporal_layers: Vec::new(),
                relevance_threshold: None,
                recency_weight: None,
                as_of_epoch: None,
            },
            context_hint: None,
            format: None,
            since_epoch: None,
            explain: false,
        }
    }

    /// What the agent is about to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.context_hint = Some(hint.into());
        self
    }

    /// Only units committed at or after this epoch.
    #[must_use]
    pub fn since(mut self, epoch: u64) -> Self {
        self.since_epoch = Some(epoch);
        self
    }

    /// What the Field would have shown once the operation at this epoch was done.
    #[must_use]
    pub fn as_of(mut self, epoch: u64) -> Self {
        self.scope.as_of_epoch = Some(epoch);
        self
    }

    /// How much of each unit to show.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Also the agent's own units.
    #[must_use]
    pub fn including_own(mut self) -> Self {
        self.scope.include_own = true;
        self
    }

    /// Also the agent's own drafts.
    #[must_use]
    pub fn including_drafts(mut self) -> Self {
        self.scope.include_drafts = true;
        self
    }

    /// Only units of this session.
    #[must_use]
    pub fn only_session(mut self, session_id: impl Into<String>) -> Self {
        self.scope.session_id = Some(session_id.into());
        self
    }

    /// Only units of this type, or of the others named in the same way.
    #[must_use]
    pub fn only(mut self, kind: MemoryType) -> Self {
        self.scope.types.push(kind);
        self
    }

    /// At most so many tokens of units, at least 1: the best in full, then summaries.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.scope.max_tokens = Some(tokens);
        self
    }

    /// Something that the agent cares for now, in place of what it registered with.
    #[must_use]
    pub fn interested_in(mut self, interest: impl Into<String>) -> Self {
        self.scope.interests.push(interest.into());
        self
    }

    /// The task that the agent works on.
    #[must_use]
    pub fn on_task(mut self, task_id: impl Into<String>) -> Self {
        self.scope.active_task_id = Some(task_id.into());
        self
    }

    /// Only units of this layer, or of the others named in the same way.
    #[must_use]
    pub fn layer(mut self, layer: TemporalLayer) -> Self {
        self.scope.temporal_layers.push(layer);
        self
    }

    /// Only units of at least this relevance, 0 to 1.
    #[must_use]
    pub fn at_least(mut self, relevance: f64) -> Self {
        self.scope.relevance_threshold = Some(relevance);
        self
    }

    /// How much newness counts, 0 to 1.
    #[must_use]
    pub fn recency(mut self, weight: f64) -> Self {
        self.scope.recency_weight = Some(weight);
        self
    }

    /// With the factors behind each score.
    #[must_use]
    pub fn explained(mut self) -> Self {
        self.explain = true;
        self
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct DetectFilter {
    status: Vec<ConflictStatus>,
    types: Vec<ConflictType>,
    involving_agents: Vec<String>,
}

/// DETECT's request.
///
/// ```
/// use akashik_hub::client::Detect;
/// use akashik_hub::protocol::ConflictStatus;
///
/// let open = Detect::list().status(ConflictStatus::Detected).involving("researcher-01");
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Detect {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_id: Option<String>,
    filter: DetectFilter,
}

impl Detect {
    /// The known conflicts.
    pub fn list() -> Self {
        Self { mode: "list", target_id: None, filter: DetectFilter::default() }
    }

    /// One unit against the Field; its conflicts, those included that this finds.
    pub fn check(target: UnitId) -> Self {
        Self { mode: "check", target_id: Some(target.to_string()), ..Self::list() }
    }

    /// All units against one another; the conflicts of the Field, those included that this finds.
    pub fn scan() -> Self {
        Self { mode: "scan", ..Self::list() }
    }

    /// Only those with this status, or another one named in the same way.
    #[must_use]
    pub fn status(mut self, status: ConflictStatus) -> Self {
        self.filter.status.push(status);
        self
    }

    /// Only those of this type, or another one named in the same way.
    #[must_use]
    pub fn of_type(mut self, kind: ConflictType) -> Self {
        self.filter.types.push(kind);
        self
    }

    /// Only those that involve this agent, or another one named in the same way.
    #[must_use]
    pub fn involving(mut self, agent_id: impl Into<String>) -> Self {
        self.filter.involving_agents.push(agent_id.into());
        self
    }
}

/// REPLAY's request.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
/// use akashik_hub::client::Replay;
/// use akashik_hub::protocol::{ReplayDepth, ReplayTarget};
///
/// let history = client.replay(Replay::of(ReplayTarget::Task, "task-1").depth(ReplayDepth::Summary)).await?;
/// println!("{}", history.summary);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    target_type: ReplayTarget,
    target_id: String,
    depth: ReplayDepth,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of_epoch: Option<u64>,
}

impl Replay {
    /// Of any target, in detail.
    pub fn of(target_type: ReplayTarget, target: impl ToString) -> Self {
        Self { target_type, target_id: target.to_string(), depth: ReplayDepth::Detailed, as_of_epoch: None }
    }

    /// Of a memory unit.
    pub fn unit(unit: impl ToString) -> Self {
        Self::of(ReplayTarget::MemoryUnit, unit)
    }

    /// How much to show.
    #[must_use]
    pub fn depth(mut self, depth: ReplayDepth) -> Self {
        self.depth = depth;
        self
    }

    /// Only up to this epoch.
    #[must_use]
    pub fn as_of(mut self, epoch: u64) -> Self {
        self.as_of_epoch = Some(epoch);
        self
    }
}
