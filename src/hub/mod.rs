//! The hub: Fields, each with its actor, its log thread and its live sessions.
//!
//! The way of an operation: a door reads a message ([`Field::read`]) and hands it over ([`Field::submit`]);
//! the actor (`actor`) stamps it, decides, applies, and gathers entries into a batch; the log thread
//! (`writer`) makes the batch durable with one flush while the actor decides the next; then the replies that
//! waited for it leave, reads included, and the durable state is published as a [`View`] for the GETs. Reads
//! are computed on a worker pool from a view of their own, with an index (`index`) that follows the units; what it
//! knows of their meaning is kept in a file (`vector_file`, `vector_keeper`). The state is kept in another (`snapshot_file`,
//! `snapshot_keeper`), so that a start (`restore`) need not apply the whole log. What the Field was at an earlier epoch is made
//! for who asks (`past`). Texts of archived units, which memory does not hold, are read from the log (`shelf`). Where a
//! model outside makes the embeddings (`endpoint`), the text is embedded before the message is handed over, and what
//! failed there behind (`enricher`). Both it and the language model that may write a COMPACT's syntheses (`scribe`) are
//! spoken with by `outside`, over `tls`.
//! What a message is about to commit is compared with the Field before it is handed over, or behind (`detection`).
//! Reads, indexing and comparing let writes pass (`courtesy`).
//!
//! What is only looked at (`looks`) needs no operation.
//!
//! The way of a notification: what became durable goes into the stream of operations (`feed`), once its replies are
//! out. Each subscription follows it from its own place (`follower`), wherever it is attached, and those of one reader
//! take turns (`outbox`); `bells` wake those whom an operation may concern. What is told of an operation is made once
//! (`told`), what stands around it for each reader (`push`); `profiles` say how much it matters to whom, `debounce`
//! holds back what comes too soon, `listening` is where doors begin.

mod actor;
mod answer;
mod bells;
mod courtesy;
mod debounce;
mod detection;
mod endpoint;
mod enricher;
mod feed;
mod field;
mod follower;
mod index;
mod index_lock;
mod listening;
mod looks;
pub mod metrics;
mod notes;
mod outbox;
mod outside;
mod past;
mod plans;
mod profiles;
mod push;
mod reads;
mod restore;
mod scribe;
mod sessions;
mod shelf;
mod snapshot_check;
mod snapshot_file;
mod snapshot_keeper;
#[cfg(test)]
mod tests;
mod tls;
mod told;
mod vector_file;
mod vector_keeper;
mod view;
mod waiting;
mod writer;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

pub use answer::{Answer, Payload, answer_too_large};
use courtesy::{DOOR_NICENESS, INDEX_NICENESS, READ_NICENESS, Writes};
use endpoint::Endpoint;
use field::Means;
pub use field::{Field, LogFigures, Pending};
pub use outbox::Outbox;
pub use push::Push;
use scribe::Scribe;
pub use sessions::{ConnectionId, Door, LiveSession, Sessions};
pub use snapshot_check::{Scrutiny, SnapshotReport, inspect_snapshot};
pub use view::View;

pub use crate::field::{Audit, Concern, Listener, Message, UnitFilter};

use crate::config::Config;
use crate::field::Policy;
use crate::log::{Log, LogError, SqliteLog, SqliteOptions};
use crate::protocol::EXTENDED_SCOPE_LEVEL;
use metrics::Metrics;

/// Why a hub could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The data directory cannot be made or used.
    #[error("the data directory {path} cannot be used: {error}")]
    Directory {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Another process has it.
    #[error(
        "the data directory {0} is in use by another hub; stop that one or give --data another directory"
    )]
    InUse(PathBuf),
    /// A Field's log cannot be opened or read.
    #[error(
        "the log of Field {field:?} cannot be opened: {error}; `akashik log verify` tells more, and a damaged log is best \
         restored from a copy"
    )]
    Log {
        /// Whose log.
        field: String,
        /// What went wrong.
        error: LogError,
    },
    /// The embedding model outside cannot be used.
    #[error("the embedding endpoint {url} cannot be used: {error}")]
    Embedding {
        /// Its address.
        url: String,
        /// What is wrong.
        error: String,
    },
    /// The language model outside cannot be used.
    #[error("the summary endpoint {url} cannot be used: {error}")]
    Summary {
        /// Its address.
        url: String,
        /// What is wrong.
        error: String,
    },
    /// The system gives no threads.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// A running hub. Doors hold an `Arc<Hub>`.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    fields: Vec<Field>,
    sessions: Arc<Sessions>,
    metrics: Arc<Metrics>,
    started: Instant,
    /// Held for the life of the hub; the lock ends with the process however that ends.
    _lock: Option<File>,
}

