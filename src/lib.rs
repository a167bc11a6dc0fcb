//! akashik-hub
#![warn(missing_docs)]
pub mod cli;
pub mod client;
pub mod config;
pub mod field;
pub mod hub;
pub mod limits;
pub mod log;
pub mod protocol;
pub mod relevance;
pub mod transport;
