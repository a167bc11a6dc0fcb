//! How a command ends when it does not end well.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::json;

use super::flag_names;
use super::screen::plain;
use crate::client::ClientError;
use crate::protocol::{ErrorBody, ErrorCode};

/// Why a command failed; decides the exit code (wire, section 5).
#[derive(Debug)]
pub(super) enum Failure {
    /// The hub said no: its error body, as JSON.
    Refused(String),
    /// What was asked for cannot be done.
    Failed(String),
    /// What was asked for makes no sense.
    Usage(String),
    /// Nobody answers as a hub does.
    Unreachable(String),
    /// Whoever read our output has seen enough.
    BrokenPipe,
}

impl Failure {
    /// A failure with a message.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// A usage error with a message.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Whether the hub said no with this code.
    pub fn is_refused_with(&self, code: ErrorCode) -> bool {
        let Self::Refused(body) = self else { return false };
        serde_json::from_str::<ErrorBody>(body).is_ok_and(|body| body.code == code)
    }

    /// Says it on stderr and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::Refused(body) if io::stderr().is_terminal() => (1, readable(&body)),
            Self::Refused(body) => (1, body),
            Self::Failed(message) => (1, format!("akashik: {message}")),
            Self::Usage(message) => (2, format!("akashik: {message}")),
            Self::Unreachable(message) => (3, format!("akashik: {message}")),
            Self::BrokenPipe => return ExitCode::SUCCESS,
        };
        // With stderr closed there is nobody to tell; the code says enough.
        let _ = writeln!(io::stderr(), "{message}");
        ExitCode::from(code)
    }
}

/// An error body for a person: what was wrong, what to do, and how that is said on the command line.
fn readable(body: &str) -> String {
    let Ok(body) = serde_json::from_str::<ErrorBody>(body) else { return body.to_owned() };
    let (said, action) = (plain(&json!(body.message)), plain(&json!(body.suggested_action)));
    let mut text = format!("{}: {said}\n  {action}", body.code);
    if let Some(advice) = flag_names::advice(&body) {
        text.push_str(&format!("\n  On the command line: {advice}"));
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text) | Self::Failed(text) | Self::Usage(text) | Self::Unreachable(text) => {
                f.write_str(text)
            }
            Self::BrokenPipe => f.write_str("broken pipe"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::BrokenPipe } else { Self::failed(error) }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(body) => {
                Self::Refused(serde_json::to_string(&body).unwrap_or_else(|_| body.to_string()))
            }
            ClientError::Address(error) => Self::usage(error),
            error => Self::Unreachable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Operation, Refusal};

    #[test]
    fn a_refusal_is_read_with_its_flags() {
        let refusal = Refusal::new(ErrorCode::MergeFailed, "No\u{1b} winner.", "Send winner_id as mem-1.");
        let body = serde_json::to_string(&refusal.body(Some(Operation::Merge))).unwrap();
        assert_eq!(
            readable(&body),
            "MERGE_FAILED: No  winner.\n  Send winner_id as mem-1.\n  On the command line: winner_id is --winner"
        );
        assert_eq!(readable("no body"), "no body");
        assert!(Failure::Refused(body.clone()).is_refused_with(ErrorCode::MergeFailed));
        assert!(!Failure::Refused(body).is_refused_with(ErrorCode::AgentNotRegistered));
    }
}
