//! The settings of models outside of the hub.

use super::settings::{Settings, bounded, milliseconds};
use crate::config::{EmbeddingSettings, SummarySettings};
use crate::limits::{EMBEDDING_TIMEOUT_MS, SUMMARY_TIMEOUT_MS, SUMMARY_TOTAL_MS};
use crate::relevance::DIMENSIONS_MAX;

/// The environment variables that hold the keys of the endpoints. In the environment alone: what is on a command line or
/// printed is seen by many.
const EMBEDDING_KEY: &str = "AKASHIK_EMBEDDING_KEY";
const SUMMARY_KEY: &str = "AKASHIK_SUMMARY_KEY";

fn key(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|key| !key.is_empty())
}

/// A name or password in an address would be printed with it, and is not sent.
fn without_password(setting: &str, url: &str, variable: &str) -> Result<(), String> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    match authority.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        true => {
            Err(format!("{setting} holds a name or a password; leave them out and put a key into {variable}"))
        }
        false => Ok(()),
    }
}

impl Settings {
    /// The embedding model outside, if one is named.
    pub(super) fn embedding(&self) -> Result<Option<EmbeddingSettings>, String> {
        let Some(url) = self.embedding_url.clone() else {
            let alone = self.embedding_model.is_some()
                || self.embedding_dimensions.is_some()
                || self.embedding_ca_file.is_some()
                || self.embedding_timeout_seconds.is_some();
            return if alone {
                Err("embedding_model, embedding_dimensions, embedding_ca_file and embedding_timeout_seconds \
                    need embedding_url"
                    .to_owned())
            } else {
                Ok(None)
            };
        };
        without_password("embedding_url", &url, EMBEDDING_KEY)?;
        let Some(model) = self.embedding_model.clone().filter(|model| !model.trim().is_empty()) else {
            return Err("embedding_url needs embedding_model: what the model is called there".to_owned());
        };
        let dimensions = self.embedding_dimensions;
        let dimensions =
            dimensions.map(|count| bounded("embedding_dimensions", Some(count), count, 1, DIMENSIONS_MAX));
        let seconds = self.embedding_timeout_seconds;
        Ok(Some(EmbeddingSettings {
            url,
            model,
            dimensions: dimensions.transpose()?,
            ca_file: self.embedding_ca_file.clone(),
            key: key(EMBEDDING_KEY),
            timeout_ms: milliseconds("embedding_timeout_seconds", seconds, EMBEDDING_TIMEOUT_MS)?,
        }))
    }

    /// The language model outside, if one is named.
    pub(super) fn summary(&self) -> Result<Option<SummarySettings>, String> {
        let Some(url) = self.summary_url.clone() else {
            let alone = self.summary_model.is_some()
                || self.summary_ca_file.is_some()
                || self.summary_timeout_seconds.is_some()
                || self.summary_total_seconds.is_some();
            return if alone {
                Err("summary_model, summary_ca_file, summary_timeout_seconds and summary_total_seconds need summary_url"
                    .to_owned())
            } else {
                Ok(None)
            };
        };
        without_password("summary_url", &url, SUMMARY_KEY)?;
        let Some(model) = self.summary_model.clone().filter(|model| !model.trim().is_empty()) else {
            return Err("summary_url needs summary_model: what the model is called there".to_owned());
        };
        let (each, all) = (self.summary_timeout_seconds, self.summary_total_seconds);
        Ok(Some(SummarySettings {
            url,
            model,
            key: key(SUMMARY_KEY),
            ca_file: self.summary_ca_file.clone(),
            timeout_ms: milliseconds("summary_timeout_seconds", each, SUMMARY_TIMEOUT_MS)?,
            total_ms: milliseconds("summary_total_seconds", all, SUMMARY_TOTAL_MS)?,
        }))
    }
}
