//! How a WebSocket conversation ends: why, and with which goodbye (RFC 6455, section 7; wire, section 2).

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Utf8Bytes};

use super::reply::close_code;
use super::ws::{Socket, WRITE_BUFFER_BYTES};
use crate::limits;
use crate::protocol::ErrorCode;

/// While the rest of a refused message is thrown away: how long nothing may come before the peer counts as
/// done with sending.
const QUIET_MS: u64 = 250;

/// Why a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer said goodbye.
    ByPeer,
    /// The connection is gone.
    Lost,
    /// The hub says goodbye.
    Close { code: u16, reason: &'static str },
    /// The hub says goodbye after a frame that broke off the reading: more of it may be on its way.
    Break { code: u16, reason: &'static str },
}

/// How a shutdown ends a conversation.
pub const GOING_AWAY: Ending = Ending::Close { code: 1001, reason: "the hub shuts down" };

/// How a conversation ends whose peer takes nothing of what waits for it.
pub const SLOW_CONSUMER: Ending = Ending::Close { code: 4008, reason: "slow consumer" };

/// What a failure to read means. Where the hub can still write, replies in flight are delivered.
pub fn broken(error: &WsError) -> Result<Ending, Ending> {
    match error {
        WsError::Capacity(_) => {
            let code = close_code(ErrorCode::MessageTooLarge).unwrap_or(1008);
            Ok(Ending::Break { code, reason: "message too big" })
        }
        WsError::Utf8(_) => Ok(Ending::Break { code: 1007, reason: "invalid UTF-8" }),
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Err(Ending::Lost),
        WsError::Protocol(_) => Ok(Ending::Break { code: 1002, reason: "broken framing" }),
        _ => Err(Ending::Lost),
    }
}

/// Says goodbye as RFC 6455 asks, within bounds.
pub async fn part(socket: &mut Socket, ending: Ending) {
    let bounded = Duration::from_millis(limits::FAREWELL_MS);
    let (code, reason) = match ending {
        Ending::Lost => return,
        Ending::ByPeer => {
            // The echo of the peer's close is queued already.
            let _ = timeout(bounded, socket.flush()).await;
            return;
        }
        Ending::Close { code, reason } | Ending::Break { code, reason } => (code, reason),
    };
    let frame = CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::from_static(reason) };
    let slow = Duration::from_millis(limits::SLOW_FAREWELL_MS);
    let patience = if ending == SLOW_CONSUMER { slow } else { bounded };
    if !matches!(timeout(patience, socket.close(Some(frame))).await, Ok(Ok(()))) {
        return;
    }
    let _ = timeout(bounded, async {
        if matches!(ending, Ending::Break { .. }) {
            drain(socket).await;
        } else {
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
}

/// Throws away what the peer still sends after a frame that could not be read: closing with unread bytes
/// would reset the connection, and the peer would never see why it was closed.
async fn drain(socket: &mut Socket) {
    let mut waste = vec![0; WRITE_BUFFER_BYTES];
    let mut seen = 0;
    let quiet = Duration::from_millis(QUIET_MS);
    while let Ok(Ok(count @ 1..)) = timeout(quiet, socket.get_mut().read(&mut waste)).await {
        seen += count;
        if seen > limits::DISCARD_MAX_BYTES {
            return;
        }
    }
}
