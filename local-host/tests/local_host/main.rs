//! The local host against a handler whose behaviour each test chooses. Every rule of the real host that Firn relies on is
//! a test here; the rules that are pure are tested beside their code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod azurite;
mod handler;
mod http;
mod invoke;
mod queue;
mod scene;
mod script;
mod timer;
