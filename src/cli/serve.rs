//! `akashik serve`: runs the hub until it is told to stop.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::exit::Failure;
use super::settings::{Effective, Settings};
use super::{logging, screen};
use crate::config::Config;
use crate::hub::Hub;
use crate::transport;

/// How long leftovers may hold up the end of the process.
pub(super) const LEFTOVER_PATIENCE: Duration = Duration::from_secs(1);

/// Runs the command.
pub(super) fn run(settings: Settings) -> Result<(), Failure> {
    let print_config = settings.print_config;
    let effective = settings.resolve()?;
    if print_config {
        return screen::print(effective.to_toml()?.trim_end());
    }
    let Effective { config, log_format, log_filter } = effective;
    logging::start(log_format, &log_filter)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(config));
    // Whatever still runs has nothing left to do; what had to be written was written by now.
    runtime.shutdown_timeout(LEFTOVER_PATIENCE);
    outcome
}

async fn serve(mut config: Config) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let (address, insecure, data) = (config.listen, config.insecure, config.data.clone());
    // The port first: a second hub on the same port must not touch the data directory.
    let listener = listen(address).map_err(|error| {
        Failure::failed(format!(
            "cannot listen on {address}: {error}; is another hub running? --listen takes another port"
        ))
    })?;
    let bound = listener.local_addr()?;
    if insecure && !bound.ip().to_canonical().is_loopback() {
        warn!(%bound, "insecure: anybody who reaches this address can read and write every Field");
    }
    config.listen = bound;
    let hub = tokio::select! {
        started = Hub::start(config) => started.map_err(Failure::failed)?,
        // Nothing was served yet and starting can be cut off anywhere, as by a power cut.
        name = signals.next() => {
            info!(signal = name, "told to stop before it was ready");
            return Ok(());
        }
    };
    announce(&format!("akashik: listening on http://{bound}"))?;
    info!(%bound, data = %data.display(), "ready");

    let stopping = async {
        let name = signals.next().await;
        info!(signal = name, "shutting down");
        // Whoever asks twice means now. The task ends with the process.
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(1);
        });
    };
    let served = transport::serve(std::sync::Arc::clone(&hub), listener, stopping).await;
    hub.stop().await;
    served.map_err(|error| Failure::failed(format!("the doors failed: {error}")))?;
    info!("stopped");
    Ok(())
}

/// The one line on stdout. Nobody reading it is no reason not to serve.
fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// The signals that ask to stop.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Connections that the system may keep until they are accepted: many come back at once after a restart, and one that
/// finds no place tries again only after a second.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As `TcpListener::bind` does: a restart must not wait for old connections to be forgotten.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
