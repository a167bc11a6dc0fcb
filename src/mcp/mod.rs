//! MCP: the Field as tools, resources and a prompt for language models (wire, section 4).
//!
//! Read `backend` for what a server stands on: a Field in this process, or a hub far away; then `server`, which speaks
//! MCP on top of it. `tools` is the catalogue, `text` what a model reads of an answer, `resources` what can be looked
//! at and watched, `guide` the words that teach a model the protocol. Frames, sessions and versions are the business of
//! `rmcp`; who may come in is the business of the door (`transport`) or of whoever started the process (`cli`).

mod backend;
mod guide;
mod resources;
mod server;
mod text;
mod tools;

pub use backend::{Backend, Call, Sight, Watch};
pub use server::Server;
