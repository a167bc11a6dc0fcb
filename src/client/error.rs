//! Why a call to a hub did not bring what was asked for.

use std::borrow::Cow;

use super::address::MalformedAddress;
use crate::protocol::ErrorBody;

/// Why a call failed.
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