impl Hub {
    /// Takes the data directory, opens each Field's log, rebuilds its state, starts its actor.
    ///
    /// # Errors
    /// A directory that cannot be used or is in use; a log that cannot be read.
    pub async fn start(config: Config) -> Result<Arc<Self>, StartError> {
        let lock = lock(&config.data)?;
        let mut logs: Vec<Box<dyn Log>> = Vec::new();
        for field in &config.fields {
            let options = SqliteOptions { max_bytes: config.max_log_bytes };
            let log = SqliteLog::open(&config.data.join(field), options)
                .map_err(|error| StartError::Log { field: field.clone(), error })?;
            logs.push(Box::new(log));
        }
        let home = config.data.clone();
        Self::assemble(config, logs, Some(lock), Some(&home)).await
    }

    /// Starts a hub on logs of the caller's making, one for each configured Field; nothing is locked. For
    /// tests with logs in memory.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub async fn start_on(config: Config, logs: Vec<Box<dyn Log>>) -> Result<Arc<Self>, StartError> {
        Self::assemble(config, logs, None, None).await
    }

    async fn assemble(
        config: Config,
        logs: Vec<Box<dyn Log>>,
        lock: Option<File>,
        home: Option<&Path>,
    ) -> Result<Arc<Self>, StartError> {
        let metrics = Arc::new(Metrics::new(config.fields.iter().map(String::as_str)));
        let writes = Writes::default();
        let pool =
            |name, niceness, own| writes.pool(name, niceness, own).map(Arc::new).map_err(StartError::Thread);
        let readers = pool("akashik-read", READ_NICENESS, 0)?;
        let comparers = pool("akashik-door", DOOR_NICENESS, 1)?;
        let indexers = pool("akashik-index", INDEX_NICENESS, 0)?;
        let endpoint = match &config.embedding {
            Some(settings) if config.meaning && config.level >= EXTENDED_SCOPE_LEVEL => {
                let failed = |error| StartError::Embedding { url: settings.url.clone(), error };
                Some(Endpoint::agree(settings).await.map_err(failed)?)
            }
            _ => None,
        };
        let scribe = config.summary.as_ref().map(|settings| {
            Scribe::new(settings).map_err(|error| StartError::Summary { url: settings.url.clone(), error })
        });
        let scribe = scribe.transpose()?;
        let mut fields = Vec::new();
        for (name, log) in config.fields.iter().zip(logs) {
            let limits = config.limits.clone();
            let mut policy = Policy::new(name, config.level, config.shared_drafts, config.grace_ms, limits)
                .with_meaning(config.meaning)
                .with_detection(config.detects());
            policy.audit = config.audit_reads;
            if let Some(endpoint) = &endpoint {
                policy = policy.with_model(endpoint.model(), endpoint.dimensions());
            }
            let means = Means {
                readers: Arc::clone(&readers),
                comparers: Arc::clone(&comparers),
                indexers: Arc::clone(&indexers),
                writes: writes.of_another_field(),
                metrics: Arc::clone(&metrics),
                directory: home.map(|home| home.join(name)),
                endpoint: endpoint.clone(),
                scribe: scribe.clone(),
                detection_budget: (config.detects())
                    .then(|| Duration::from_millis(config.detection_budget_ms)),
                snapshot_entries: config.snapshot_entries,
            };
            fields.push(Field::start(name, policy, log, means).await?);
        }
        let sessions = Arc::new(Sessions::default());
        Ok(Arc::new(Self { config, fields, sessions, metrics, started: Instant::now(), _lock: lock }))
    }

    /// How the hub was configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The Field of this name; `None` asks for the first one, which stands under `/v1/…`.
    pub fn field(&self, name: Option<&str>) -> Option<&Field> {
        match name {
            None => self.fields.first(),
            Some(name) => self.fields.iter().find(|field| field.name() == name),
        }
    }

    /// All Fields, in configured order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The live sessions of all Fields.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// The figures for `/metrics`.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Milliseconds since the hub started.
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends what takes long, so that the doors can drain: a scan that is under way is answered with how far it came.
    pub fn wind_down(&self) {
        self.fields.iter().for_each(Field::wind_down);
    }

    /// Ends all Fields: what was submitted is decided and made durable, the logs are closed. Call it after
    /// the doors have drained; what is submitted later is refused.
    pub async fn stop(&self) {
        futures::future::join_all(self.fields.iter().map(Field::stop)).await;
    }
}

/// Takes the data directory for this process.
fn lock(data: &Path) -> Result<File, StartError> {
    let unusable = |error| StartError::Directory { path: data.to_owned(), error };
    fs::create_dir_all(data).map_err(unusable)?;
    let path = data.join("hub.lock");
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(data.to_owned())),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

/// Refuses what stands under the name of one of the Field's own files and is none: opening a pipe waits for its other
/// end, a start for ever. Absent is well.
fn only_a_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other(format!("{} is no file; take it away", path.display())))
        }
        _ => Ok(()),
    }
}
