//! akashik-hub
#![warn(missing_docs)]
pub mod limits;
pub mod protocol;
