//! `akashik status`: a Field's figures.

use clap::Args;
use serde_json::Value;

use super::ask::Hub;
use super::exit::Failure;
use super::screen;

/// GET field/status.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    hub: Hub,
}

impl Status {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let response = self.hub.get("field/status")?;
        screen::show_response(self.hub.json, &response, readable)
    }
}

/// The figures. The level is the configured one: what the Field may serve at most, not what it meets in full.
fn readable(status: &Value) -> String {
    let Value::Object(status) = status else { return screen::figures(status) };
    let named = status.iter().map(|(key, value)| {
        let key = if key == "level" { "level (configured)" } else { key };
        (key.to_owned(), value.clone())
    });
    let note = "what is met in full: conformance_level, which akashik register shows";
    format!("{}{note}\n", screen::figures(&named.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_level_is_called_the_configured_one() {
        let shown = readable(&json!({"epoch": 4, "level": 3}));
        assert!(shown.starts_with("epoch               4\nlevel (configured)  3\n"), "{shown}");
        assert!(shown.ends_with("conformance_level, which akashik register shows\n"), "{shown}");
    }
}
