//! Why a call to a hub did not bring what was asked for.

use std::borrow::Cow;

use super::address::MalformedAddress;
use crate::protocol::ErrorBody;

/// Why a call failed.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) {
/// use akashik_hub::client::ClientError;
/// use akashik_hub::protocol::ErrorCode;
///
/// match client.retract("mem-7", "Counted twice.").await {
///     Ok(_) => println!("taken back"),
///     Err(ClientError::Refused(no)) if no.code == ErrorCode::UnitNotFound => println!("there is none"),
///     Err(ClientError::Refused(no)) => println!("{} {}", no.message, no.suggested_action),
///     Err(error) => println!("it may have been done or not: {error}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The Field said no; nothing was changed. The body says what to do next.
    #[error("{0}")]
    Refused(Box<ErrorBody>),
    /// The connection is gone for good; the message may have been carried out or not.
    #[error("disconnected: {0}")]
    Disconnected(Cow<'static, str>),
    /// Nobody answered in time; the message may have been carried out or not.
    #[error("the hub cannot be reached: {0}; start one with `akashik serve`, or name another with --url")]
    Unreachable(String),
    /// The other side does not speak as a hub does.
    #[error("no proper answer: {0}")]
    Protocol(Cow<'static, str>),
    /// The URL is not a hub's address.
    #[error("{0}")]
    Address(#[from] MalformedAddress),
}
