//! Archived units whose texts are in the log alone.
